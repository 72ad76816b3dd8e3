"""The player: owns the chunk, answers what is due, and asks for the next one in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from seq_harness.playback.answer import Answer
from seq_harness.playback.asking import Asking
from seq_harness.playback.channels import Vector
from seq_harness.playback.chunk import Chunk, ChunkRefused
from seq_harness.playback.guard import Emitted, Guard, merge
from seq_harness.playback.handoff import Arrived, HandOff
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.session import CEILING_NS, Commands, FLOOR_NS, Observation, POLL_NS
from seq_harness.playback.statistics import Statistics
from seq_harness.playback.uplink import ActAbandoned, Uplink

REFUSALS_IN_A_ROW = 3
"""So many chunks refused, or wholly past, one after the other, end the episode."""

Measured = Callable[[Observation], Mapping[str, Vector]]
"""Reads the measured state of each channel out of an observation."""


class _Ask:
    """One question in flight."""

    def __init__(self, answer: Answer[Chunk | None], t: int, emitted: int) -> None:
        self.answer = answer
        self.t = t
        self.emitted_since = emitted
        self.orphan = False


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
    ) -> None:
        """`measured` bounds a first row; it is read when a chunk loads and none has played."""
        self._uplink = uplink
        self._asking = asking
        self._handoff = handoff
        self._guard = guard
        self._measured = measured
        self._plan: Plan | None = None
        self._ask: _Ask | None = None
        self._ask_at_ns: int | None = None
        self._backoff_ns = 0
        self._refusals = 0
        self._last: dict[str, Emitted] = {}
        self._last_emission_ns: int | None = None
        self._starved_since: int | None = None
        self.statistics = Statistics()
        self.finished: str | None = None
        """Why the episode is over for this player, once it is."""
        self.last_due_ns: int | None = None
        """The due instant of the newest row that the last call answered; None if none."""
        self.last_sampled_ns: int | None = None
        """The instant of the observation which that row answers."""

    @property
    def held(self) -> int:
        """How many rows are anchored and not yet answered."""
        return self._plan.held if self._plan else 0

    @property
    def loaded(self) -> bool:
        """Whether a chunk has been loaded since the player was made."""
        return self.statistics.chunks > 0

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        self._read_answer(observation, t)
        commands = self._play(t)
        if self._wants_to_ask(t):
            self._start_ask(observation, t, emitted=1 if commands else 0)
            if not commands:
                # An answer given inline plays in the round that asked for it (R30).
                self._read_answer(observation, t)
                commands = self._play(t)
        self._note_end(t)
        return commands, self._resume_at(t)

    def cancel(self) -> None:
        if self._ask is not None:
            self._ask.orphan = True
        if self._plan is not None:
            self._drop('cancelled', self._plan.held)
        self._plan = None
        self._ask_at_ns = None
        self._last.clear()

    def close(self) -> None:
        self.cancel()
        self._ask = None

    def _read_answer(self, observation: Observation, t: int) -> None:
        ask = self._ask
        if ask is None or not ask.answer.done():
            return
        # In-flight state is cleared before reading, so that a failure leaves a fresh ask (R34).
        self._ask = None
        try:
            chunk = ask.answer.result()
        except ActAbandoned:
            self.statistics.abandoned += 1
            return
        except ChunkRefused as error:
            self._refuse(error, t)
            return
        except Exception:
            self.statistics.failed += 1
            raise
        self.statistics.answered += 1
        if ask.orphan:
            self._ask_at_ns = t + FLOOR_NS
            return
        self.statistics.answer_delay.add(t - ask.t)
        self._asking.answered(t - ask.t)
        self._take(chunk, ask, observation, t)

    def _take(self, chunk: Chunk | None, ask: _Ask, observation: Observation, t: int) -> None:
        if chunk is None:
            self._back_off(t)
        elif not chunk.rows:
            self._drop('emptied', self.held)
            self._plan = None
            self.finished = f'policy:{chunk.end_reason}' if chunk.end_reason else None
            self._back_off(t)
        else:
            self._backoff_ns = 0
            self._load(chunk, ask, observation, t)

    def _load(self, chunk: Chunk, ask: _Ask, observation: Observation, t: int) -> None:
        joined = self._handoff.join(self._plan, Arrived(chunk, t, ask.t, ask.emitted_since))
        plan = joined.plan
        if plan is not None and self._guard is not None:
            measured = self._measured(observation) if self._measured else {}
            try:
                self._guard.check_plan(plan, self._last, measured)
            except ChunkRefused as error:
                self._refuse(error, t)
                return
        self.statistics.scheduled += len(chunk.rows)
        self.statistics.dropped.update(joined.dropped)
        if plan is None:
            self._count_refusal('inference_slower_than_chunk', t)
            return
        self._refusals = 0
        self._note_join(plan, t)
        self._plan = plan
        self.statistics.chunks += 1
        if not self._finishing:
            self._ask_at_ns = self._uplink.commit(self._asking.due_ns(plan))

    def _play(self, t: int) -> Commands:
        self.last_due_ns = self.last_sampled_ns = None
        due = self._plan.pop_due(t) if self._plan else []
        if self._plan is None or not due:
            return {}
        commands, due_ns = merge(due)
        if self._guard is not None:
            self._guard.check_emission(Waypoint(due_ns, commands), self._last)
        for name, value in commands.items():
            self._last[name] = Emitted(value, due_ns)
        self._count_emission(len(due), t)
        self.last_due_ns, self.last_sampled_ns = due_ns, self._plan.sampled_ns
        if self._ask is not None:
            self._ask.emitted_since += len(due)
        return commands

    def _count_emission(self, rows: int, t: int) -> None:
        self.statistics.emitted += 1
        self.statistics.merged += rows - 1
        if self._last_emission_ns is not None:
            gap_ns = t - self._last_emission_ns
            self.statistics.largest_gap_ns = max(self.statistics.largest_gap_ns, gap_ns)
        self._last_emission_ns = t

    def _wants_to_ask(self, t: int) -> bool:
        if self._ask is not None or self._finishing:
            return False
        return self._ask_at_ns is None or t >= self._ask_at_ns

    @property
    def _finishing(self) -> bool:
        """Whether the policy has given its last rows, so that nothing more is asked."""
        ending = self._plan is not None and self._plan.end_reason is not None
        return ending or self.finished is not None

    def _start_ask(self, observation: Observation, t: int, emitted: int) -> None:
        answer = self._uplink.ask(observation, t)
        if answer is None:
            self._ask_at_ns = t + POLL_NS
            return
        self.statistics.asked += 1
        self._ask_at_ns = None
        self._ask = _Ask(answer, t, emitted)

    def _note_end(self, t: int) -> None:
        plan = self._plan
        if plan is None or plan.held or t < plan.end_ns:
            self._end_starvation(t)
            return
        if plan.end_reason is not None:
            self.finished = f'policy:{plan.end_reason}'
        elif self._starved_since is None:
            self._starved_since = plan.end_ns

    def _end_starvation(self, t: int) -> None:
        if self._starved_since is not None:
            self.statistics.starved_ns += t - self._starved_since
            self._starved_since = None

    def _note_join(self, plan: Plan, t: int) -> None:
        self._end_starvation(t)
        waiting = plan.waiting()
        for name, value in waiting[0].commands.items() if waiting else ():
            if name in self._last:
                step = float(np.max(np.abs(value - self._last[name].value)))
                self.statistics.largest_join_step = max(self.statistics.largest_join_step, step)

    def _refuse(self, error: ChunkRefused, t: int) -> None:
        self.statistics.refused[str(error)] += 1
        self._count_refusal(f'chunk_refused: {error}', t)

    def _count_refusal(self, reason: str, t: int) -> None:
        self._refusals += 1
        if self._refusals >= REFUSALS_IN_A_ROW:
            self.finished = reason
        self._back_off(t)

    def _back_off(self, t: int) -> None:
        """Space out asks that bring nothing: from POLL, doubling, to 1 s (R13)."""
        self._backoff_ns = min(max(POLL_NS, 2 * self._backoff_ns), CEILING_NS)
        self._ask_at_ns = t + self._backoff_ns

    def _drop(self, cause: str, rows: int) -> None:
        if rows:
            self.statistics.dropped[cause] += rows

    def _resume_at(self, t: int) -> int:
        if self._ask is not None and self._ask.answer.done():
            return t + FLOOR_NS
        wanted = [] if self._plan is None else [self._plan.next_due_ns]
        if self._plan is not None and t < self._plan.end_ns and not self._plan.held:
            wanted.append(self._plan.end_ns)
        if self._ask is None and not self._finishing:
            wanted.append(self._ask_at_ns)
        instants = [instant for instant in wanted if instant is not None and instant > t]
        return min(instants, default=t + POLL_NS)
