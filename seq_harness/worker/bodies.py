"""The bodies that a policy drives, one of which a client chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seq_harness.contract.arm import ActionContract, ObservationContract
from seq_harness.contract.errors import Rejected
from seq_harness.worker.arm_chunk import ArmChunks
from seq_harness.worker.arm_observation import ArmReader
from seq_harness.worker.declaration import Declaration


@dataclass(frozen=True)
class Body:
    """One body, and what is declared of it; a policy of its own inputs declares nothing here."""

    name: str | None
    action: ActionContract | None
    observation: ObservationContract | None

    @property
    def is_arm(self) -> bool:
        """Whether the robot-arm preset says what goes in or comes out."""
        return self.action is not None or self.observation is not None

    def read(self, inputs: Any, version_1: bool = False) -> Any:
        """
        Return an observation as the policy is handed it; one of an arm is checked.

        Raises
        ------
        TransportError
            It is not as declared.

        """
        if self.observation is None and not (version_1 and self.is_arm):
            return inputs
        return ArmReader(self.observation).read(inputs)

    def chunk(self, outputs: Any, warnings: list[str]) -> Any:
        """
        Return the policy's answer as it goes out, and append to `warnings` what was clipped.

        Raises
        ------
        TransportError
            It is not as declared (`policy_error`).

        """
        return outputs if self.action is None else ArmChunks(self.action).chunk(outputs, warnings)


class Bodies:
    """Every body that one policy declares."""

    def __init__(self, declaration: Declaration) -> None:
        several = declaration.embodiments
        self._bodies = (
            [Body(name, item.action, item.observation) for name, item in several.items()]
            if several
            else [Body(declaration.embodiment, declaration.action, declaration.observation)]
        )
        self.only = self._bodies[0] if len(self._bodies) == 1 else None
        """The one body there is; None where a client must choose."""

    @property
    def are_arms(self) -> bool:
        """Whether the policy follows the robot-arm preset."""
        return any(body.is_arm for body in self._bodies)

    def choose(self, embodiment: str | None) -> Body:
        """
        Return the body that a client names; one that names none gets the only one.

        Raises
        ------
        Rejected
            There is no such body, or there are several and none was named.

        """
        if embodiment is None and self.only is not None:
            return self.only
        for body in self._bodies:
            if embodiment is not None and body.name == embodiment:
                return body
        known = [body.name for body in self._bodies]
        raise Rejected(
            f'the client drives {embodiment!r}, and the policy declares {known}',
            hint='set embodiment to one of them'
            if self.only is None
            else 'leave embodiment out, or serve a policy for this body',
            details={'embodiments': known},
        )
