"""Policies of LeRobot's, served as they were saved: `worker lerobot:PATH_OR_ID`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import time
from typing import Any

import numpy as np
from seq_harness.contract import Actions, Camera, Observations, Stream
from seq_harness.contract.camera import Codec, Filter, Fit
from seq_harness.contract.errors import Rejected
from seq_harness.contract.params import InferParam
from seq_harness.contract.wire import (
    KEY_OBSERVATIONS,
    PLAN_DELAY_ROWS,
    PLAN_EXECUTED_ROWS,
    PLAN_PREFIX,
)
from seq_harness.worker.declaration import PolicyRefused
from seq_harness.worker.policies.lerobot_model import Guidance, Model, Prefix, Row, SCHEDULES, TASK

PREFIXES = ('observation.images.', 'observation.')
"""What LeRobot's keys begin with and ours do not."""

SCHEDULE, WEIGHT = 'rtc_schedule', 'rtc_max_guidance_weight'
HORIZON, LATENCY = 'rtc_execution_horizon', 'simulated_latency_s'
"""The parameters of an act."""

PROMPT = 'prompt'
VISUAL = 'VISUAL'
READ = (VISUAL, 'STATE', 'ENV')


class LeRobot:
    """
    Answer the chunks of a policy that LeRobot saved.

    An observation holds each feature under LeRobot's own key without `observation.images.` or
    `observation.`, and the task as `prompt` where the policy reads text; `keys` renames, from
    LeRobot's key to the robot's. Answers `actions`, float32 [rows, D] in the units of the
    training data, after the policy's own postprocessor.
    """

    keeps_state = False
    load_s = 60.0

    def __init__(
        self,
        source: str,
        *,
        hz: float | None = None,
        columns: Sequence[str] | None = None,
        rows: int | None = None,
        keys: Mapping[str, str] | None = None,
        device: str | None = None,
        revision: str | None = None,
        resize: Fit | None = None,
        filter: Filter | None = None,  # noqa: A002
        codec: Codec | None = None,
        rtc_schedule: str | None = None,
        rtc_max_guidance_weight: float | None = None,
        rtc_execution_horizon: int | None = None,
        simulated_latency_s: float = 0.0,
    ) -> None:
        """
        Take a folder, or a repository's name on the hub, and what its files do not say.

        `hz` is the rate of the training data, `columns` names its action's columns, `rows` play of
        an answer (the policy's own `n_action_steps`). `resize`, `filter` and `codec` are declared
        of every camera.

        The others are the defaults of parameters that each act may set: those of real-time
        chunking, for which the policy's own hold unless given, and how many seconds more an
        answer is to take than it does.
        """
        self.columns = columns
        self.observations: Observations
        self.actions: Actions
        self.io: str
        self.infer: Callable[..., Any] = self._infer
        self._source = source
        self._hz = hz
        self._rows = rows
        self._named = dict(keys or {})
        self._device = device
        self._revision = revision
        self._camera = {'resize': resize, 'filter': filter, 'codec': codec}
        self.params: dict[str, InferParam] = {
            LATENCY: InferParam(type='float', default=float(simulated_latency_s), min=0.0, max=60)
        }
        self._rtc = {
            SCHEDULE: rtc_schedule,
            WEIGHT: rtc_max_guidance_weight,
            HORIZON: rtc_execution_horizon,
        }
        self._keys: dict[str, str] = {}
        self._answered = 0
        self._model: Model

    def load(self) -> None:
        """
        Load the policy, try it once, and declare what it reads and answers.

        Raises
        ------
        TransportError
            torch or lerobot cannot be imported.
        PolicyRefused
            The policy cannot be served, or does not fit what was set.

        """
        self._model = Model(self._source, self._revision, self._device)
        self._keys = self._our_keys()
        self.observations = Observations(self._streams())
        answered = self._answered = len(self._tried())
        rows = int(self._rows or getattr(self._model.config, 'n_action_steps', None) or answered)
        self.actions = Actions(key='actions', hz=self._hz, open_loop_horizon=min(rows, answered))
        self.io = self._told(answered)
        if self._model.rtc:
            self.params.update(self._rtc_params())
            self.infer = self._infer_with_plan
        elif any(value is not None for value in self._rtc.values()):
            raise PolicyRefused(
                f'{", ".join(self._rtc)} are for real-time chunking, which a policy of type '
                f'{self._model.config.type} has not: leave them out'
            )

    def _infer(
        self,
        inputs: Mapping[str, Any],
        seed: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Answer a chunk."""
        window, task = self._read(inputs[KEY_OBSERVATIONS])
        return self._late(self._model.chunk(window, task, seed), params)

    def _infer_with_plan(
        self,
        inputs: Mapping[str, Any],
        seed: int | None = None,
        plan: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Answer a chunk that goes on from the rows that will still be executed."""
        window, task = self._read(inputs[KEY_OBSERVATIONS])
        rows = self._model.chunk(window, task, seed, self._prefix(plan, params or {}))
        return self._late(rows, params)

    def _late(self, rows: Row, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Hold an answer back for as long as a slower computer would need more."""
        time.sleep((params or {}).get(LATENCY, 0.0))
        return {'actions': rows}

    def _rtc_params(self) -> dict[str, InferParam]:
        """Declare the settings of real-time chunking, the policy's own where none were given."""
        own = self._model.guidance
        defaults = {SCHEDULE: own.schedule, WEIGHT: own.max_weight, HORIZON: own.execution_horizon}
        given = {name: value for name, value in self._rtc.items() if value is not None}
        told: dict[str, Any] = {**defaults, **given}
        try:
            return {
                SCHEDULE: InferParam(type='str', default=told[SCHEDULE], choices=[*SCHEDULES]),
                WEIGHT: InferParam(type='float', default=told[WEIGHT], min=1e-6, max=1e6),
                HORIZON: InferParam(type='int', default=told[HORIZON], min=1),
            }
        except ValueError as error:
            raise PolicyRefused(f'a setting of real-time chunking is wrong: {error}') from error

    def _our_keys(self) -> dict[str, str]:
        """Return the robot's key for each of LeRobot's."""
        features = [*self._model.inputs, *([TASK] if self._model.reads_task else [])]
        strangers = sorted(set(self._named) - set(features))
        if strangers:
            raise PolicyRefused(f'keys names {strangers}; the policy reads {features}')
        keys = {feature: self._named.get(feature) or _our_key(feature) for feature in features}
        if len(set(keys.values())) < len(keys):
            raise PolicyRefused(
                f'two features have one key in {keys}: set keys to tell them apart'
            )
        return keys

    def _streams(self) -> dict[str, Stream]:
        streams, steps = {}, self._model.steps
        window: list[int | float] | None = [*range(1 - steps, 1)] if steps > 1 else None
        for feature, (kind, shape) in self._model.inputs.items():
            if kind not in READ or (kind == VISUAL and (len(shape) != 3 or shape[0] != 3)):
                raise PolicyRefused(
                    f'the policy reads {feature!r}, {kind} {list(shape)}; images [3, h, w] and '
                    'vectors of the state are served'
                )
            camera = None
            if kind == VISUAL:
                size = {'height': shape[1], 'width': shape[2], 'layout': 'chw_float'}
                camera = Camera.model_validate({**size, **self._camera})
            streams[self._keys[feature]] = Stream(at=window, camera=camera)
        if self._model.reads_task:
            streams[self._keys[TASK]] = Stream()
        return streams

    def _tried(self) -> Row:
        """Return what the policy answers to a blank observation, once it is as it should be."""
        shapes = {feature: shape for feature, (_, shape) in self._model.inputs.items()}
        blank = {feature: np.zeros(shape, np.float32) for feature, shape in shapes.items()}
        rows = self._model.chunk([blank], '' if self._model.reads_task else None)
        if rows.ndim != 2 or rows.shape[1] != self._model.width or not len(rows):
            raise PolicyRefused(
                f'the policy answered {list(rows.shape)}; [rows, {self._model.width}] was expected'
            )
        if self.columns is not None and len(self.columns) != self._model.width:
            raise PolicyRefused(
                f'columns names {len(self.columns)} columns, {list(self.columns)}; the policy '
                f'answers {self._model.width}'
            )
        return rows

    def _read(
        self, observations: Sequence[Mapping[str, Any]]
    ) -> tuple[list[dict[str, Row]], str | None]:
        """Return observations as LeRobot's features, and the newest one's task."""
        window = [self._features(observation) for observation in observations]
        if not self._model.reads_task:
            return window, None
        task = observations[-1][self._keys[TASK]]
        if not isinstance(task, str):
            raise Rejected(f'{self._keys[TASK]!r} is a {type(task).__name__}; text was expected')
        return window, task

    def _features(self, observation: Mapping[str, Any]) -> dict[str, Row]:
        missing = sorted(set(self._keys.values()) - set(observation))
        if missing:
            raise Rejected(
                f'the observation holds {sorted(observation)}; the policy also reads {missing}',
                hint='add these inputs on the robot, or rename with --set keys={...}',
            )
        features = {}
        for feature, (_, shape) in self._model.inputs.items():
            key = self._keys[feature]
            value = np.array(observation[key], np.float32)
            if value.shape != shape:
                raise Rejected(
                    f'{key!r} has shape {list(value.shape)}; the policy reads {feature!r} of '
                    f'shape {list(shape)}'
                )
            features[feature] = value
        return features

    def _prefix(self, plan: Mapping[str, Any] | None, params: Mapping[str, Any]) -> Prefix | None:
        """Return what a plan holds; one without rows is none."""
        if plan is None:
            return None
        rows = np.array(plan[PLAN_PREFIX], np.float32)
        if not rows.size:
            return None
        if rows.ndim != 2 or rows.shape[1] != self._model.width:
            raise Rejected(
                f'the plan holds rows {list(rows.shape)}; [n, {self._model.width}] was expected'
            )
        delay, executed = int(plan[PLAN_DELAY_ROWS]), int(plan.get(PLAN_EXECUTED_ROWS, 0))
        if delay > self._answered - executed:
            raise Rejected(
                f'the plan says that {executed} rows of a chunk of {self._answered} were executed '
                f'and {delay} more will be before the answer is there; real-time chunking takes '
                'delay <= horizon - executed',
                hint='ask sooner (ask_rows), or have longer chunks or shorter answers',
            )
        own = self._model.guidance
        guidance = Guidance(
            params.get(SCHEDULE, own.schedule),
            params.get(WEIGHT, own.max_weight),
            params.get(HORIZON, own.execution_horizon),
        )
        return Prefix(rows, delay, guidance)

    def _told(self, answered: int) -> str:
        features = {**self._model.inputs}
        if self._model.reads_task:
            features[TASK] = ('TEXT', ())
        read = '; '.join(
            f'{self._keys[name]}: {name}, {kind} {list(shape)}'
            for name, (kind, shape) in features.items()
        )
        text = (
            f'LeRobot {self._model.config.type}. Reads {read}. '
            f'Answers actions: {answered} rows of {self._model.width} columns'
        )
        return text[:4000]


def _our_key(feature: str) -> str:
    if feature == TASK:
        return PROMPT
    for prefix in PREFIXES:
        if feature.startswith(prefix):
            return feature.removeprefix(prefix)
    return feature
