"""The newest message of each input, its stamp and its age, undecoded until someone needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast, Protocol

from seq_harness.messages.compressed_image import check_compressed
from seq_harness.messages.joints import Field, joint_values
from seq_harness.messages.raw_image import check_image
from seq_harness.messages.refusals import ImageRefused, JointsRefused
from seq_harness.settings import InputSettings
from seq_harness.settings.parameters import COMPRESSED_IMAGE, IMAGE, JOINT_STATE

EARLY_NS = 100_000_000
"""A stamp further ahead of the node's clock than this was made by another clock."""

LATE_NS = 10_000_000_000
"""A stamp further behind than this was made by another clock, or belongs to another run."""


@dataclass(frozen=True)
class Sample:
    """The newest of one input; immutable, so any thread may read it."""

    value: Any
    """A reference to the message, or for joints their values by name."""
    stamp_ns: int
    """Its ROS time: the header's where that is plausible, else its arrival's."""
    born_ns: int
    """When it was made, on the playback clock: its arrival less its age at arrival."""


Snapshot = Mapping[str, Sample]
"""Input name to sample: what a round reads."""


class Verdict(Enum):
    """What became of a message at its arrival."""

    ACCEPTED = 'accepted'
    RESTAMPED = 'restamped'
    """Accepted, aged from its arrival because its stamp is implausible."""
    REFUSED = 'refused'
    """It does not refresh the input."""


@dataclass(frozen=True)
class Arrival:
    """The verdict on a message, and its reason where it is not plainly accepted."""

    verdict: Verdict
    reason: str = ''


class _Slot(Protocol):
    def store(self, message: Any, stamp_ns: int, born_ns: int) -> None: ...

    def sample(self) -> Sample | None: ...


class _MessageSlot:
    """Keeps the newest message that passes its cheap check."""

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check
        self._newest: Sample | None = None

    def store(self, message: Any, stamp_ns: int, born_ns: int) -> None:
        self._check(message)
        self._newest = Sample(message, stamp_ns, born_ns)

    def sample(self) -> Sample | None:
        return self._newest


class _JointSlot:
    """Merges joints by name over messages; as old as its oldest joint (G3)."""

    def __init__(self, settings: InputSettings) -> None:
        self._settings = settings
        self._joints: dict[str, tuple[float, int, int]] = {}
        self._newest: Sample | None = None

    def store(self, message: Any, stamp_ns: int, born_ns: int) -> None:
        # The settings allow no other fields.
        field = cast(Field, self._settings.field)
        found = joint_values(message, self._settings.joints, field)
        for name, value in found.items():
            self._joints[name] = (value, stamp_ns, born_ns)
        if len(self._joints) < len(self._settings.joints):
            return
        values = {name: value for name, (value, _, _) in self._joints.items()}
        stamp_ns = min(stamp for _, stamp, _ in self._joints.values())
        born_ns = min(born for _, _, born in self._joints.values())
        self._newest = Sample(values, stamp_ns, born_ns)

    def sample(self) -> Sample | None:
        return self._newest


_CHECKS = {IMAGE: check_image, COMPRESSED_IMAGE: check_compressed}


def _slot(settings: InputSettings) -> _Slot:
    if settings.type == JOINT_STATE:
        return _JointSlot(settings)
    return _MessageSlot(_CHECKS[settings.type])


class Inputs:
    """
    Store what arrives and say what is missing or too old.

    The executor's thread calls `put`; the paced thread reads. Each slot's newest sample is an
    immutable value that is replaced whole.
    """

    def __init__(self, settings: Iterable[InputSettings]) -> None:
        self._settings = {item.name: item for item in settings}
        self._slots: dict[str, _Slot] = {
            name: _JointSlot(item)
            if item.type == JOINT_STATE
            else _MessageSlot(_CHECKS[item.type])
            for name, item in self._settings.items()
        }
        self._max_age_ns = {
            name: round(item.max_age_s * 1e9) for name, item in self._settings.items()
        }

    def put(self, name: str, message: Any, *, now_ns: int, ros_now_ns: int) -> Arrival:
        """
        Take a message that arrived at `now_ns` of the playback clock, `ros_now_ns` of ROS time.

        A message that fails its check does not refresh the age (G12).
        """
        stamp_ns, age_ns, odd = self._aged(name, message, ros_now_ns)
        try:
            self._slots[name].store(message, stamp_ns, now_ns - age_ns)
        except (ImageRefused, JointsRefused) as error:
            return Arrival(Verdict.REFUSED, f'{self._settings[name].topic}: {error}')
        if odd:
            return Arrival(Verdict.RESTAMPED, f'{self._settings[name].topic}: {odd}')
        return Arrival(Verdict.ACCEPTED)

    def snapshot(self) -> Snapshot:
        """Return the newest sample of every input that has one; references, no copies."""
        taken = ((name, slot.sample()) for name, slot in self._slots.items())
        return {name: sample for name, sample in taken if sample is not None}

    def missing(self, snapshot: Snapshot) -> list[str]:
        """Name the inputs that have no value yet."""
        return [name for name in self._slots if name not in snapshot]

    def stale(self, snapshot: Snapshot, t: int) -> list[str]:
        """Name the inputs that are older than they may be at `t`."""
        return [
            name
            for name, sample in snapshot.items()
            if t > sample.born_ns + self._max_age_ns[name]
        ]

    def expiry_ns(self, snapshot: Snapshot) -> int | None:
        """Return the first instant after which an input is too old; None without inputs."""
        return min(
            (sample.born_ns + self._max_age_ns[name] for name, sample in snapshot.items()),
            default=None,
        )

    def age_ns(self, snapshot: Snapshot, t: int) -> int:
        """Return the age of the oldest input at `t`; 0 without inputs."""
        return max((t - sample.born_ns for sample in snapshot.values()), default=0)

    def clear(self) -> None:
        """Forget every value, as after a jump of the clock."""
        self._slots = {name: _slot(item) for name, item in self._settings.items()}

    def _aged(self, name: str, message: Any, ros_now_ns: int) -> tuple[int, int, str]:
        """Return the stamp to use, the age at arrival, and what is odd about the header's."""
        if self._settings[name].stamp == 'arrival':
            return ros_now_ns, 0, ''
        header = message.header.stamp
        stamp_ns = header.sec * 1_000_000_000 + header.nanosec
        age_ns = ros_now_ns - stamp_ns
        if stamp_ns == 0:
            return ros_now_ns, 0, 'the header stamp is zero; its arrival is used instead'
        if age_ns < -EARLY_NS or age_ns > LATE_NS:
            return (
                ros_now_ns,
                0,
                f'the header stamp is {age_ns / 1e9:.3f} s before now, not within '
                f'[{-EARLY_NS / 1e9:g}, {LATE_NS / 1e9:g}] s; its arrival is used instead',
            )
        return stamp_ns, max(0, age_ns), ''
