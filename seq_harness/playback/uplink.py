"""What playback asks of the side that talks to a policy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from seq_harness.playback.ahead import Ahead
from seq_harness.playback.answer import Answer
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import Observation


class PolicyError(Exception):
    """The policy failed; the remote type and message are its text."""


class WorkerLost(Exception):
    """No worker could be reached within the time allowed for reconnecting."""


class StateLost(Exception):
    """The worker process changed, and with it went what the policy remembered."""


class ActAbandoned(Exception):
    """The observation grew too old before an answer came: ask anew."""


class Retired(Exception):
    """The act was given up by whoever started it."""


@dataclass(frozen=True)
class Step:
    """One numbered observation of an episode; immutable, so any thread may read it."""

    number: int
    """Its number: from 0, rising by one, never repeated within an episode."""
    t_ns: int
    """The instant of the round that sampled it, on the playback clock."""
    observation: Observation


class Standing(Enum):
    """What is known of a policy's server while an act is under way."""

    THERE = 'there'
    AWAY = 'away'
    """The connection is being made again, which `reconnect_s` bounds."""
    SILENT = 'silent'
    """It does not answer its ping, though its kind does during an inference."""


def standing_of(side: object) -> Standing:
    """Return what the `standing` of an uplink or a scope says; one that has none is there."""
    told: Callable[[], Standing] | None = getattr(side, 'standing', None)
    return Standing.THERE if told is None else told()


class Uplink(Protocol):
    """Where the player asks for its next chunk; the harness numbers what is asked."""

    def ask(
        self, observation: Observation, t: int, ahead: Ahead | None = None
    ) -> Answer[Chunk | None] | None:
        """
        Start one inference on the observation of the round at `t`; return at once.

        `ahead` is what will be executed meanwhile, for a policy that takes a plan. None: not now,
        because the stream is full and nothing may be lost.
        """

    def commit(self, at_ns: int) -> int:
        """Announce that the next ask falls due at `at_ns`; return the step's instant to use."""


class Queued(Enum):
    """What became of an observation that was handed to the stream."""

    ACCEPTED = 'accepted'
    FULL = 'full'
    """Under `wait`: nothing was taken, and the grid pauses until there is room."""


class PolicyScope(Protocol):
    """
    One episode of a policy on the far side of a wire.

    `infer` runs on the runtime's thread and blocks; the others are called by the paced thread and
    never block.
    """

    def infer(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        """
        Ask the policy about `step` and return its outputs, undecoded into channels.

        Raises
        ------
        PolicyError
            The policy failed; carries the remote type and message.
        WorkerLost
            No worker could be reached within the reconnect time.
        ActAbandoned
            The observation grew too old before an answer came: ask anew.
        Retired
            `retire` was called.

        """

    def observe(self, step: Step) -> Queued:
        """Hand a step that no act carries to the observation stream."""

    def skip(self, number: int) -> None:
        """Declare that the step of this number will never be sent."""

    def expect(self, next_ask: int) -> None:
        """Say which step the next ask will be, so that the stream sends only what is wanted."""

    def retire(self) -> None:
        """Give up the running act: its connection closes and `infer` returns or raises (R56)."""

    def close(self) -> None:
        """End the episode on the worker, best effort, and release its connections."""
