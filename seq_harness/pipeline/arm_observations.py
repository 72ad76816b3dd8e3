"""Observations as a robot arm's policy reads them, made of the harness's own keys."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from seq_harness.contract.arm import ObservationContract
from seq_harness.contract.camera import Camera
from seq_harness.pipeline.arm_actions import ContractRefused
from seq_harness.playback.codec_parts import Viewed
from seq_harness.playback.layers import Codec
from seq_harness.playback.session import Observation
from seq_harness.settings import InputSettings
from seq_harness.settings.parameters import JOINT_STATE

MEASURED = {'joint_positions': 'position', 'joint_velocities': 'velocity'}
"""The field of a joint_state input that gives a proprioception field where no key does."""

BLANK_INSTRUCTION = 'warm up'
"""What a warm-up says to a policy that reads an instruction, where none is set."""


class ArmObservations(Codec):
    """
    Lay observations out as the robot-arm preset does, right above the wire.

    A view is the key of the same name; so is a field of proprioception or of the state, but that
    `joint_positions` and `joint_velocities` are also the one joint_state input that reads them.
    """

    def __init__(
        self,
        contract: ObservationContract,
        keys: Collection[str],
        inputs: Iterable[InputSettings],
        instruction_key: str,
    ) -> None:
        """
        Find what the contract reads among `keys`, those that the layers above give.

        Raises
        ------
        ContractRefused
            A view or a field is not given; names both sides.

        """
        self.name = 'arm_observations'
        self._contract = contract
        self._keys = frozenset(keys)
        self._instruction_key = instruction_key
        _check_given(contract)
        measured = [item for item in inputs if item.type == JOINT_STATE]
        self._proprio = {name: self._field(name, measured) for name in contract.proprio}
        for name in (*contract.cameras, *contract.state):
            self._require(name, name)
        if contract.instruction and instruction_key not in self._keys:
            raise ContractRefused(
                'the policy reads an instruction, and none is sent: set instruction_key'
            )

    @property
    def cameras(self) -> dict[str, Camera]:
        """Return the cameras by key, encoded as the preset's frames travel."""
        declared = self._contract.cameras.items()
        return {view: camera.model_copy(update={'codec': 'jpeg'}) for view, camera in declared}

    def check(self, blank: Observation) -> None:
        """
        Check the lengths that the inputs give, on an observation that nobody saw.

        Raises
        ------
        ContractRefused
            One is another than declared; names both sides.

        """
        for name, length in {**self._contract.proprio, **self._contract.state}.items():
            key = self._proprio.get(name, name)
            given = np.asarray(blank[key]).size
            if given != length:
                raise ContractRefused(
                    f'the policy reads {length} numbers of {name}, and {key!r} gives {given}: '
                    'set the joints of its input to those of the policy, in its order'
                )

    def encode(self, observation: Observation) -> Observation:
        """Return the observation in the preset's layout; decodes nothing."""
        views = {
            'images': lambda: [_frame(view, observation[view]) for view in self._contract.cameras],
            'proprioception': lambda: {
                name: _numbers(observation[key]) for name, key in self._proprio.items()
            },
            'instruction': lambda: self._instruction(observation),
            'state': lambda: {name: _numbers(observation[name]) for name in self._contract.state},
        }
        if not self._contract.state:
            del views['state']
        return Viewed(views)

    def _instruction(self, observation: Observation) -> str:
        return str(observation[self._instruction_key]) if self._instruction_key else ''

    def _field(self, name: str, measured: Iterable[InputSettings]) -> str:
        if name in self._keys:
            return name
        found = [item.key for item in measured if item.field == MEASURED.get(name)]
        if len(found) == 1:
            self._require(name, found[0])
            return found[0]
        raise ContractRefused(self._missing(name))

    def _require(self, name: str, key: str) -> None:
        if key not in self._keys:
            raise ContractRefused(self._missing(name))

    def _missing(self, name: str) -> str:
        return (
            f'the policy reads {name!r}, which no input gives; the inputs give '
            f'{sorted(self._keys)}: set inputs.<name>.key to {name!r}'
        )


def _check_given(contract: ObservationContract) -> None:
    if not contract.cameras:
        raise ContractRefused(
            'the policy declares an observation without cameras, and an arm observation holds at '
            'least one image: declare the cameras'
        )
    if contract.history > 1:
        raise ContractRefused(
            f'the policy reads {contract.history} frames of each view, and this node sends the '
            'newest: serve it with `observations` and a window instead'
        )
    deep = [view for view, camera in contract.cameras.items() if camera.depth]
    if deep:
        raise ContractRefused(f'the policy reads depth of {deep}, which no input gives')


def _frame(view: str, jpeg: Any) -> dict[str, str]:
    return {'view': view, 'data': base64.b64encode(jpeg).decode('ascii'), 'kind': 'rgb'}


def _numbers(value: Any) -> list[float]:
    return [float(number) for number in np.atleast_1d(np.asarray(value, np.float64)).ravel()]
