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
        self.record = Record()
        self.last_due_ns: int | None = None
        self.last_sampled_ns: int | None = None

    def begin_round(self) -> None:
        """Forget which row the last round answered."""
        self.last_due_ns = self.last_sampled_ns = None

    def pop(self, plan: Plan, t: int) -> tuple[Commands, int]:
        """Return what of `plan` is due at `t`, and how many rows that is."""
        held = plan.held
        due = plan.pop_due(t)
        if not due:
            return {}, 0
        merged, rows = merge(due, self._kinds), held - plan.held
        commands = self._guarded(merged)
        self._statistics.note_emission(rows, t, merged.due_ns, self._last_emission_ns)
        self._last_emission_ns = t
        self.last_due_ns, self.last_sampled_ns = merged.due_ns, merged.sampled_ns
        return self._whole.take(commands), rows

    def upcoming(self, plan: Plan, t: int) -> Commands | None:
        """Return what `pop` will answer at `t`, if that is a row's own commands as they are."""
        waypoint = plan.due_alone(t)
        if waypoint is None:
            return None
        passes = self._guard is None or self._guard.passes(waypoint, self.record.last)
        return waypoint.commands if passes else None

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

    def _guarded(self, waypoint: Waypoint) -> Commands:
        commands = waypoint.commands
        if self._guard is not None:
            commands = self._guard.check_emission(waypoint, self.record.last)
        self.record.note(commands, waypoint.due_ns)
        return commands
