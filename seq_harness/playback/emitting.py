"""The last stage before the loop: merges what is due, guards it and takes it down."""

from __future__ import annotations

from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.guard import Guard
from seq_harness.playback.kinds import Kinds, ZERO
from seq_harness.playback.merging import merge
from seq_harness.playback.plan import Plan, Waypoint
from seq_harness.playback.record import Record
from seq_harness.playback.session import Commands
from seq_harness.playback.starvation import Starvation
from seq_harness.playback.statistics import Statistics
from seq_harness.playback.whole import WholeChunks


class Emitter:
    """Answer what goes out in a round; every command passes the guard and the record."""

    def __init__(
        self,
        kinds: Kinds,
        guard: Guard | None,
        whole: WholeChunks,
        starvation: Starvation,
        statistics: Statistics,
    ) -> None:
        self._kinds = kinds
        self._guard = guard
        self._whole = whole
        self._starvation = starvation
        self._statistics = statistics
        if guard is not None:
            statistics.guarded = guard.changed
        self._last_emission_ns: int | None = None
        self._made_up_ns = 0
        """How much time the emissions may have made up for that were late together."""
        self.record = Record()
        self.last_due_ns: int | None = None
        self.last_sampled_ns: int | None = None

    def begin_round(self) -> None:
        """Forget which row the last round answered."""
        self.last_due_ns = self.last_sampled_ns = None

    def clear(self) -> None:
        """Forget what was commanded: what comes next is bounded from the measured state."""
        self.record.clear()
        if self._guard is not None:
            self._guard.forget()

    def pop(self, plan: Plan, t: int) -> tuple[Commands, int]:
        """Return what of `plan` is due at `t`, and how many rows that is."""
        held, spacing_ns = plan.held, plan.spacing_ns(t)
        due = plan.pop_due(t)
        if not due:
            return {}, 0
        merged, rows = merge(due, self._kinds), held - plan.held
        again = self._again(due[0])
        self._made_up_ns = self._made_up_ns if again else 0
        commands = self._guarded(merged, spacing_ns, late=again or len(due) > 1)
        self._statistics.note_emission(rows, t, merged.due_ns, self._last_emission_ns)
        self._last_emission_ns = t
        self.last_due_ns, self.last_sampled_ns = merged.due_ns, merged.sampled_ns
        return self._whole.take(commands), rows

    def upcoming(self, plan: Plan, t: int) -> Commands | None:
        """Return what `pop` will answer at `t`, if that is a row's own commands as they are."""
        waypoint = plan.due_alone(t)
        if waypoint is None or self._again(waypoint):
            return None
        guard, last = self._guard, self.record.last
        if guard is None or guard.passes(waypoint, last, guard.longest_ns(plan.spacing_ns(t))):
            return waypoint.commands
        return None

    def starved(self, since: int, t: int) -> Commands:
        """Return what goes out at `t` in the place of rows, starved since `since`."""
        commands = self._starvation.due(since, self.record, t)
        if not commands:
            return {}
        self._statistics.filled += 1
        # A rate that falls to zero is not held to a step: nothing may keep it from stopping.
        falling = {n: value for n, value in commands.items() if self._kinds[n].starve == ZERO}
        others = {n: value for n, value in commands.items() if n not in falling}
        self.record.note(falling, t)
        try:
            self._made_up_ns = 0
            return {**falling, **self._whole.take(self._guarded(Waypoint(t, others)))}
        except ChunkRefused:
            # What only brings the robot to rest ends early rather than break a limit.
            self._starvation.give_up(self.record)
            return falling

    def begin(self, plan: Plan, t: int) -> None:
        """Note the step that leads onto a plan, which plays from now on."""
        self._starvation.end(self.record)
        self._whole.loaded(plan, t)
        first = next(iter(plan.emissions()), None)
        for name, value in first.commands.items() if first else ():
            if name in self.record.last:
                before = self.record.last[name].value
                self._statistics.note_join(self._kinds[name].distance(before, value))

    def stop(self, t: int) -> Commands:
        """Return zero for every rate, and a hold for every whole-chunk plan; these are no rows."""
        self.begin_round()
        return {**self._starvation.zeros(self.record), **self._whole.holds(self.record, t)}

    def whole(self, plan: Plan | None, t: int) -> Commands:
        """Return what is to be sent to whole-chunk controllers."""
        return self._whole.due(plan, self.record, t)

    def _again(self, waypoint: Waypoint) -> bool:
        """Tell whether a waypoint was due already when the last message went out."""
        return self._last_emission_ns is not None and waypoint.due_ns <= self._last_emission_ns

    def _guarded(self, waypoint: Waypoint, spacing_ns: int = 0, *, late: bool = False) -> Commands:
        """Return what may go out; messages that are late together make up for no more than one."""
        commands, record = waypoint.commands, self.record
        if self._guard is not None:
            longest_ns = max(0, self._guard.longest_ns(spacing_ns) - self._made_up_ns)
            commands = self._guard.check_emission(waypoint, record.last, longest_ns, late=late)
            if record.due_ns is not None:
                self._made_up_ns += min(longest_ns, waypoint.due_ns - record.due_ns)
        as_it_is = commands is waypoint.commands
        record.note(commands, waypoint.due_ns, waypoint.since_ns if as_it_is else None)
        return commands
