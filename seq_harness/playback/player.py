"""The player: owns the chunk, answers what is due, and asks for the next one in time."""

from __future__ import annotations

from seq_harness.playback.ahead import LookAhead
from seq_harness.playback.anchors import Arrived
from seq_harness.playback.asking import Asking
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.emitting import Emitter
from seq_harness.playback.expiry import Expiry
from seq_harness.playback.freezing import Freezing, Measurements
from seq_harness.playback.guard import Guard
from seq_harness.playback.handoff import HandOff
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.inquiry import Answered, Ask, Inquiry
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.loading import Loading, Measured
from seq_harness.playback.plan import Plan
from seq_harness.playback.session import Commands, FLOOR_NS, Observation, POLL_NS
from seq_harness.playback.starvation import Starvation
from seq_harness.playback.starved_time import Barren
from seq_harness.playback.statistics import Statistics
from seq_harness.playback.tracking import Tracking
from seq_harness.playback.uplink import Uplink
from seq_harness.playback.upsampling import Upsampling
from seq_harness.playback.whole import WholeChunks

REFUSALS_IN_A_ROW = 3
"""So many chunks refused, or wholly past, one after the other, end the episode."""


class ChunkPlayer:
    """
    A session that plays chunks: `(observation, t) -> (commands, resume_at_ns)`.

    A pure function of its observations, answers and clock readings: it never waits, reads no
    clock and touches no device (R5).
    """

    def __init__(
        self,
        uplink: Uplink,
        *,
        asking: Asking,
        handoff: HandOff,
        guard: Guard | None = None,
        measured: Measured | None = None,
        kinds: Kinds | None = None,
        horizon: Horizon | None = None,
        look_ahead: LookAhead | None = None,
        upsampling: Upsampling | None = None,
        starvation: Starvation | None = None,
        expiry: Expiry | None = None,
        tracking: Tracking | None = None,
        freezing: Freezing | None = None,
        still: Measurements | None = None,
        whole: WholeChunks | None = None,
    ) -> None:
        """
        Put the parts together.

        `measured` bounds a first row, and is what `tracking` compares commands to; `still` gives
        `freezing` for how long what is measured has been the same.
        """
        self.statistics = Statistics()
        self.finished: str | None = None
        """Why the episode is over for this player, once it is."""
        self._inquiry = Inquiry(uplink, asking, look_ahead, expiry or Expiry(), self.statistics)
        self._kinds = kinds or Kinds()
        self._loading = Loading(
            horizon or Horizon(), handoff, self._kinds, upsampling, guard, measured
        )
        self._starvation = starvation or Starvation(self._kinds)
        self._tracking = tracking
        self._freezing = freezing
        self._still = still
        self._whole = whole or WholeChunks((), 0)
        self._emitter = Emitter(self._kinds, guard, self._whole, self._starvation, self.statistics)
        self._plan: Plan | None = None
        self._starved_since: int | None = None
        self._fed = False  # since the start or a cancel
        self._round_ns = 0
        self._refusals = 0
        self._cancelled = False

    @property
    def held(self) -> int:
        """How many rows are anchored and not yet answered."""
        return self._plan.held if self._plan else 0

    @property
    def last_due_ns(self) -> int | None:
        """Return the due instant of the newest row that the last call answered; None if none."""
        return self._emitter.last_due_ns

    @property
    def last_sampled_ns(self) -> int | None:
        """Return the instant of the observation which that row answers."""
        return self._emitter.last_sampled_ns

    def starving_ns(self, t: int) -> int:
        """Return for how long no rows have been there at `t`, which no count holds yet."""
        since = self._starved_since
        return 0 if since is None else max(0, t - since)

    def upcoming(self, t: int) -> Commands | None:
        """Return the very commands that a call at `t` will most likely answer; None if unknown."""
        return None if self._plan is None else self._emitter.upcoming(self._plan, t)

    @property
    def loaded(self) -> bool:
        """Whether a chunk has been loaded since the player was made."""
        return self.statistics.chunks > 0

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        self._round_ns = t
        self._emitter.begin_round()
        self._starvation.time.resume(t, self._inquiry.standing)
        made = self._stopped(t) if self._cancelled else {}
        if (fault := self._not_following(observation, t)) is not None:
            made = {**made, **self._end_for(fault, t)}
        self._read_answer(observation, t)
        commands, rows = self._play(t)
        if not self._finishing and self._inquiry.wanted(t):
            self._inquiry.start(observation, t, self._plan, rows)
            # An answer given inline is read in the round that asked for it, and plays in it
            # unless the old plan does (R30).
            self._read_answer(observation, t)
            if not commands:
                commands, _ = self._play(t)
        # After rows whose plan is over in the same late round, what ends it is the newer.
        ended = self._note_end(observation, t)
        whole = self._emitter.whole(self._plan, t)
        if made or ended or whole:
            commands = {**made, **commands, **ended, **whole}
        return commands, self._resume_at(t)

    def cancel(self) -> None:
        """Drop the plan and the call in flight (R35); the next call sends what stops the robot."""
        self._inquiry.orphan()
        self._drop_plan('cancelled')
        self._end_starving(self._round_ns)
        self._fed = False
        self._cancelled = True

    def close(self) -> None:
        self.cancel()
        self._inquiry.drop()

    def discard(self, cause: str) -> None:
        """Drop what is held, and count it by its cause."""
        self._drop_plan(cause)

    def replan(self) -> None:
        """Ask anew as soon as no call is in flight, and drop that one's answer; rows play on."""
        self._inquiry.orphan()

    def postpone(self, by_ns: int, observation: Observation, t: int) -> None:
        """
        Play what is held `by_ns` later, from the measured state, and ask anew.

        Where the guard refuses that, it is dropped.
        """
        self._inquiry.orphan()
        plan = self._plan
        if plan is None:
            return
        self._emitter.clear()
        try:
            later = self._loading.prepare(plan.later(by_ns), self._emitter.record, observation)
        except ChunkRefused as error:
            self._drop_plan(error.cause)
            return
        self._begin(later, t)
        if not self._finishing:
            self._inquiry.place(later)

    def stop_commands(self, t: int) -> Commands:
        """Return what an end must send: zero for every rate, a hold for every whole-chunk plan."""
        return self._emitter.stop(t)

    def _stopped(self, t: int) -> Commands:
        commands = self.stop_commands(t)
        self._cancelled = False
        self._emitter.clear()
        return commands

    def _not_following(self, observation: Observation, t: int) -> tuple[str, str] | None:
        """Return why the robot does not follow, by its cause; None where it does."""
        record = self._emitter.record
        if self._tracking is not None:
            measured = self._loading.measured_of(observation)
            fault = self._tracking.fault(record, measured, t)
            if fault is not None:
                return 'tracking', f'guard: tracking error: {fault}'
        if self._freezing is not None and self._still is not None:
            starved = self._starved_since is not None
            frozen = self._freezing.fault(record, self._still(observation), t, starved=starved)
            if frozen is not None:
                return 'frozen', f'frozen_state: {frozen}'
        return None

    def _end_for(self, fault: tuple[str, str], t: int) -> Commands:
        cause, self.finished = fault
        self.statistics.refused[cause] += 1
        self._drop_plan(cause)
        self._inquiry.orphan()
        return self.stop_commands(t)

    def _read_answer(self, observation: Observation, t: int) -> None:
        if self._waits(t):
            self._inquiry.see(t)
            return
        try:
            abandoned = self.statistics.abandoned
            answered = self._inquiry.read(t)
            if answered is not None:
                self._take(answered, observation, t)
            elif self.statistics.abandoned > abandoned:
                self._starvation.time.barren(Barren.GIVEN_UP)
            if answered is not None or self.statistics.abandoned > abandoned:
                self._note_want(t)
        except ChunkRefused as error:
            self._starvation.time.barren(Barren.REFUSED)
            self.statistics.refused[error.cause] += 1
            self.statistics.last_refusal = str(error)
            self._count_refusal(f'chunk_refused: {error}', t)
            self._note_want(t)

    def _waits(self, t: int) -> bool:
        """Tell whether an answer waits for the plan, so that none of its rows is lost."""
        plan = self._plan
        ends = plan is not None and (t < plan.end_ns or plan.next_due_ns is not None)
        return self._loading.handoff.waits and ends

    def _note_want(self, t: int) -> None:
        """Starve from an answer on that leaves nothing to play."""
        if self._plan is None and self._starved_since is None:
            self._starved_since = t

    def _take(self, answered: Answered, observation: Observation, t: int) -> None:
        chunk, ask = answered.chunk, answered.ask
        chunk = chunk and self._loading.horizon.cut(chunk)
        if chunk is None:
            self._starvation.time.barren(Barren.EMPTY)
            self._inquiry.back_off(t)
        elif not chunk.rows:
            self._empty(chunk, t)
        elif answered.expired:
            self.statistics.scheduled += len(chunk.rows)
            self.statistics.note_drop('expired', len(chunk.rows))
            self._starvation.time.barren(Barren.EXPIRED)
            self._inquiry.back_off(t)
        else:
            self._load(chunk, ask, observation, t)

    def _empty(self, chunk: Chunk, t: int) -> None:
        self._starvation.time.barren(Barren.EMPTY)
        self._drop_plan('emptied')
        self.finished = f'policy:{chunk.end_reason}' if chunk.end_reason else None
        self._inquiry.back_off(t)

    def _load(self, chunk: Chunk, ask: Ask, observation: Observation, t: int) -> None:
        emitted, expected = ask.emitted_since, ask.expected_rows
        there_ns = t if ask.seen_ns is None else ask.seen_ns
        arrived = Arrived(chunk, t, ask.t, emitted, self._emitter.record, expected, there_ns)
        joined = self._loading.join(self._plan, arrived, observation)
        self.statistics.scheduled += len(chunk.rows)
        self.statistics.dropped.update(joined.dropped)
        self.statistics.late_answers += expected is not None and emitted > expected
        if joined.plan is None:
            self._pass_over(chunk, t)
            return
        self._refusals = 0
        self.statistics.chunks += 1
        self.statistics.chunk_ns = chunk.end_ns
        self.statistics.cut += joined.cut
        self._begin(joined.plan, t)
        if not self._finishing:
            self._inquiry.place(joined.plan)

    def _pass_over(self, chunk: Chunk, t: int) -> None:
        """Play on without a chunk whose rows' time is over; its end, if it has one, holds."""
        plan = self._plan
        if chunk.end_reason is not None:
            if plan is None:
                self.finished = f'policy:{chunk.end_reason}'
            else:
                plan.end_reason = chunk.end_reason
            return
        self._starvation.time.barren(Barren.PASSED)
        self._count_refusal('inference_slower_than_chunk', t)
        if plan is not None:
            plan.counted_by(len(chunk.rows), chunk.end_ns)
            self._inquiry.put_off(plan)

    def _begin(self, plan: Plan, t: int) -> None:
        self._end_starving(t)
        self._fed = True
        self._plan = plan
        self._emitter.begin(plan, t)

    def _end_starving(self, t: int) -> None:
        self.statistics.starved_ns += self.starving_ns(t)
        self._starved_since = None
        self._starvation.time.end()

    def _play(self, t: int) -> tuple[Commands, int]:
        """Return what is due, and how many rows that is."""
        if self._plan is None:
            return {}, 0
        commands, rows = self._emitter.pop(self._plan, t)
        self._inquiry.note_emitted(rows)
        return commands, rows

    @property
    def _finishing(self) -> bool:
        """Whether the policy has given its last rows, so that nothing more is asked."""
        ending = self._plan is not None and self._plan.end_reason is not None
        return ending or self.finished is not None

    def _note_end(self, observation: Observation, t: int) -> Commands:
        """Take up what follows the end of a plan; return what goes out while starved."""
        plan = self._plan
        if plan is not None:
            if plan.held or t < plan.end_ns:
                return {}
            if plan.end_reason is not None:
                self.finished = f'policy:{plan.end_reason}'
                return {}
            if plan.tail is not None and self._starvation.finishes:
                return self._finish(plan.tail, observation, t)
            if self._starved_since is None:
                self._starved_since = plan.end_ns
        since = self._starved_since
        if self.finished is not None:
            return {}
        self._starvation.time.leave(t, self._inquiry.asked_ns, self._inquiry.may_ask)
        self.finished = self._starvation.time.over()
        if since is None:
            return {}
        if self._fed:
            self.finished = self._starvation.over() or self.finished
        return self._emitter.starved(since, t)

    def _finish(self, tail: Plan, observation: Observation, t: int) -> Commands:
        """Play on beyond the open-loop horizon."""
        self.statistics.scheduled += tail.held
        self._plan = None
        try:
            plan = self._loading.prepare(tail, self._emitter.record, observation)
        except ChunkRefused as error:
            self.statistics.note_drop(error.cause, tail.held)
            self._starved_since = t
            return {}
        self._begin(plan, t)
        return self._play(t)[0]

    def _count_refusal(self, reason: str, t: int) -> None:
        self._refusals += 1
        if self._refusals >= REFUSALS_IN_A_ROW:
            self.finished = reason
        self._inquiry.back_off(t)

    def _drop_plan(self, cause: str) -> None:
        if self._plan is not None:
            self.statistics.note_drop(cause, self._plan.held)
        self._plan = None

    def _resume_at(self, t: int) -> int:
        plan, waits = self._plan, self._waits(t)
        # What is due already, such as rows of an answer that was read just now, comes next (R23).
        due = plan is not None and plan.next_due_ns is not None and plan.next_due_ns <= t
        if due or (self._inquiry.answered and not waits):
            return t + FLOOR_NS
        wanted = [self._starvation.next_ns, self._whole.next_ns]
        if plan is not None:
            wanted.append(plan.next_due_ns)
            if waits or plan.next_due_ns is None:
                wanted.append(plan.end_ns)
        if not self._inquiry.pending and not self._finishing:
            wanted.append(self._inquiry.at_ns)
        wanted.append(self._starvation.time.limit_at(t))
        instants = [instant for instant in wanted if instant is not None and instant > t]
        return min(instants, default=t + POLL_NS)
