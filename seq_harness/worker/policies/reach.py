"""Policies that see a green target with the overhead camera and touch it, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import io
import math
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from seq_harness.contract import Actions, Camera, InferParam, Observations, Stream
from seq_harness.contract.episode import Episode
from seq_harness.contract.wire import PLAN_DELAY_ROWS, PLAN_PREFIX
from seq_harness.sim.camera import HEIGHT, table_point, WIDTH
from seq_harness.sim.kinematics import inverse, JOINT_NAMES, OutOfReach

FRONT, STATE = 'front', 'state'
"""The keys of an observation that are read: the camera's frame, and six joint positions."""

END_REASON = 'targets_reached'

ROWS, HZ = 16, 20.0
"""The length of an answer, and its rows a second."""

CAMERA = Camera(
    width=320,
    height=240,
    resize='stretch',
    filter='bilinear',
    codec='jpeg',
    quality=85,
    layout='hwc_uint8',
)

MOST_RAD_S, LEAST_RAD_S, RAD_S2 = 0.5, 0.1, 1.0
"""The speed of the joint that moves furthest: its bounds, and how fast it rises and falls."""

JUMP_M = 0.06
"""A target seen this much further away is another one."""

GREENEST = 80
"""How far green exceeds red and blue in the target; JPEG leaves its inner pixels far above."""
LEAST_PIXELS = 12
BLOB_PX = 40.0
"""Green pixels further than this from the middle one, in pixels of the camera's own picture."""

Frame: TypeAlias = NDArray[np.uint8]
Row: TypeAlias = NDArray[np.float64]


@dataclass
class _Pursuit:
    """What an episode keeps: the target that is pursued, and how often it jumped."""

    target: tuple[float, float] | None = None
    began_at: Row | None = None
    """The joints at which the target was first pursued; the speed rises from there."""
    jumps: int = 0
    last_step: int = -1

    def see(self, target: tuple[float, float]) -> None:
        """Take in where the target lies now."""
        if self.target is not None and math.dist(self.target, target) > JUMP_M:
            self.jumps += 1
            self.began_at = None
        self.target = target


