"""The one question that a player has in flight, and when the next one is due."""

from __future__ import annotations

from dataclasses import dataclass

from seq_harness.playback.ahead import LookAhead
from seq_harness.playback.answer import Answer
from seq_harness.playback.asking import Asking
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.expiry import Expiry
from seq_harness.playback.plan import Plan
from seq_harness.playback.session import CEILING_NS, FLOOR_NS, Observation, POLL_NS
from seq_harness.playback.statistics import Statistics
from seq_harness.playback.uplink import ActAbandoned, Standing, standing_of, Uplink


@dataclass
class Ask:
    """One question in flight."""

    answer: Answer[Chunk | None]
    t: int
    age_ns: int
    """How old the observation was when it was asked about."""
    emitted_since: int
    """Rows emitted since, those of its own round included."""
    expected_rows: int | None
    """How many of them the policy was told to expect; None where it was told nothing."""
    orphan: bool = False
    seen_ns: int | None = None
    """When a call first found the answer there, though it waits to be read."""


@dataclass(frozen=True)
class Answered:
    """An ask whose answer is to be played: None brought nothing new."""

    chunk: Chunk | None
    ask: Ask
    expired: bool
    """Whether the observation had become too old when the answer came."""


class Inquiry:
    """At most one call in flight (R27), orphans included (R36)."""

    def __init__(
        self,
        uplink: Uplink,
        asking: Asking,
        look_ahead: LookAhead | None,
        expiry: Expiry,
        statistics: Statistics,
    ) -> None:
        self._uplink = uplink
        self._asking = asking
        self._look_ahead = look_ahead
        self._expiry = expiry
        self._statistics = statistics
        self._ask: Ask | None = None
        self._backoff_ns = 0
        self.may_ask = True
        """Whether the last ask that was due could start."""
        self.at_ns: int | None = None
        """When the next ask falls due, while none is in flight; None for at once."""

    @property
    def pending(self) -> bool:
        """Whether a call is in flight."""
        return self._ask is not None

    @property
    def asked_ns(self) -> int | None:
        """When the call in flight was asked; None without one."""
        return None if self._ask is None else self._ask.t

    def standing(self) -> Standing:
        """Say how the call in flight stands."""
        return standing_of(self._uplink)

    @property
    def answered(self) -> bool:
        """Whether the call in flight has an answer that can be read."""
        return self._ask is not None and self._ask.answer.done()

    def wanted(self, t: int) -> bool:
        """Tell whether a new ask is due and may start."""
        return self._ask is None and (self.at_ns is None or t >= self.at_ns)

    def start(self, observation: Observation, t: int, plan: Plan | None, rows: int) -> None:
        """Ask about the observation of the round at `t`, in which `rows` of `plan` go out."""
        self.may_ask = False
        if self._expiry.refuses(observation, t):
            self._statistics.expired_observations += 1
            self.at_ns = t + POLL_NS
            return
        delay_ns = self._asking.expected_ns()
        ahead = None
        if self._look_ahead is not None:
            ahead = self._look_ahead.sample(plan, t, rows > 0, delay_ns)
        answer = self._uplink.ask(observation, t, *([ahead] if ahead else []))
        if answer is None:
            self.at_ns = t + POLL_NS
            return
        self._statistics.note_ask(delay_ns)
        self._statistics.short_plans += ahead is not None and ahead.short
        self.may_ask = True
        self.at_ns = None
        age_ns = self._expiry.age_ns(observation, t)
        expected = ahead.delay_rows if ahead else None
        # The row of this round is row 0 of the answer, however many it merged.
        self._ask = Ask(answer, t, age_ns, min(rows, 1), expected)

    def note_emitted(self, rows: int) -> None:
        """Count rows that go out while a call is in flight."""
        if self._ask is not None:
            self._ask.emitted_since += rows

    def see(self, t: int) -> None:
        """Note that an answer which is there waits: it is not late because of that."""
        if self._ask is not None and self._ask.seen_ns is None and self._ask.answer.done():
            self._ask.seen_ns = t

    def read(self, t: int) -> Answered | None:
        """
        Return the answer that is there and that somebody waits for.

        Raises
        ------
        Exception
            Whatever the inference raised (R34); the next call asks afresh.

        """
        ask = self._ask
        if ask is None or not ask.answer.done():
            return None
        # In-flight state is cleared before reading, so that a failure leaves a fresh ask (R34).
        self._ask = None
        try:
            chunk = ask.answer.result()
        except ActAbandoned:
            self._statistics.abandoned += 1
            return None
        except ChunkRefused:
            raise
        except Exception:
            self._statistics.failed += 1
            raise
        self._statistics.answered += 1
        if ask.orphan:
            self.at_ns = t + FLOOR_NS
            return None
        delay_ns = (t if ask.seen_ns is None else ask.seen_ns) - ask.t
        self._statistics.answer_delay.add(delay_ns)
        self._asking.answered(delay_ns)
        return Answered(chunk, ask, self._expiry.expired(ask.age_ns, t - ask.t))

    def place(self, plan: Plan) -> None:
        """Commit the next ask to the step at which it falls due while `plan` plays."""
        self._backoff_ns = 0
        self.at_ns = self._uplink.commit(self._asking.due_ns(plan))

    def back_off(self, t: int) -> None:
        """Space out asks that bring nothing: from POLL, doubling, to 1 s (R13)."""
        self._backoff_ns = min(max(POLL_NS, 2 * self._backoff_ns), CEILING_NS)
        self.at_ns = t + self._backoff_ns

    def put_off(self, plan: Plan) -> None:
        """Ask no sooner than `plan` wants, after what brought nothing."""
        self.at_ns = max(self.at_ns or 0, self._asking.due_ns(plan))

    def orphan(self) -> None:
        """Have the answer of the call in flight thrown away when it lands (R35)."""
        if self._ask is not None:
            self._ask.orphan = True
        self.at_ns = None

    def drop(self) -> None:
        """Forget the call in flight: nobody will read it."""
        self._ask = None
