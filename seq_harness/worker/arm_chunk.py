"""What a robot arm's policy answers: made into a chunk, held to its contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from seq_harness.contract.arm import ActionChunk, ActionContract, ActionSpace, ActionStep
from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.contract.wire import KEY_END, KEY_STEPS
from seq_harness.worker.reply import invalid

Rows = npt.NDArray[np.float64]

SUMMED = (ActionSpace.JOINT_DELTA, ActionSpace.EE_DELTA)
"""The spaces whose values are steps themselves, so that `max_delta` bounds each value."""

FROM_CONTRACT = ('robot', 'action_space', 'action_dim', 'control_frequency_hz')


class ArmChunks:
    """Make the chunks of one declared body."""

    def __init__(self, contract: ActionContract) -> None:
        self._contract = contract

    def chunk(self, outputs: Any, warnings: list[str]) -> dict[str, Any]:
        """
        Return the chunk that `outputs` holds, and append to `warnings` what was clipped.

        A policy answers an `ActionChunk`, a mapping with `steps`, or the rows themselves [n, D];
        what it leaves out is the contract's. An `end` beside the steps is kept.

        Raises
        ------
        TransportError
            The rows are not as the contract says (`policy_error`).

        """
        fields = _fields(outputs)
        end = fields.pop(KEY_END, None)
        chunk = self._read(fields)
        rows = self._rows(chunk)
        if not len(rows) and end is None:
            _fail('the policy answered no rows: at least one was expected, or an end')
        rows = self._bounded(rows, warnings)
        steps = [
            ActionStep(index=step.index, values=row.tolist())
            for step, row in zip(chunk.steps, rows, strict=True)
        ]
        told = chunk.model_copy(update={KEY_STEPS: steps})
        made = told.model_dump(mode='json', exclude_none=True)
        return made if end is None else {**made, KEY_END: end}

    def _read(self, fields: dict[str, Any]) -> ActionChunk:
        declared = self._contract.model_dump(include=set(FROM_CONTRACT))
        for name, value in declared.items():
            said = fields.get(name, value)
            if said != value:
                _fail(f'the policy answered {name} {said!r:.80}, and declares {value!r:.80}')
        steps = sorted(_steps(fields.pop(KEY_STEPS)), key=lambda step: step.index)
        _check_indices(steps)
        filled = {**declared, 'covers_seconds': 0.0, **fields, KEY_STEPS: steps}
        try:
            chunk = ActionChunk.model_validate(filled)
        except ValidationError as error:
            _fail(str(invalid('the answered chunk', error).detail))
        horizon = chunk.open_loop_horizon
        if not 0 <= chunk.covers_seconds < np.inf or (horizon is not None and horizon < 1):
            _fail(
                f'the policy answered covers_seconds {chunk.covers_seconds} and open_loop_horizon '
                f'{horizon}; a finite time and at least one row were expected'
            )
        if 'covers_seconds' in fields:
            return chunk
        covers_s = min(len(steps), horizon or len(steps)) / chunk.control_frequency_hz
        return chunk.model_copy(update={'covers_seconds': covers_s})

    def _rows(self, chunk: ActionChunk) -> Rows:
        width = self._contract.action_dim
        for step in chunk.steps:
            if len(step.values) != width:
                _fail(
                    f'row {step.index} (from 0) of the policy holds {len(step.values)} values; it '
                    f'declares action_dim={width}'
                )
        rows = np.array([step.values for step in chunk.steps], np.float64).reshape(-1, width)
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            _fail(
                f'row {row} (from 0) of the policy holds {rows[row, column]} in dimension {column}'
            )
        return rows

    def _bounded(self, rows: Rows, warnings: list[str]) -> Rows:
        contract = self._contract
        if contract.bounds is not None:
            low, high = np.array(contract.bounds, np.float64).T
            rows = _clipped(rows, np.clip(rows, low, high), 'bounds', warnings)
        if contract.max_delta is not None:
            most = np.broadcast_to(np.array(contract.max_delta, np.float64), rows.shape[1:])
            slow = np.clip(rows, -most, most) if self._is_summed else _slowed(rows, most)
            rows = _clipped(rows, slow, 'max_delta', warnings)
        return rows

    @property
    def _is_summed(self) -> bool:
        return self._contract.action_space in SUMMED


def _fields(outputs: Any) -> dict[str, Any]:
    if isinstance(outputs, ActionChunk):
        return outputs.model_dump(exclude_none=True)
    if not isinstance(outputs, Mapping):
        return {KEY_STEPS: outputs}
    if KEY_STEPS not in outputs:
        _fail(
            f'the policy answered a mapping of {sorted(map(str, outputs))[:20]}; steps was '
            'expected among them, or the rows alone'
        )
    return {str(name): value for name, value in outputs.items()}


def _steps(answered: Any) -> list[ActionStep]:
    """Read the steps, or number the rows in their order."""
    if isinstance(answered, np.ndarray):
        answered = answered.tolist()
    if not isinstance(answered, Sequence) or isinstance(answered, (str, bytes)):
        _fail(f'the policy answered rows of type {type(answered).__name__}; a list was expected')
    if answered and all(isinstance(item, (int, float)) for item in answered):
        answered = [answered]
    try:
        return [
            item if isinstance(item, ActionStep) else ActionStep.model_validate(_step(i, item))
            for i, item in enumerate(answered)
        ]
    except ValidationError as error:
        _fail(str(invalid('an answered step', error).detail))


def _step(index: int, item: Any) -> Any:
    step = dict(item) if isinstance(item, Mapping) else {'index': index, 'values': item}
    values = step.get('values')
    return {**step, 'values': values.tolist() if isinstance(values, np.ndarray) else values}


def _check_indices(steps: Sequence[ActionStep]) -> None:
    indices = [step.index for step in steps]
    if indices != list(range(len(steps))):
        _fail(f'the steps of the policy have the indices {indices[:20]}; 0, 1, 2... was expected')


def _slowed(rows: Rows, most: Rows) -> Rows:
    """Bound the step from each row to the next."""
    slow: Rows = rows.copy()
    for i in range(1, len(slow)):
        slow[i] = np.clip(slow[i], slow[i - 1] - most, slow[i - 1] + most)
    return slow


def _clipped(rows: Rows, inside: Rows, what: str, warnings: list[str]) -> Rows:
    changed = np.argwhere(rows != inside)
    if changed.size:
        row, column = changed[0]
        warnings.append(
            f'clipped {len(changed)} values to the {what}: the first is row {row} (from 0), '
            f'dimension {column}, {rows[row, column]:.6g} to {inside[row, column]:.6g}'
        )
    return inside


def _fail(detail: str) -> NoReturn:
    raise TransportError(
        ErrorCode.POLICY_ERROR, detail, hint="make the policy's answer and its contract agree"
    )
