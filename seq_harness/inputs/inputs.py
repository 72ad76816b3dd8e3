"""The inputs of one harness: what arrives, what is missing and what is too old."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seq_harness.inputs.samples import Arrival, Snapshot, Verdict
from seq_harness.inputs.slots import At, make_slot
from seq_harness.inputs.stamps import Stamps
from seq_harness.messages.refusals import ImageRefused, JointsRefused
from seq_harness.settings import InputSettings
from seq_harness.settings.input_types import CAMERAS


class Inputs:
    """
    Store what arrives and say what is missing or too old.

    The executor's thread calls `put`; the paced thread reads. Each slot's newest sample is an
    immutable value that is replaced whole.
    """

    def __init__(
        self, settings: Iterable[InputSettings], *, max_camera_spread_s: float = 0.0
    ) -> None:
        """`max_camera_spread_s` bounds how far the stamps of cameras lie apart; 0 for no bound."""
        self._settings = {item.name: item for item in settings}
        self._slots = {name: make_slot(item) for name, item in self._settings.items()}
        self._stamps = {name: Stamps(item) for name, item in self._settings.items()}
        self._spread_ns = round(max_camera_spread_s * 1e9)
        self._required = [name for name, item in self._settings.items() if not item.is_status]
        self._limit_ns = {
            name: limit
            for name in self._required
            if (limit := _limit_ns(self._settings[name])) is not None
        }

    def put(
        self,
        name: str,
        message: Any,
        *,
        now_ns: int,
        ros_now_ns: int,
        topic: str = '',
        sequence: int | None = None,
    ) -> Arrival:
        """
        Take a message that arrived at `now_ns` of the playback clock, `ros_now_ns` of ROS time.

        `topic` is which of the input's topics; `sequence` what number the publisher gave it. A
        message that fails its check does not refresh the age (G12), nor does one with the stamp
        of the last of its topic and names.
        """
        item = self._settings[name]
        topic = topic or item.topic
        aged = self._stamps[name].judge(message, topic, now_ns, ros_now_ns)
        try:
            said = self._slots[name].store(message, At(topic, now_ns, aged, sequence))
        except (ImageRefused, JointsRefused) as error:
            return Arrival(Verdict.REFUSED, f'{topic}: {error}')
        if said:
            verdict = Verdict.UNAVAILABLE if item.is_status else Verdict.CONTESTED
            return Arrival(verdict, f'{topic}: {said}')
        if aged.odd:
            return Arrival(Verdict.RESTAMPED, f'{topic}: {aged.odd}')
        if aged.doubt and item.on_stale != 'continue':
            return Arrival(Verdict.AGEING, f'{topic}: {aged.doubt}')
        return Arrival(Verdict.ACCEPTED)

    def snapshot(self) -> Snapshot:
        """Return the newest sample of every input that has one; references, no copies."""
        taken = ((name, slot.sample()) for name, slot in self._slots.items())
        return {name: sample for name, sample in taken if sample is not None}

    def missing(self, snapshot: Snapshot) -> list[str]:
        """
        Name the inputs that have no value yet; a status that is absent is no input's.

        One whose first stamp is far off counts as absent until a stamp has advanced.
        """
        return [
            name for name in self._required if name not in snapshot or not snapshot[name].proven
        ]

    def stale(self, snapshot: Snapshot, t: int) -> list[str]:
        """Name the inputs that are older than they may be at `t`, or than other cameras."""
        old = [
            name
            for name, limit_ns in self._limit_ns.items()
            if name in snapshot and t > snapshot[name].born_ns + limit_ns
        ]
        return [*old, *(name for name in self._behind(snapshot) if name not in old)]

    def named(self, names: Iterable[str], snapshot: Snapshot) -> str:
        """Return the names of inputs for people, with what is wrong with their stamps."""

        def told(name: str) -> str:
            doubt = snapshot[name].doubt if name in snapshot else ''
            return f'{name} ({doubt})' if doubt else name

        return ', '.join(map(told, names))

    def held(self, snapshot: Snapshot, t: int) -> list[str]:
        """Name the inputs that are stale at `t` while their policy is to hold the arm."""
        return [
            name
            for name in self._required
            if self._settings[name].on_stale == 'hold'
            and name in snapshot
            and t > snapshot[name].born_ns + _max_age_ns(self._settings[name])
        ]

    def unavailable(self, snapshot: Snapshot, t: int) -> str | None:
        """Say which status keeps the arm from moving at `t`; None if none does."""
        for name, item in self._settings.items():
            if not item.is_status:
                continue
            sample = snapshot.get(name)
            if sample is None:
                return f'{item.topic} has said nothing yet'
            if t > sample.born_ns + _max_age_ns(item) and item.on_stale != 'continue':
                return f'{item.topic} has said nothing for {(t - sample.born_ns) / 1e9:.2f} s'
            if sample.value not in item.available:
                return f'{item.topic} says {sample.value!r}, not one of {list(item.available)}'
        return None

    def expiry_ns(self, snapshot: Snapshot) -> int | None:
        """Return the first instant after which an input is too old; None without inputs."""
        return min(
            (
                snapshot[name].born_ns + limit_ns
                for name, limit_ns in self._limit_ns.items()
                if name in snapshot
            ),
            default=None,
        )

    def age_ns(self, snapshot: Snapshot, t: int) -> int:
        """Return the age of the oldest input at `t`; 0 without inputs."""
        read = (snapshot[name] for name in self._required if name in snapshot)
        return max((t - sample.born_ns for sample in read), default=0)

    def clear(self) -> None:
        """Forget every value, as after a jump of the clock."""
        self._slots = {name: make_slot(item) for name, item in self._settings.items()}
        self._stamps = {name: Stamps(item) for name, item in self._settings.items()}

    def _behind(self, snapshot: Snapshot) -> list[str]:
        """Name the cameras whose newest frame is too far behind the newest of all."""
        stamps = {
            name: snapshot[name].stamp_ns
            for name in self._required
            if self._settings[name].type in CAMERAS and name in snapshot
        }
        if not self._spread_ns or not stamps:
            return []
        newest = max(stamps.values())
        return [name for name, stamp in stamps.items() if newest - stamp > self._spread_ns]


def _max_age_ns(item: InputSettings) -> int:
    return round(item.max_age_s * 1e9)


def _limit_ns(item: InputSettings) -> int | None:
    """Return the age at which an input ends the episode; None if it never does."""
    if item.on_stale == 'continue':
        return None
    return _max_age_ns(item) + (round(item.hold_s * 1e9) if item.on_stale == 'hold' else 0)
