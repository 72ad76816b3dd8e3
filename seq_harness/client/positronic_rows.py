"""What a positronic server answers, as the rows of a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from seq_harness.client.key_map import ROWS
from seq_harness.playback.channels import END
from seq_harness.playback.uplink import PolicyError

NATIVE, COMMAND, GRIP, STAMP = 'action', 'robot_command', 'target_grip', 'timestamp'
"""The keys of one action; those of one arm among several end in `.` and its name."""

ENVELOPE = b'__cmd__'
"""The key of a typed command's envelope, in protocols 1 and 2."""

VALUES = {'joint_pos': 'positions', 'joint_delta': 'velocities', 'cartesian_pos': 'pose'}
"""The types of commands that are played, and the field that holds the values of each."""

POSE_VALUES = 12
"""A position, and a rotation matrix row by row."""

STAMP_TOLERANCE = 0.1
"""How far a stamp may lie from its place in the grid of rows, in periods."""

ROTATION_TOLERANCE = 1e-3

Vector = npt.NDArray[np.float64]


class AnswerRefused(PolicyError):
    """An answer that is not told into rows; says what came and what is known."""


class Rows(NamedTuple):
    """An answer's rows [K, width], and what kind of commands they are."""

    rows: npt.NDArray[Any]
    kind: str
    end: str | None = None

    def outputs(self) -> dict[str, Any]:
        """Return them as the policy's outputs."""
        return {ROWS: self.rows} if self.end is None else {ROWS: self.rows, END: self.end}


def rows_of(result: Any, fps: float | None, key: str = ROWS) -> Rows | None:
    """
    Tell an answer into rows; None answers nothing new.

    Native values are an array [K, width], a list of rows, or a mapping that holds either under
    `key`. An action is a mapping with `action`, the row itself, or with `robot_command` and
    `target_grip`: its row is the command's values, a pose as (x, y, z, qx, qy, qz, qw), and then
    the grip; of several arms in the order of their names. A last action with a stamp alone says
    when the chunk ends, and is no row.

    Parameters
    ----------
    result
        What came under `result`.
    fps
        The declared rows a second, which stamps must keep to.
    key
        Where a mapping holds its rows.

    Raises
    ------
    AnswerRefused
        It is none of these, its stamps are off the declared rate, or a command is of a type or a
        mode that no channel plays.

    """
    if result is None:
        return None
    if isinstance(result, Mapping) and key in result:
        end = result.get(END)
        held = _rows(result[key], fps)
        return held._replace(end=None if end is None else str(end))
    return _rows(result, fps)


def _rows(held: Any, fps: float | None) -> Rows:
    actions = [held] if isinstance(held, Mapping) else held
    if isinstance(actions, Sequence) and any(isinstance(item, Mapping) for item in actions):
        return _rows_of_actions(actions, fps)
    try:
        return Rows(np.asarray(held, dtype=np.float64), 'native values')
    except (TypeError, ValueError):
        raise AnswerRefused(
            f'an array of rows, or a list of actions, was expected; the server answered '
            f'{_shown(held)}'
        ) from None


def _rows_of_actions(actions: Sequence[Any], fps: float | None) -> Rows:
    strange = [item for item in actions if not isinstance(item, Mapping)]
    if strange:
        raise AnswerRefused(f'a list of actions holds {_shown(strange[0])}, which is none')
    if set(actions[-1]) == {STAMP} and len(actions) > 1:
        actions = actions[:-1]
    _check_stamps(actions, fps)
    told = [_row(action) for action in actions]
    kinds = sorted({kind for kind, _ in told})
    if len(kinds) > 1:
        raise AnswerRefused(f'one kind of command a chunk was expected, it holds {kinds}')
    lengths = sorted({len(row) for _, row in told})
    if len(lengths) > 1:
        raise AnswerRefused(f'rows of one length were expected, they have {lengths} values')
    return Rows(np.array([row for _, row in told]), kinds[0])


def _row(action: Mapping[str, Any]) -> tuple[str, Vector]:
    """Return the kind of one action, and its values."""
    if NATIVE in action:
        return 'native values', _vector(NATIVE, action[NATIVE])
    arms = sorted(key[len(COMMAND) :] for key in action if _is_command(key))
    if not arms:
        raise AnswerRefused(
            f'an action holds {NATIVE!r} or {COMMAND!r}; this one has {sorted(map(str, action))}'
        )
    commands = [_command(arm, action[COMMAND + arm]) for arm in arms]
    grips = [_grip(action, arm) for arm in arms]
    return (
        ', '.join(kind for kind, _ in commands),
        np.concatenate(
            list(chain.from_iterable(zip((v for _, v in commands), grips, strict=True)))
        ),
    )


