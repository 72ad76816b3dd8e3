"""The frame store: the observations of all episodes, within the limits of the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from seq_harness.contract.obs_schedule import envelope, Schedule
from seq_harness.worker.frames import BEFORE_FIRST, EpisodeFrames, Frame
from seq_harness.worker.limits import Limits


class OverLimit(Exception):
    """An observation that there is no room for; says how much is held and allowed, of what."""


class TooManyEpisodes(Exception):
    """An episode that cannot be opened until another one ends."""


@dataclass
class _Episode:
    frames: EpisodeFrames
    last_act_ns: int
    acts_under_way: int = 0


class FrameStore:
    """
    Keep the observations of episodes until no act can read them any more.

    It does no I/O, reads no clock but `clock_ns`, and belongs to one thread. Nothing is evicted
    but by an act that was answered, an episode's end, or its idle time; what does not fit is
    refused whole.
    """

    def __init__(
        self,
        schedule: Schedule | None,
        limits: Limits,
        clock_ns: Callable[[], int],
        on_idle_end: Callable[[str], None] = lambda episode_id: None,
    ) -> None:
        self._schedule = schedule
        self._limits = limits
        self._clock_ns = clock_ns
        self._on_idle_end = on_idle_end
        self._episodes: dict[str, _Episode] = {}

    @property
    def nbytes(self) -> int:
        """Return the bytes of all observations that are held."""
        return sum(episode.frames.nbytes for episode in self._episodes.values())

    @property
    def episode_ids(self) -> list[str]:
        """Return the episodes that are open, the longest idle first."""
        return sorted(self._episodes, key=lambda name: self._episodes[name].last_act_ns)

    def observe(self, episode_id: str, frames: Iterable[Frame], skipped: Iterable[int]) -> int:
        """
        Store the observations of one post and return `through`.

        Raises
        ------
        OverLimit
            They do not all fit; none was stored.
        TooManyEpisodes
            The post would open one episode too many.

        """
        frames, skips = list(frames), {n for n in skipped if n >= 0}
        numbers = skips | {frame.number for frame in frames}
        episode = self._episodes.get(episode_id) or self._fresh()
        if numbers:
            fresh, fresh_skips = episode.frames.new(frames), episode.frames.new_skips(skips)
            nbytes = sum(frame.nbytes for frame in fresh)
            self._make_room(episode_id, episode.frames, len(fresh), nbytes, len(fresh_skips))
            self._open(episode_id, episode)
            episode.frames.count_from(min(numbers))
            episode.frames.skipped |= fresh_skips
            for frame in fresh:
                episode.frames.add(frame)
        return episode.frames.through()

    def take(self, episode_id: str, own: Frame) -> None:
        """
        Store the observation that an act carries, as the act is taken.

        Raises
        ------
        OverLimit
            It does not fit.
        TooManyEpisodes
            The act would open one episode too many.

        """
        episode = self._episodes.get(episode_id) or self._fresh()
        is_new = episode.frames.takes(own.number)
        if is_new:
            self._make_room(episode_id, episode.frames, 1, own.nbytes)
        self._open(episode_id, episode)
        if is_new:
            episode.frames.add(own)

    def pass_by(self, episode_id: str, number: int) -> None:
        """
        Note the number of an observation that an act carries and that no other act reads.

        Raises
        ------
        OverLimit
            Too many numbers are noted already.

        """
        frames = self._episodes[episode_id].frames
        if frames.takes(number):
            self._make_room(episode_id, frames, 0, 0, skips=1)
            frames.skipped.add(number)

    def begin_act(self, episode_id: str) -> None:
        """
        Note that an act of the episode is under way: until it ends, the episode is not idle.

        Raises
        ------
        TooManyEpisodes
            The act would open one episode too many.

        """
        episode = self._episodes.get(episode_id) or self._fresh()
        self._open(episode_id, episode)
        episode.acts_under_way += 1
        episode.last_act_ns = self._clock_ns()

    def end_act(self, episode_id: str) -> None:
        """Note that the act is no longer under way, however it went."""
        episode = self._episodes.get(episode_id)
        if episode is not None:
            episode.acts_under_way -= 1
            episode.last_act_ns = self._clock_ns()

    def first_missing(
        self, episode_id: str, number: int, refills: bool, every: bool
    ) -> int | None:
        """Return the first observation that the act at `number` still waits for."""
        return self._episodes[episode_id].frames.first_missing(number, refills, every)

    def ask_again(self, episode_id: str, refills: bool) -> None:
        """
        Note that an act of the episode was refused for missing observations.

        A client that cannot refill what came before this worker has had its one chance: from here
        on the episode is counted from the first observation that is held.
        """
        if not refills:
            self._episodes[episode_id].frames.count_from_held()

    def last_act(self, episode_id: str) -> int:
        """Return the number of the last answered act of the episode; -1 for none."""
        episode = self._episodes.get(episode_id)
        return episode.frames.last_act if episode is not None else BEFORE_FIRST

    def newest(self, episode_id: str, number: int) -> Frame | None:
        """Return the newest observation held up to `number`."""
        held = self._episodes[episode_id].frames.held
        newest = max((n for n in held if n <= number), default=None)
        return None if newest is None else held[newest]

    def between(self, episode_id: str, after: int, before: int) -> list[Frame]:
        """Return, in order, the observations held whose numbers lie between the two."""
        held = self._episodes[episode_id].frames.held
        return [held[n] for n in sorted(held) if after < n < before]

    def read(self, episode_id: str, number: int, own: Any) -> dict[str, Any]:
        """
        Return what the act at `number` reads: `observations` and their `steps`, oldest first.

        Steps that were skipped, or that came before this worker's first, are left out.
        """
        frames = self._episodes[episode_id].frames
        inputs = {n: frame.inputs for n, frame in frames.held.items()}
        return envelope(frames.read(number), inputs, own, number)

    def serve(self, episode_id: str, number: int) -> None:
        """Note that the act at `number` was answered; forget what no later act can read."""
        episode = self._episodes.get(episode_id)
        if episode is not None:
            episode.frames.serve(number)

    def drop(self, episode_id: str, number: int) -> None:
        """Forget an observation that turned out unreadable, so that no later act fails on it."""
        episode = self._episodes.get(episode_id)
        if episode is not None:
            episode.frames.drop(number)

    def end(self, episode_id: str) -> bool:
        """Forget the episode; tell whether it was open."""
        return self._episodes.pop(episode_id, None) is not None

    def expire(self) -> list[str]:
        """End every episode past its idle time; return their ids."""
        idle = [name for name in self.episode_ids if self._is_idle(self._episodes[name])]
        for episode_id in idle:
            self._end_idle(episode_id)
        return idle

    def _fresh(self) -> _Episode:
        return _Episode(EpisodeFrames(self._schedule), self._clock_ns())

    def _open(self, episode_id: str, episode: _Episode) -> None:
        if episode_id in self._episodes:
            return
        if len(self._episodes) >= self._limits.episodes and not self._end_longest_idle():
            raise TooManyEpisodes(
                f'{len(self._episodes)} episodes are open, the most this worker allows, and none '
                f'has been idle for {self._limits.episode_idle_s:g} s: end one first'
            )
        self._episodes[episode_id] = episode

    def _make_room(
        self, episode_id: str, frames: EpisodeFrames, fresh: int, nbytes: int, skips: int = 0
    ) -> None:
        limits = self._limits
        _check('observations', len(frames.held), fresh, limits.stream_frames)
        if skips:
            _check('skipped numbers', len(frames.skipped), skips, limits.skipped)
        if nbytes:
            _check('bytes of observations', frames.nbytes, nbytes, limits.stream_bytes)
        while nbytes and self.nbytes + nbytes > limits.worker_bytes:
            if not self._end_longest_idle(but=episode_id):
                raise OverLimit(
                    f'the worker holds {self.nbytes} bytes of observations and {nbytes} came; it '
                    f'allows {limits.worker_bytes} over all episodes: end the ones that are done'
                )

    def _end_longest_idle(self, but: str | None = None) -> bool:
        for episode_id in self.episode_ids:
            if episode_id != but and self._is_idle(self._episodes[episode_id]):
                self._end_idle(episode_id)
                return True
        return False

    def _end_idle(self, episode_id: str) -> None:
        del self._episodes[episode_id]
        self._on_idle_end(episode_id)

    def _is_idle(self, episode: _Episode) -> bool:
        idle_ns = self._clock_ns() - episode.last_act_ns
        return episode.acts_under_way == 0 and idle_ns >= self._limits.episode_idle_ns


def _check(what: str, held: int, new: int, limit: int) -> None:
    if new and held + new > limit:
        raise OverLimit(
            f'the episode holds {held} {what} and {new} came; a worker keeps {limit} of one '
            'episode: act more often, or send fewer'
        )
