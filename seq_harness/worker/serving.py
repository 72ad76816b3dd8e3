"""A loaded policy being served: its episodes, their observations and their acts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
import logging
from typing import Any

from seq_harness.contract.episode import count_answered
from seq_harness.contract.errors import ErrorCode, Overloaded, Rejected, TransportError
from seq_harness.contract.obs_schedule import reads_past
from seq_harness.contract.wire import (
    DETAIL_FROM,
    DETAIL_REASON,
    EPISODE_LOST,
    FRAMES_MISSING,
    FRAMES_OVER_LIMIT,
)
from seq_harness.worker.acts import Act
from seq_harness.worker.ask import Ask, check_numbers
from seq_harness.worker.episodes import Episodes, OpenEpisode
from seq_harness.worker.frames import Frame
from seq_harness.worker.inference import (
    answer,
    LoadedPolicy,
    Reading,
    UnreadableFrame,
)
from seq_harness.worker.limits import Limits
from seq_harness.worker.reply import refuse, Reply
from seq_harness.worker.sizes import measure, TooManyValues
from seq_harness.worker.store import FrameStore, OverLimit, TooManyEpisodes
from seq_harness.worker.thread import PolicyThread

log = logging.getLogger('seq_harness.worker')


class Serving:
    """
    Take acts and observations, and run the acts one after another on the policy's thread.

    Everything here belongs to the event loop and blocks nowhere.
    """

    def __init__(
        self,
        loaded: LoadedPolicy,
        thread: PolicyThread,
        instance: str,
        limits: Limits,
        clock_ns: Callable[[], int],
        debug: bool,
    ) -> None:
        self.loaded = loaded
        self._thread = thread
        self._instance = instance
        self._limits = limits
        self._clock_ns = clock_ns
        self._debug = debug
        self._episodes = Episodes()
        self._store = FrameStore(loaded.schedule, limits, clock_ns, self._lose)
        self._reads_past = reads_past(loaded.schedule)
        self._acts: set[Act] = set()

    def observe(self, episode_id: str, frames: Sequence[tuple[int, Any]], skips: list[int]) -> int:
        """
        Store the observations of one post, by their numbers, and return `through`.

        Raises
        ------
        TransportError
            A frame is not as declared, or there is no room; nothing was stored.

        """
        check_numbers([*(number for number, _ in frames), *skips])
        measured = [self._frame(number, inputs) for number, inputs in frames]
        for frame in measured:
            self.loaded.check_posted(frame.inputs)
        try:
            through = self._store.observe(episode_id, measured, skips)
        except (OverLimit, TooManyEpisodes) as error:
            raise _no_room(error) from None
        if 0 in skips or any(frame.number == 0 for frame in measured):
            self._episodes.find_again(episode_id)
        if (episode := self._episodes.get(episode_id)) is not None:
            episode.wake()
        return through

    def end(self, episode_id: str) -> bool:
        """End an episode; tell whether it was open."""
        known = self._store.end(episode_id)
        self._close(episode_id)
        return known

    def expire(self) -> None:
        """End the episodes that have been idle for too long."""
        for episode_id in self._store.expire():
            log.info('episode %r ended: no act for %g s', episode_id, self._limits.episode_idle_s)

    def under_way(self, request_id: str | None) -> list[Act]:
        """Return the acts that are not answered yet, the oldest first."""
        acts = [a for a in self._acts if request_id is None or a.ask.request_id == request_id]
        return sorted(acts, key=lambda act: act.taken_ns)

    def answered(self, request_id: str) -> bool:
        """Tell whether the answer of an act of this id is kept."""
        return self._episodes.has_answer(request_id)

    def take(self, ask: Ask, session: str, nbytes: int) -> Act:
        """
        Take an act, or find the one that was taken under the same request id.

        Its own observation is stored now, so that it is not lost if the act fails.

        Raises
        ------
        TransportError
            The act cannot be taken; it has not run and will not.

        """
        before = self._episodes.find(ask.episode_id, session, ask.request_id)
        if before is not None:
            return _same(before, ask)
        warnings = self.loaded.check(ask)
        self._check_place(ask, nbytes)
        episode = self._enter(ask, session)
        act = Act(ask, self._clock_ns(), nbytes, partial(self._let_go, episode), warnings)
        episode.acts.add(act)
        self._acts.add(act)
        self._begin(act, episode)
        return act

    def _frame(self, number: int, inputs: Any) -> Frame:
        try:
            return Frame(number, inputs, measure(inputs, self._limits.message_values))
        except TooManyValues as error:
            raise Rejected(str(error)) from None

    def _check_place(self, ask: Ask, nbytes: int) -> None:
        waiting = sum([act.nbytes for act in self._acts])
        if len(self._acts) >= self._limits.acts or waiting + nbytes > self._limits.act_bytes:
            raise Overloaded(
                f'{len(self._acts)} acts of {waiting} bytes wait for the policy already'
            )
        alone = self.loaded.declaration.own_episodes
        if alone and self._episodes.other_than(ask.episode_id) is not None:
            raise Overloaded('the policy serves one episode at a time, and another one is open')
        if ask.number == 0 and ask.episode_id is not None:
            self._episodes.find_again(ask.episode_id)
        lost = ask.episode_id is not None and self._episodes.is_lost(ask.episode_id)
        if lost and self.loaded.keeps_state:
            raise TransportError(
                ErrorCode.CONFLICT,
                f'the episode was ended after {self._limits.episode_idle_s:g} s without an act, '
                'and what the policy kept of it is gone',
                hint='begin another episode',
                details={DETAIL_REASON: EPISODE_LOST, 'cause': 'idle'},
            )

    def _enter(self, ask: Ask, session: str) -> OpenEpisode:
        if ask.episode_id is None:
            return self._episodes.loose(session)
        own = None
        # Of a policy that only observes, a later act hands over what this one does not get to.
        if self.loaded.reads_past and ask.number is not None and ask.carries_own:
            own = self._frame(ask.number, ask.inputs)
        try:
            self._store.begin_act(ask.episode_id)
            if own is not None:
                self._store.take(ask.episode_id, own)
            elif ask.number is not None and ask.carries_own:
                self._store.pass_by(ask.episode_id, ask.number)
        except OverLimit as error:
            self._store.end_act(ask.episode_id)
            raise _no_room(error) from None
        except TooManyEpisodes as error:
            raise _no_room(error) from None
        lost = self._episodes.is_lost(ask.episode_id)
        self._episodes.find_again(ask.episode_id)
        episode = self._episodes.open(ask.episode_id)
        episode.was_lost |= lost
        return episode

    def _begin(self, act: Act, episode: OpenEpisode) -> None:
        """Hand an act to the policy's thread at once where it has nothing to wait for."""
        if not episode.turn.take_now():
            act.task = asyncio.create_task(self._wait(act, episode, has_turn=False))
        elif self._first_missing(act.ask, episode) is not None:
            act.task = asyncio.create_task(self._wait(act, episode, has_turn=True))
        else:
            self._start(act, episode)

    async def _wait(self, act: Act, episode: OpenEpisode, has_turn: bool) -> None:
        """Wait for the turn of an act and for what it reads, then have it run."""
        try:
            if not has_turn:
                await episode.turn.take()
            has_turn = True
            _check_open(episode)
            self._check_order(act.ask, episode)
            await self._all_here(act.ask, episode)
        except asyncio.CancelledError:
            self._forget(act, episode, has_turn)
            raise
        except Exception as error:
            self._refuse(act, episode, error)
        else:
            self._start(act, episode)

    def _start(self, act: Act, episode: OpenEpisode) -> None:
        """Give an act that is whole to the policy's thread, which calls back when it is done."""
        try:
            _check_open(episode)
            self._check_order(act.ask, episode)
            reading, number = self._reading(act.ask, episode)
        except Exception as error:
            self._refuse(act, episode, error)
            return
        run = partial(self.loaded.run, act, reading, episode)
        most = self._limits.message_bytes
        job = partial(answer, act, run, self._instance, self._clock_ns, most, self._debug)
        loop = asyncio.get_running_loop()

        def done(outcome: Reply | Exception) -> None:
            try:
                loop.call_soon_threadsafe(self._done, act, episode, number, outcome)
            except RuntimeError:
                return  # the loop is closed by now

        act.job = self._thread.start(partial(_outcome, job), done)

    def _done(
        self, act: Act, episode: OpenEpisode, number: int | None, outcome: Reply | Exception
    ) -> None:
        """Answer an act whose inference has ended."""
        if not isinstance(outcome, Reply):
            self._refuse(act, episode, outcome)
            return
        try:
            act.settle(outcome)
        finally:
            count_answered(episode.policy_side)
            if number is not None and not episode.ended:
                self._store.serve(episode.policy_side.id, number)
            self._put_away(act, episode)

    def _refuse(self, act: Act, episode: OpenEpisode, error: Exception) -> None:
        """Answer why an act failed; what is not the policy's last word may be asked again."""
        final = False
        if isinstance(error, UnreadableFrame):
            if act.ask.number is not None and not episode.ended:
                self._store.drop(episode.policy_side.id, error.number)
        elif isinstance(error, TransportError):
            final = act.job is not None and not error.body().retryable
        try:
            act.settle(refuse(self._instance, error, self._debug, act.ask.request_id))
        finally:
            if not final:
                episode.acts.forget(act)
            self._put_away(act, episode)

    def _put_away(self, act: Act, episode: OpenEpisode) -> None:
        """Let go of an act that was answered, and give the turn on."""
        episode.acts.trim()
        self._leave(act, episode)
        episode.turn.give()

    def _let_go(self, episode: OpenEpisode, act: Act) -> None:
        self._forget(act, episode, has_turn=True)

    def _forget(self, act: Act, episode: OpenEpisode, has_turn: bool) -> None:
        """Take back an act that nobody waits for any more and that never ran."""
        episode.acts.forget(act)
        self._leave(act, episode)
        if has_turn:
            episode.turn.give()

    def _leave(self, act: Act, episode: OpenEpisode) -> None:
        self._acts.discard(act)
        if act.ask.episode_id is not None and not episode.ended:
            self._store.end_act(act.ask.episode_id)

    def _reading(self, ask: Ask, episode: OpenEpisode) -> tuple[Reading, int | None]:
        """Return what an act whose observations are all here reads, and at which number."""
        schedule, episode_id = self.loaded.schedule, episode.policy_side.id
        if ask.number is None:
            alone = {'observations': [ask.inputs], 'steps': [0]}
            return Reading(ask.inputs if schedule is None else alone), None
        number, inputs = ask.number, ask.inputs
        if not ask.carries_own:
            newest = self._store.newest(episode_id, ask.number)
            if newest is None:
                raise _missing(ask.number)
            number, inputs = newest.number, newest.inputs
        before: tuple[Frame, ...] = ()
        if self.loaded.observes:
            before = tuple(self._store.between(episode_id, episode.observed, number))
        read = inputs if schedule is None else self._store.read(episode_id, number, inputs)
        return Reading(read, before), number

    def _first_missing(self, ask: Ask, episode: OpenEpisode) -> int | None:
        """Return the first observation beside its own that an act reads and that is not here."""
        every = self.loaded.observes or not ask.carries_own
        if ask.number is None or not (every or self._reads_past):
            return None
        upto = ask.number if ask.carries_own else ask.number + 1
        return self._store.first_missing(episode.policy_side.id, upto, ask.refills, every)

    async def _all_here(self, ask: Ask, episode: OpenEpisode) -> None:
        """Wait for the observations that the act reads beside its own."""
        loop = asyncio.get_running_loop()
        # What was here before the episode was lost does not come unasked.
        patience_s = 0.0 if episode.was_lost else self._limits.stream_wait_s
        deadline = loop.time() + patience_s
        while (missing := self._first_missing(ask, episode)) is not None:
            left_s = deadline - loop.time()
            if left_s <= 0:
                episode.was_lost = False
                self._store.ask_again(episode.policy_side.id, ask.refills)
                raise _missing(missing)
            await episode.news(left_s)
            _check_open(episode)

    def _check_order(self, ask: Ask, episode: OpenEpisode) -> None:
        if not self._reads_past or ask.number is None:
            return
        last = self._store.last_act(episode.policy_side.id)
        if ask.number <= last:
            raise TransportError(
                ErrorCode.CONFLICT,
                f'the act at observation {ask.number} comes after the one at {last}, and what it '
                'reads has been forgotten',
                hint='act at a newer observation; send a lost act again under its own request id',
            )

    def _lose(self, episode_id: str) -> None:
        self._close(episode_id)
        self._episodes.lose(episode_id)

    def _close(self, episode_id: str) -> None:
        episode = self._episodes.close(episode_id)
        if episode is None:
            return
        for act in self.under_way(None):
            if act.ask.episode_id == episode_id and act.job is not None and act.job.cancel():
                self._refuse(act, episode, _gone())
        self._thread.submit(partial(self.loaded.end, episode))