def _is_command(key: Any) -> bool:
    return isinstance(key, str) and (key == COMMAND or key.startswith(f'{COMMAND}.'))


def _grip(action: Mapping[str, Any], arm: str) -> Vector:
    value = action.get(GRIP + arm)
    return np.empty(0) if value is None else _vector(GRIP + arm, value)


def _command(arm: str, value: Any) -> tuple[str, Vector]:
    command = value.get(ENVELOPE, value) if isinstance(value, Mapping) else None
    kind = command.get('type') if isinstance(command, Mapping) else None
    if not isinstance(command, Mapping) or kind not in VALUES:
        raise AnswerRefused(
            f'{COMMAND}{arm} is {_shown(kind or value)}; no channel plays it, but commands '
            f'of the types {list(VALUES)}'
        )
    if command.get('mode') is not None:
        raise AnswerRefused(
            f'{COMMAND}{arm} asks for the control law {_shown(command["mode"])}; the robot runs '
            "its controller's own: serve a policy that leaves `mode` out"
        )
    values = _vector(COMMAND + arm, command.get(VALUES[kind]))
    return f'{kind}{arm}', _pose(arm, values) if kind == 'cartesian_pos' else values


def _pose(arm: str, values: Vector) -> Vector:
    """Return a position and a rotation matrix as a position and a unit quaternion."""
    if values.size != POSE_VALUES:
        raise AnswerRefused(
            f'the pose of {COMMAND}{arm} has {values.size} values; a position and a rotation '
            f'matrix, {POSE_VALUES}, were expected'
        )
    matrix = values[3:].reshape(3, 3)
    off = np.abs(matrix @ matrix.T - np.eye(3)).max()
    if not off < ROTATION_TOLERANCE or np.linalg.det(matrix) < 0:
        raise AnswerRefused(f'the pose of {COMMAND}{arm} holds no rotation matrix: {matrix}')
    return np.concatenate([values[:3], _quaternion(matrix)])


def _quaternion(matrix: Vector) -> Vector:
    """Return a rotation matrix as (x, y, z, w): of four products of it, divide the largest."""
    trace = float(np.trace(matrix))
    squares = np.array([*(1 + 2 * np.diag(matrix) - trace), 1 + trace])
    largest = int(np.argmax(squares))
    axis = matrix - matrix.T
    turn = np.array([axis[2, 1], axis[0, 2], axis[1, 0]])
    if largest == 3:
        found = np.append(turn, squares[3])
    else:
        found = np.append((matrix + matrix.T)[largest], turn[largest])
        found[largest] = squares[largest]
    return np.asarray(found / np.linalg.norm(found))


def _vector(name: str, value: Any) -> Vector:
    try:
        return np.asarray(value, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise AnswerRefused(f'{name} is {_shown(value)}; numbers were expected') from None


def _check_stamps(actions: Sequence[Mapping[str, Any]], fps: float | None) -> None:
    for number, stamp in _stamps(actions):
        if fps is None and stamp:
            raise AnswerRefused(
                f'action {number} is stamped {stamp:g} s, and the server declares no rate: it was '
                'expected in action_fps, or as the fps of a layer of its local_stack'
            )
        if fps is not None and not abs(stamp * fps - number) <= STAMP_TOLERANCE:
            raise AnswerRefused(
                f'action {number} is stamped {stamp:g} s, and the server declares {fps:g} rows/s, '
                f'which makes it due at {number / fps:g} s'
            )


def _stamps(actions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, float]]:
    for number, action in enumerate(actions):
        if STAMP in action:
            stamp = _vector(STAMP, action[STAMP])
            yield number, float(stamp[0]) if stamp.size == 1 else math.nan


def _shown(value: Any) -> str:
    """Show a value from outside, on one line and of bounded length."""
    if isinstance(value, Mapping):
        return f'a mapping with the keys {sorted(map(str, value))}'[:200]
    return f'{type(value).__name__} {value!r:.80}'