class Reach:
    """
    Pursue the target that the newest frame shows.

    Answers `{'actions': float32 [16, 6]}`, joint positions in rad at 20 Hz. When the target that
    was pursued has jumped `targets` times, the answer holds still and carries `end`.
    """

    io = 'front: RGB 320x240 from straight above; state: six joint positions in rad'
    observations = Observations({FRONT: Stream(camera=CAMERA), STATE: Stream()})
    actions = Actions(key='actions', hz=HZ)
    columns = JOINT_NAMES
    params: ClassVar = {'targets': InferParam(type='int', default=3, min=1, max=1000)}

    def infer(
        self, inputs: Any, episode: Episode, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """
        Answer the next rows.

        Raises
        ------
        ValueError
            When the newest observation lacks the frame or the six finite joint positions.

        """
        pursuit = episode.state.setdefault('pursuit', _Pursuit())
        observations, steps = inputs['observations'], inputs['steps']
        for step, observation in zip(steps, observations, strict=True):
            if step > pursuit.last_step and FRONT in observation:
                _look(pursuit, observation[FRONT])
                pursuit.last_step = step
        if pursuit.last_step != steps[-1]:
            raise ValueError(f'expected a frame under {FRONT!r} at step {steps[-1]}, got none')
        joints = _joints(observations[-1])
        wanted = (params or {}).get('targets', self.params['targets'].default)
        if pursuit.jumps >= wanted:
            return {'actions': _holding(joints), 'end': END_REASON}
        return {'actions': _rows(pursuit, joints)}


class ReachEvery(Reach):
    """Read all observations since the last act, so that no jump between two acts is missed."""

    io = 'front: RGB from straight above, any size; state: six joint positions in rad'
    observations = Observations(every=1)


class ReachWindow(Reach):
    """Read two frames an act, the second-last step's and the newest, as windowed policies do."""

    observations = Observations({FRONT: Stream(at=[-2, 0], camera=CAMERA), STATE: Stream()})


class ReachChunked(Reach):
    """Go on from the rows that will still be executed, as real-time chunking asks of a policy."""

    def infer(
        self,
        inputs: Any,
        episode: Episode,
        params: Mapping[str, Any] | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """
        Answer rows whose first `delay_rows` are the plan's own, and the next lead on from them.

        Raises
        ------
        ValueError
            As `Reach` does, or when the plan's prefix is no rows of six joints.

        """
        kept = _kept_rows(plan)
        if kept is None:
            return super().infer(inputs, episode, params)
        onward = [*inputs['observations'][:-1], {**inputs['observations'][-1], STATE: kept[-1]}]
        answer = super().infer({**inputs, 'observations': onward}, episode, params)
        return {**answer, 'actions': np.concatenate([kept, answer['actions']])[:ROWS]}


def _kept_rows(plan: Mapping[str, Any] | None) -> NDArray[np.float32] | None:
    """Return the rows of a request that will be executed whatever is answered; None for none."""
    if plan is None:
        return None
    prefix = np.asarray(plan[PLAN_PREFIX], np.float32)
    if prefix.ndim != 2 or prefix.shape[1] != len(JOINT_NAMES):
        raise ValueError(
            f'expected a prefix of rows of {len(JOINT_NAMES)} joints, got {list(prefix.shape)}'
        )
    kept = prefix[: int(plan[PLAN_DELAY_ROWS])]
    return kept if len(kept) else None


def find_target(frame: Frame) -> tuple[float, float] | None:
    """
    Return where on the table the green target lies, (x, y) in metres, or None when none is seen.

    `frame` is the overhead camera's whole picture, RGB uint8 [H, W, 3], of any size.
    """
    wide = frame.astype(np.int16)
    excess = wide[..., 1] - np.maximum(wide[..., 0], wide[..., 2])
    rows, columns = np.nonzero(excess > GREENEST)
    if len(rows) < LEAST_PIXELS:
        return None
    height, width = frame.shape[:2]
    u = (columns + 0.5) * WIDTH / width
    v = (rows + 0.5) * HEIGHT / height
    near = np.hypot(u - np.median(u), v - np.median(v)) < BLOB_PX
    if not near.any():
        return None
    weights = excess[rows, columns][near]
    return table_point(
        float(np.average(u[near], weights=weights)), float(np.average(v[near], weights=weights))
    )


def _look(pursuit: _Pursuit, frame: Any) -> None:
    if isinstance(frame, bytes):
        frame = np.asarray(Image.open(io.BytesIO(frame)).convert('RGB'))
    if (target := find_target(frame)) is not None:
        pursuit.see(target)


def _joints(observation: Mapping[str, Any]) -> Row:
    joints = np.asarray(observation.get(STATE, ()), np.float64)
    if joints.shape != (len(JOINT_NAMES),) or not np.isfinite(joints).all():
        raise ValueError(
            f'expected {len(JOINT_NAMES)} finite joint positions under {STATE!r}, got '
            f'{joints.tolist()}'
        )
    return joints


def _holding(joints: Row) -> NDArray[np.float32]:
    return np.tile(joints.astype(np.float32), (ROWS, 1))


def _rows(pursuit: _Pursuit, joints: Row) -> NDArray[np.float32]:
    """Plan from `joints` towards the target; hold when none was seen or it is out of reach."""
    if pursuit.target is None:
        return _holding(joints)
    try:
        goal = np.array(inverse(*pursuit.target))
    except OutOfReach:
        return _holding(joints)
    if pursuit.began_at is None:
        pursuit.began_at = joints
    return _line(pursuit.began_at, joints, goal).astype(np.float32)


def _line(began_at: Row, joints: Row, goal: Row) -> Row:
    """
    Go straight from `joints` to `goal`: float64 [ROWS, 6].

    The speed depends on how far the arm has come since `began_at` and on how far it has to go, so
    that a plan made on the way goes on as fast as the one before.
    """
    come = float(np.abs(joints - began_at).max())
    left = whole = float(np.abs(goal - joints).max())
    rows = np.tile(goal, (ROWS, 1))
    for number in range(ROWS):
        rising = math.sqrt(LEAST_RAD_S**2 + 2 * RAD_S2 * (come + whole - left))
        falling = math.sqrt(2 * RAD_S2 * left)
        left -= min(left, min(MOST_RAD_S, rising, max(falling, LEAST_RAD_S)) / HZ)
        if left:
            rows[number] = goal + (joints - goal) * (left / whole)
    return rows