def _outcome(job: Callable[[], Reply]) -> Reply | Exception:
    """Run an act's job on the policy's thread; what it raises is its outcome."""
    try:
        return job()
    except Exception as error:
        return error
    except BaseException as error:  # would end the thread
        return RuntimeError(f'the act was ended by {error!r}')


def _same(act: Act, ask: Ask) -> Act:
    if act.ask.number != ask.number:
        raise TransportError(
            ErrorCode.CONFLICT,
            f'request id {ask.request_id!r} was taken for the act at observation '
            f'{act.ask.number}, and came again for {ask.number}',
            hint='make a new id for every act',
        )
    return act


def _check_open(episode: OpenEpisode) -> None:
    if episode.ended:
        raise _gone()


def _gone() -> TransportError:
    return TransportError(ErrorCode.GONE, 'the episode ended before the act was answered')


def _missing(number: int) -> TransportError:
    return TransportError(
        ErrorCode.CONFLICT,
        f'the act reads observation {number}, which did not come in time',
        hint='send again what was observed from there on, then the act under the same id',
        details={DETAIL_REASON: FRAMES_MISSING, DETAIL_FROM: number},
    )


def _no_room(error: OverLimit | TooManyEpisodes) -> TransportError:
    if isinstance(error, TooManyEpisodes):
        return Overloaded(str(error))
    return TransportError(
        ErrorCode.PAYLOAD_TOO_LARGE, str(error), details={DETAIL_REASON: FRAMES_OVER_LIMIT}
    )
