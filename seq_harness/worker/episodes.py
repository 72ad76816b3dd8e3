"""The episodes that are open, as the event loop sees them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from seq_harness.contract.episode import Episode
from seq_harness.worker.acts import Act, Ledger, Turn
from seq_harness.worker.frames import BEFORE_FIRST

MOST_LOST = 4096
"""Ids of episodes that ended for idleness that are remembered."""

LOOSE_ANSWERS = 64
"""Answers kept of acts outside of any episode, for a re-send of one session."""

MOST_SESSIONS = 256
"""Sessions whose loose answers are kept."""


class OpenEpisode:
    """One open episode: the policy's part of it, its acts, and who waits for its frames."""

    def __init__(self, episode_id: str) -> None:
        self.policy_side = Episode(episode_id)
        self.acts = Ledger()
        self.turn = Turn()
        """Of the one act whose observations are being awaited, read or acted on."""
        self.started = False
        """Whether the policy was told of it; owned by the policy's thread."""
        self.observed = BEFORE_FIRST
        """The number of the last observation handed to the policy's `observe`."""
        self.was_lost = False
        """Whether its observations were let go of while its client still counts on them."""
        self.ended = False
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Let every act that waits for observations look again."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self, timeout_s: float) -> None:
        """Wait until something came for this episode, at most `timeout_s`."""
        try:
            await asyncio.wait_for(self._news.wait(), timeout_s)
        except asyncio.TimeoutError:
            return


class Episodes:
    """The open episodes by id, those lost to idleness, and acts outside of any."""

    def __init__(self) -> None:
        self._open: dict[str, OpenEpisode] = {}
        self._lost: OrderedDict[str, None] = OrderedDict()
        self._loose: OrderedDict[str, Ledger] = OrderedDict()

    def get(self, episode_id: str) -> OpenEpisode | None:
        """Return the episode if it is open."""
        return self._open.get(episode_id)

    def open(self, episode_id: str) -> OpenEpisode:
        """Return the episode, opened if it was not."""
        episode = self._open.get(episode_id)
        if episode is None:
            episode = self._open[episode_id] = OpenEpisode(episode_id)
        return episode

    def close(self, episode_id: str) -> OpenEpisode | None:
        """Take the episode out, wake what waits for it, and return it if it was open."""
        episode = self._open.pop(episode_id, None)
        if episode is not None:
            episode.ended = True
            episode.wake()
        return episode

    def other_than(self, episode_id: str | None) -> str | None:
        """Return the id of another open episode, if there is one."""
        return next((other for other in self._open if other != episode_id), None)

    def lose(self, episode_id: str) -> None:
        """Remember that the episode ended without its client having asked for it."""
        self._lost[episode_id] = None
        if len(self._lost) > MOST_LOST:
            self._lost.popitem(last=False)

    def is_lost(self, episode_id: str) -> bool:
        """Tell whether the episode ended so and has not begun again."""
        return episode_id in self._lost

    def find_again(self, episode_id: str) -> None:
        """Let an episode of this id begin again."""
        self._lost.pop(episode_id, None)

    def find(self, episode_id: str | None, session: str, request_id: str | None) -> Act | None:
        """Return the act that was taken under this id, in its episode or its session."""
        if episode_id is None:
            ledger = self._loose.get(session)
            return ledger.find(request_id) if ledger is not None else None
        episode = self._open.get(episode_id)
        return episode.acts.find(request_id) if episode is not None else None

    def loose(self, session: str) -> OpenEpisode:
        """Return an episode for one act outside of any; its answers are kept for the session."""
        episode = OpenEpisode('')
        episode.acts = self._loose.setdefault(session, Ledger(LOOSE_ANSWERS))
        episode.started = True
        self._loose.move_to_end(session)
        if len(self._loose) > MOST_SESSIONS:
            self._loose.popitem(last=False)
        return episode

    def has_answer(self, request_id: str) -> bool:
        """Tell whether the answer of an act of this id is kept."""
        ledgers = [episode.acts for episode in self._open.values()] + list(self._loose.values())
        found = [act for ledger in ledgers if (act := ledger.find(request_id)) is not None]
        return any(act.reply is not None for act in found)
