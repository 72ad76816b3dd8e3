"""What a robot arm's policy observes: read as the preset lays it out, held to its contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
import math
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError
from seq_harness.contract.arm import ImageFrame, Observation, ObservationContract
from seq_harness.contract.camera import Camera
from seq_harness.contract.errors import Rejected
from seq_harness.contract.images import check_kind, frame_bytes, image_size, ImageRefused
from seq_harness.worker.cameras import check_size
from seq_harness.worker.reply import invalid

Kind = Literal['rgb', 'depth']


class ArmReader:
    """Read observations of one declared body; without a contract only their layout is checked."""

    def __init__(self, contract: ObservationContract | None) -> None:
        self._contract = contract

    def read(self, inputs: Any) -> dict[str, Any]:
        """
        Return the observation as the policy is handed it: plain values, images in base64.

        Raises
        ------
        TransportError
            It is not laid out as an arm's observation, or not as the contract says.

        """
        try:
            observation = Observation.model_validate(_plain(inputs))
        except ValidationError as error:
            raise invalid('an arm observation', error) from None
        _check_finite(observation)
        if self._contract is not None:
            _check_images(self._contract, observation.images)
            _check_lengths(self._contract, observation)
            _check_instruction(self._contract, observation.instruction)
        return observation.model_dump(mode='json', exclude_none=True)


def _plain(inputs: Any) -> Any:
    """Return the inputs with their arrays of numbers as the lists that the preset names."""
    if not isinstance(inputs, Mapping):
        return inputs
    held = {
        key: {name: _listed(value) for name, value in group.items()}
        for key in ('proprioception', 'state')
        if isinstance(group := inputs.get(key), Mapping)
    }
    return {**inputs, **held}


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _check_finite(observation: Observation) -> None:
    for field, values in _vectors(observation).items():
        for i, value in enumerate(values):
            if not math.isfinite(value):
                raise Rejected(
                    f'{field}[{i}] is {value}; a finite number was expected',
                    hint='send an observation once every sensor has read',
                    details={'field': field},
                )


def _vectors(observation: Observation) -> dict[str, list[float]]:
    proprio = observation.proprioception.model_dump(exclude_none=True)
    state = observation.state or {}
    return {
        **{f'proprioception.{name}': values for name, values in proprio.items()},
        **{f'state.{name}': values for name, values in state.items()},
    }


def _check_images(contract: ObservationContract, images: list[ImageFrame]) -> None:
    for image in images:
        _check_frame(image, contract.cameras.get(image.view))
    if not contract.cameras:
        return
    came = Counter((image.view, image.kind or 'rgb') for image in images)
    due = dict.fromkeys(_views(contract), contract.history)
    for view, kind in sorted({*due, *came}):
        if came[view, kind] != due.get((view, kind), 0):
            raise Rejected(
                f'view {view!r} sent {came[view, kind]} {kind} frames, and the policy reads '
                f'{due.get((view, kind), 0)}; it reads {_listing(due)}',
                hint='send every declared view, the newest frame last, and no other',
                details={
                    'view': view,
                    'frames': {'sent': dict(_by_kind(came, view)), 'declared': contract.history},
                },
            )


def _views(contract: ObservationContract) -> list[tuple[str, Kind]]:
    views: list[tuple[str, Kind]] = [(view, 'rgb') for view in contract.cameras]
    return views + [(view, 'depth') for view, camera in contract.cameras.items() if camera.depth]


def _listing(due: Mapping[tuple[str, Kind], int]) -> str:
    return ', '.join(f'{count} {kind} of {view!r}' for (view, kind), count in due.items())


def _by_kind(came: Counter[tuple[str, Kind]], view: str) -> dict[str, int]:
    return {kind: count for (name, kind), count in came.items() if name == view}


def _check_frame(image: ImageFrame, camera: Camera | None) -> None:
    try:
        raw = frame_bytes(image.data)
        size = image_size(raw)
        check_kind(raw, depth=image.kind == 'depth')
    except ImageRefused as error:
        raise Rejected(
            f'view {image.view!r}: {error}',
            hint='send the bytes of a whole PNG or JPEG in base64, depth as a 16-bit PNG of mm',
            details={'view': image.view},
        ) from None
    if camera is not None:
        check_size(image.view, camera, size)


def _check_lengths(contract: ObservationContract, observation: Observation) -> None:
    declared = {f'proprioception.{name}': n for name, n in contract.proprio.items()}
    declared |= {f'state.{name}': n for name, n in contract.state.items()}
    came = _vectors(observation)
    for field, length in declared.items():
        sent = len(came[field]) if field in came else None
        if sent != length:
            told = 'is missing' if sent is None else f'holds {sent} numbers'
            raise Rejected(
                f'{field} {told}; the policy reads {length}',
                hint='send the joints that the policy was trained with, in its order',
                details={'field': field, 'lengths': {'sent': sent, 'declared': length}},
            )


def _check_instruction(contract: ObservationContract, instruction: str) -> None:
    if contract.instruction and not instruction.strip():
        raise Rejected(
            'the instruction is empty, and the policy reads one',
            hint='say what the robot is to do',
            details={'field': 'instruction'},
        )
