"""What becomes of a loop that is late: what it held is of the past."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
import logging

from seq_harness.harness.holding import Holding
from seq_harness.harness.running import Running
from seq_harness.playback.session import POLL_NS

logger = logging.getLogger(__name__)

LATE_PERIODS, LATE_NS = 3, 100_000_000
"""Later than so many row periods, and than so long, nothing of the old plan goes out."""

FROZEN_NS = 500_000_000
"""A loop that comes so late was frozen: its episode ends."""

AGAIN_NS = 10_000_000_000
"""So does that of a loop which is late twice within this time."""

STALLED = 'loop_stalled'
"""Why an episode ends whose loop was stuck, or whose process was frozen."""


class Punctual(Enum):
    """How a loop comes to an instant."""

    ON_TIME = 'on_time'
    LATE = 'late'
    """What it held has been dropped; the policy is to be asked afresh."""
    STALLED = 'stalled'
    """The episode has to end."""


class Lateness:
    """Judge how late the loop is, and drop what is of the past; the paced thread's alone."""

    def __init__(self, holding: Holding, clock_step_ns: Callable[[], int]) -> None:
        """`clock_step_ns` is how far apart the readings of the clock itself lie."""
        self._holding = holding
        self._clock_step_ns = clock_step_ns

    def judge(self, running: Running, due_ns: int | None, now: int) -> Punctual:
        """Judge a loop at `now` that was to come at `due_ns`; None for no such instant."""
        # While nothing plays, nothing is of the past.
        if due_ns is None or not running.plays:
            return Punctual.ON_TIME
        bound_ns = min(max(LATE_PERIODS * running.opened.episode.period_ns, LATE_NS), FROZEN_NS)
        late_ns = now - due_ns
        # A clock that goes by leaps makes every loop late, and is asked only where that matters.
        if late_ns > bound_ns:
            late_ns -= self._clock_step_ns()
        if late_ns <= bound_ns:
            return Punctual.ON_TIME
        again = running.late_ns is not None and now - running.late_ns <= AGAIN_NS
        if late_ns > FROZEN_NS or again:
            logger.error('the loop was %.3f s late%s', late_ns / 1e9, ', again' if again else '')
            return Punctual.STALLED
        self._drop(running, late_ns, now)
        return Punctual.LATE

    def back_at(self, running: Running, now: int) -> int:
        """Return when a loop goes on that was late at `now`: once its inputs have come."""
        return now + max(POLL_NS, running.opened.episode.period_ns)

    def _drop(self, running: Running, late_ns: int, now: int) -> None:
        player = running.opened.player
        logger.warning(
            'the loop was %.3f s late: the %d rows that it held are dropped, and the policy is '
            'asked anew from where the robot is',
            late_ns / 1e9,
            player.held,
        )
        running.late_ns = now
        running.stalls += 1
        player.discard('late')
        self._holding.start_afresh(running, now)
