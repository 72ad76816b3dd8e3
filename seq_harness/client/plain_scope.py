"""One episode of a policy on a server that takes one question at a time, and no stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import time
from typing import Any, NoReturn
import uuid

from seq_harness.client.cancel import Cancel
from seq_harness.client.figures import ScopeFigures
from seq_harness.client.notices import Notices
from seq_harness.client.outage import Outage
from seq_harness.client.plain_link import Answered, PlainLink, Talk
from seq_harness.client.plain_websocket import AnswerTooLong, PROGRESS_S
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
    HandshakeRefused,
    Unreachable,
)
from seq_harness.client.unstreamed import UnstreamedScope
from seq_harness.playback.uplink import (
    ActAbandoned,
    PolicyError,
    Retired,
    Standing,
    StateLost,
    Step,
    WorkerLost,
)


@dataclass(frozen=True)
class PlainRules:
    """How the questions of an episode are asked."""

    address: str
    act_timeout_s: float
    max_request_age_s: float
    reconnect_s: float
    keeps_state: bool
    """Whether a connection that is lost after an answer takes the episode along."""


class PlainScope(UnstreamedScope):
    """
    Ask over one conversation, which every episode of a policy shares.

    No question is sent twice: one whose answer never came is abandoned and asked anew, about a
    newer step, over another connection, so that a late answer is never taken for its own.
    Where the policy keeps state, that is done only before the first answer of the episode.
    """

    def __init__(
        self, rules: PlainRules, link: PlainLink, notices: Notices, clock_ns: Callable[[], int]
    ) -> None:
        """`clock_ns` reads the playback clock, which an observation's age is counted on."""
        super().__init__()
        self._rules = rules
        self._link = link
        self._notices = notices
        self._clock_ns = clock_ns
        self._outage = Outage(rules.address, rules.reconnect_s)
        self._episode_id = uuid.uuid4().hex
        self._opened_before = link.opened
        self._begun: Talk | None = None  # knows of the episode; belongs to the thread that acts
        self._asking = False  # written by that thread
        self._answered: Talk | None = None  # gave the last answer; belongs to that thread too

    def figures(self) -> ScopeFigures:
        """Return what this episode did on the wire so far; may be called from any thread."""
        reconnects = max(0, self._link.opened - self._opened_before)
        return ScopeFigures(self._tally.figures(), reconnects=reconnects)

    def standing(self) -> Standing:
        """Say whether the connection is being made again; these servers answer no pings."""
        away = self._outage.lasted_s is not None and not self._asking
        return Standing.AWAY if away else Standing.THERE

    def _ask(self, step: Step, cancel: Cancel) -> Any:
        talk = self._talk(step, cancel)
        began_s = time.perf_counter()
        try:
            # Called in this order: it is noted before the connection ends.
            with cancel.calling(lambda: self._link.give_up(talk)):
                answer = self._question(talk, step, cancel)
        except AnswerTimedOut as error:
            self._link.give_up(talk)
            self._link.drop(talk)
            self._check_state(str(error))
            raise ActAbandoned(f'step {step.number}: {error}') from error
        except AnswerTooLong as error:
            self._link.drop(talk)
            raise PolicyError(f'the answer is longer than is read: {error}') from error
        except ConnectionLost as error:
            self._link.drop(talk)
            self._lost(step, cancel, error)
        except (PolicyError, ValueError):
            if not talk.is_open:
                self._link.drop(talk)
            raise
        self._back()
        self._answered = talk
        self._tally.answered((time.perf_counter() - began_s) * 1e3, answer.infer_ms)
        return answer.outputs

    def _question(self, talk: Talk, step: Step, cancel: Cancel) -> Answered:
        within_s = self._rules.act_timeout_s
        if talk is not self._begun:
            self._begun = talk
            talk.begin(self._episode_id, within_s, cancel)

        def waiting(waited_s: float) -> None:
            text = f'{self._rules.address} has not answered for {waited_s:.0f} s'
            self._notices.say('slow', text, again_s=PROGRESS_S / 2)

        self._asking = True
        try:
            return talk.ask(step.observation, within_s, cancel, waiting)
        finally:
            self._asking = False

    def _talk(self, step: Step, cancel: Cancel) -> Talk:
        """Return a conversation that may be asked; until it is, trying again is safe."""
        while True:
            self._check_age(step, cancel)
            self._check_state('it was closed between two questions')
            try:
                within_s = self._opening_s()
                talk = self._link.connection(within_s, cancel)
            except Unreachable as error:
                self._check_age(step, cancel)
                self._notices.say('link', f'the server is away: {error}')
                cancel.wait(self._outage.failed(str(error)))
            except HandshakeRefused as error:
                raise WorkerLost(str(error)) from error
            else:
                self._check_state('it was closed as a question began', talk)
                return talk

    def _opening_s(self) -> float:
        if self._link.is_open or self._link.given_up:
            # A server may greet nobody until it has answered what we gave up.
            return self._rules.act_timeout_s
        return self._outage.began()

    def _check_age(self, step: Step, cancel: Cancel) -> None:
        if cancel.is_set():
            raise Retired(f'step {step.number} was given up')
        age_s = (self._clock_ns() - step.t_ns) / 1e9
        if age_s > self._rules.max_request_age_s:
            raise ActAbandoned(
                f'step {step.number} was not answered, and its observation is {age_s:.1f} s '
                f'old: after {self._rules.max_request_age_s:g} s it is asked anew'
            )

    def _check_state(self, reason: str, talk: Talk | None = None) -> None:
        """See that the conversation of the last answer is there, and is `talk` where one is."""
        answered = self._answered
        if answered is None or not self._rules.keeps_state:
            return
        if not answered.is_open or talk not in (None, answered):
            raise StateLost(
                f'the connection to {self._rules.address} was lost after an answer ({reason}), '
                'and with it what the policy knew of the episode; where it knows nothing between '
                'questions, server_keeps_state: false has the next one asked over another'
            )

    def _lost(self, step: Step, cancel: Cancel, error: ConnectionLost) -> NoReturn:
        if cancel.is_set():
            raise Retired(f'step {step.number} was given up') from error
        self._check_state(str(error))
        self._notices.say('link', f'the server is away: {error}')
        cancel.wait(self._outage.failed(str(error)))
        raise ActAbandoned(f'step {step.number}: the connection was lost: {error}') from error

    def _back(self) -> None:
        lasted_s = self._outage.over()
        if lasted_s is not None and lasted_s > 0:
            self._notices.say('link', f'the server is back after {lasted_s:.1f} s')
