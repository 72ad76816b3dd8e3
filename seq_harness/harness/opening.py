"""How an episode opens, or why it does not."""

from __future__ import annotations

from collections.abc import Callable
import logging

from seq_harness.harness.ending import reason_of
from seq_harness.harness.running import Opened
from seq_harness.playback.session import FLOOR_NS, require_session

logger = logging.getLogger(__name__)

REAP_S = 1.0
"""How long opening waits for calls of the last episode that were given up (R56)."""


class Opening:
    """Open episodes, one after the other; the paced thread's alone."""

    def __init__(self, open_episode: Callable[[], Opened], reap: Callable[[float], int]) -> None:
        """`reap` waits so many seconds for calls that were given up; returns how many run."""
        self._open_episode = open_episode
        self._reap = reap
        self._rate_said = False

    def open(self) -> Opened | str:
        """Return an episode, or the reason for which none opened."""
        left = self._reap(REAP_S)
        if left:
            return f'policy_busy: {left} call(s) of the last episode still run'
        try:
            opened = self._checked()
        except Exception as error:
            logger.exception('the episode did not open')
            return reason_of(error)
        self._say_rate(opened.episode.period_ns)
        return opened

    def _checked(self) -> Opened:
        """Open an episode; what is no session is closed again (R9, R54)."""
        opened = self._open_episode()
        try:
            require_session(opened.session)
        except Exception:
            opened.stack.close()
            raise
        return opened

    def _say_rate(self, period_ns: int) -> None:
        """Say once that rows come faster than rounds can, so that they will merge (R97)."""
        if period_ns < FLOOR_NS and not self._rate_said:
            logger.warning(
                'rows come every %.4f ms and rounds at most every %.4f ms: rows will be merged',
                period_ns / 1e6,
                FLOOR_NS / 1e6,
            )
            self._rate_said = True
