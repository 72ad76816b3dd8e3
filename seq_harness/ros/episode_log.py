"""What is said of episodes: each begin and end once, and once how chunks and answers go."""

from __future__ import annotations

from collections.abc import Callable

from seq_harness.harness import Report, State
from seq_harness.playback.modes import Mode
from seq_harness.playback.pace import measured_pace
from seq_harness.ros.diagnostics import is_wanted_end


class EpisodeLog:
    """Says what is new in the reports of a harness; used by the executor's thread alone."""

    def __init__(
        self,
        say: Callable[[str], object],
        warn: Callable[[str], object],
        fail: Callable[[str], object],
    ) -> None:
        self._say = say
        self._warn = warn
        self._fail = fail
        self._said = (0, State.IDLE)
        self._told: set[bool] = set()

    def changed(self, report: Report) -> None:
        """Say that an episode has begun, was held or has ended."""
        if (report.number, report.state) == self._said:
            return
        self._said = (report.number, report.state)
        if report.state is not State.IDLE:
            self._say(f'episode {report.number}: {report.state.value}')
        elif is_wanted_end(report.reason):
            self._say(f'episode {report.number} ended: {report.reason}')
        elif report.reason:
            self._fail(f'episode {report.number} ended: {report.reason}')

    def progressed(self, report: Report, mode: Mode) -> None:
        """Say once that the arm stands between chunks, and once that its lead came to nothing."""
        pace = measured_pace(mode, report.figures)
        if pace is not None and pace.stands and pace.drains not in self._told:
            self._told.add(pace.drains)
            self._warn(str(pace))
