"""One act after another: each is sent until it is answered, too old, or given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import random
import time
from typing import Any, NoReturn

from seq_harness.client.cancel import Cancel
from seq_harness.client.figures import ActTally
from seq_harness.client.link import Link, OPEN_S
from seq_harness.client.notices import Notices
from seq_harness.client.outage import Outage
from seq_harness.client.packing import observation_pieces, packed_name, size_of
from seq_harness.client.posts import Question
from seq_harness.client.transport import (
    AnswerTimedOut,
    Connection,
    ConnectionLost,
    HandshakeRefused,
    NotReady,
    Part,
    Parts,
    Reply,
    Unreachable,
)
from seq_harness.client.uploader import Uploader
from seq_harness.client.verdict import judge, Judgement, Verdict
from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack
from seq_harness.contract.obs_schedule import Keys
from seq_harness.playback.uplink import (
    ActAbandoned,
    PolicyError,
    Retired,
    Standing,
    StateLost,
    Step,
    WorkerLost,
)

BUSY_FIRST_S = 0.05
BUSY_LAST_S = 1.0
"""How long to wait for a free place: from the first to the last, doubling, with jitter."""

MAX_RENEWALS = 5
"""How often one act has the worker's coordinates asked for anew."""

ASK_AFTER_S = 2.0
"""How long the worker may take to say what became of an act."""


class ObservationTooLarge(ValueError):
    """An act that the worker would not take for its size; says both sizes."""


@dataclass(frozen=True)
class ActRules:
    """How the acts of an episode are asked."""

    keys: Keys
    """The keys of an act's own observation; None sends all of it."""
    constants: Mapping[str, bytes]
    """Packed parts that the body of every act holds."""
    act_timeout_s: float
    max_request_age_s: float
    keeps_state: bool
    """Whether the policy loses something with its process."""
    runs_once: bool
    """Whether the worker runs an act once, however often it is sent."""
    max_message_bytes: int
    proven: str | None = None
    """The worker process that answered the warm-up, where one did."""


@dataclass(frozen=True)
class Wires:
    """What the acts of an episode go over."""

    link: Link
    outage: Outage
    uploader: Uploader
    notices: Notices
    tally: ActTally


class Acting:
    """
    Ask the acts of one episode; belongs to the thread that acts.

    `clock_ns` reads the playback clock, which is what an observation's age is counted on.
    """

    def __init__(
        self,
        rules: ActRules,
        wires: Wires,
        clock_ns: Callable[[], int],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._rules = rules
        self._link = wires.link
        self._outage = wires.outage
        self._uploader = wires.uploader
        self._notices = wires.notices
        self._tally = wires.tally
        self._clock_ns = clock_ns
        self._jitter = jitter
        self._begun_anew = 0  # how often the episode had, when that was last looked at
        self._answered = False  # by the worker process of now
        self.process = rules.proven
        """The worker process that gave the newest answer, or the warm-up's."""
        self.answered_anew = False
        """Whether the newest answer is the first of a process that answered no warm-up."""
        self._over: Connection | None = None  # what the act is asked over, while it is
        self.request_id = ''
        """What the newest act is called on the wire."""
        self.handler_ms: float | None = None
        """The worker's own part of the newest answer; None until then, or where it is silent."""

    def run(self, step: Step, plan: Mapping[str, Any] | None, cancel: Cancel) -> Any:
        """
        Ask about `step` and return the outputs.

        Raises
        ------
        PolicyError, WorkerLost, StateLost, ActAbandoned, Retired
            As `PolicyScope.infer` says.
        ObservationTooLarge, MsgpackError
            The observation cannot be sent as it is.

        """
        self._uploader.begin_act(step.number)
        self._tally.count('asked')
        try:
            return self._until_answered(self._prepared(step, plan, cancel))
        except BaseException:
            self._tally.count('failed')
            self._uploader.unanswered(step.number)
            raise

    def standing(self) -> Standing:
        """Say how the act that is under way stands; may be called from any thread."""
        connection = self._over
        if connection is not None:
            return Standing.SILENT if connection.is_silent else Standing.THERE
        return Standing.THERE if self._outage.lasted_s is None else Standing.AWAY

    def _prepared(self, step: Step, plan: Mapping[str, Any] | None, cancel: Cancel) -> _Act:
        payload = observation_pieces(step.observation, self._rules.keys)
        parts: dict[str, Part] = {
            wire.KEY_INPUTS: payload,
            **self._rules.constants,
        }
        if plan is not None:
            parts[wire.KEY_PLAN] = pack(dict(plan))
        nbytes = sum(map(size_of, parts.values()))
        if nbytes >= self._rules.max_message_bytes:
            raise ObservationTooLarge(
                f'step {step.number} takes {nbytes} bytes, and the worker takes messages below '
                f'{self._rules.max_message_bytes}: send smaller or compressed images'
            )
        self._uploader.own(step.number, payload)
        self.request_id, self.handler_ms = wire.new_request_id(), None
        return _Act(step, parts, self.request_id, cancel)

    def _until_answered(self, act: _Act) -> Any:
        while True:
            left_s = self._time_left_s(act)
            try:
                return self._attempt(act)
            except _Again as again:
                act.cancel.wait(min(again.wait_s, left_s))

    def _attempt(self, act: _Act) -> Any:
        connection = self._connection(act)
        self._meet(connection.instance, act)
        question = self._uploader.ask(self._time_left_s(act), act.cancel)
        if question is None:
            self._time_left_s(act)
            raise ActAbandoned(
                f'step {act.step.number}: the observations before it did not get through in time'
            )
        began_s = time.perf_counter()
        reply = self._send(connection, question, act)
        round_trip_ms = (time.perf_counter() - began_s) * 1e3
        judgement = judge(reply)
        if judgement.verdict is Verdict.AWAY:
            act.sent_to = act.sent_to if judgement.never_ran else connection.instance
            self._link.drop(connection)
        if judgement.verdict in (Verdict.EXPIRED, Verdict.NO_PLACE):
            self._ask_the_way(act, connection, judgement)
        if judgement.verdict in (Verdict.AWAY, Verdict.WARMING):
            self._away(act, judgement.text, judgement.retry_after_s or 0.0)
        self._back()
        if judgement.verdict is not Verdict.ANSWERED:
            self._try_differently(act, judgement)
        self.answered_anew = self.process not in (None, connection.instance)
        self.process = connection.instance
        return self._take(question, reply, round_trip_ms)

    def _time_left_s(self, act: _Act) -> float:
        """Return how long the act may still be sent; raise where it may not."""
        if act.cancel.is_set():
            raise Retired(f'step {act.step.number} was given up')
        age_s = (self._clock_ns() - act.step.t_ns) / 1e9
        if age_s > self._rules.max_request_age_s:
            raise ActAbandoned(
                f'step {act.step.number} was not answered, and its observation is {age_s:.1f} s '
                f'old: after {self._rules.max_request_age_s:g} s it is asked anew'
            )
        return min(self._rules.max_request_age_s - age_s, self._rules.act_timeout_s)

    def _connection(self, act: _Act) -> Connection:
        held = self._link.at_hand()
        if held is not None:
            return held
        never_away = self._link.reaches and self._outage.lasted_s is None
        try:
            within_s = OPEN_S if self._link.is_open else self._outage.began()
            connection = self._link.connection(within_s, act.cancel)
        except NotReady as error:
            self._away(act, str(error), error.retry_after_s)
        except Unreachable as error:
            self._away(act, str(error))
        except HandshakeRefused as error:
            raise WorkerLost(str(error)) from error
        if never_away:  # only that connection had been given up
            self._outage.over()
        return connection

    def _meet(self, instance: str, act: _Act) -> None:
        """Take note of which worker process it is, and of what went with the one before."""
        begun_anew = self._uploader.meet(instance)
        if begun_anew != self._begun_anew:
            self._begun_anew = begun_anew
            lost = self._answered and self._rules.keeps_state
            self._answered = False
            if lost:
                raise StateLost(
                    'the worker was restarted or has forgotten the episode, and the policy keeps '
                    'state: what it remembered is lost'
                )
            self._notices.say('anew', 'the episode begins anew on the worker, from what is kept')
        if act.sent_to is None or (act.sent_to == instance and self._rules.runs_once):
            return
        why = (
            'which does not say that it runs an act only once'
            if act.sent_to == instance
            else 'whose process is gone'
        )
        raise ActAbandoned(
            f'step {act.step.number} may have been run by the worker, {why}: it is asked anew'
        )

    def _send(self, connection: Connection, question: Question, act: _Act) -> Reply:
        if act.sends:
            self._tally.count('repeated')
        act.sends += 1
        parts = {
            wire.KEY_EPISODE_ID: packed_name(question.episode_id),
            wire.KEY_SEQ: pack(question.seq),
            **act.parts,
        }
        within_s = self._rules.act_timeout_s
        try:
            # Called in this order: it is noted before the connection ends.
            self._over = connection
            with act.cancel.calling(lambda: self._link.give_up(connection)):
                return connection.call(wire.ACT, parts, within_s, act.cancel, act.request_id)
        except AnswerTimedOut as error:
            self._link.drop(connection)
            act.sent_to = connection.instance
            self._ask_after(act, str(error))
        except ConnectionLost as error:
            self._link.drop(connection)
            act.sent_to = connection.instance if error.sent else act.sent_to
            self._away(act, f'the connection was lost: {error}')
        finally:
            self._over = None

    def _ask_after(self, act: _Act, why: str) -> NoReturn:
        """
        Ask what became of an act whose answer did not come in time.

        One that runs is never sent again. One that does not is, under its own id, while its
        observation is fresh: then the worker's answer is there, or the act never came.
        """
        try:
            connection = self._link.connection(ASK_AFTER_S, act.cancel)
            asked = {wire.ACT: pack(act.request_id)}
            with act.cancel.calling(lambda: self._link.give_up(connection)):
                reply = connection.call(wire.PING, asked, ASK_AFTER_S, act.cancel)
        except (Unreachable, HandshakeRefused) as error:
            self._away(act, f'{why}, and {error}')
        except (ConnectionLost, AnswerTimedOut) as error:
            self._link.drop(connection)
            self._away(act, f'{why}, and {error}')
        told = reply.body.get(wire.ACT)
        running = told.get(wire.KEY_RUNNING) if isinstance(told, Mapping) else None
        if running is False:
            self._uploader.returned(act.step.number)
            raise _Again(0.0)
        still = ', and the act still runs' if running is True else ''
        raise ActAbandoned(f'step {act.step.number}: {why}{still}: it is asked anew')

    def _take(self, question: Question, reply: Reply, round_trip_ms: float) -> Any:
        if wire.KEY_OUTPUTS not in reply.body:
            raise PolicyError('the answer to an act holds no outputs')
        self._uploader.served(question)
        self._answered = True
        self.handler_ms = _handler_ms(reply)
        self._tally.answered(round_trip_ms, self.handler_ms)
        for warning in _warnings(reply):
            self._notices.say(f'warning: {warning[:40]}', f'the worker warns: {warning}')
        return reply.body[wire.KEY_OUTPUTS]

    def _ask_the_way(self, act: _Act, connection: Connection, judgement: Judgement) -> NoReturn:
        """Ask who gave us the worker's coordinates for others, as far as anybody did."""
        no_place = judgement.verdict is Verdict.NO_PLACE
        act.renewals += 1
        if act.renewals > MAX_RENEWALS or not self._link.renew(connection, give_back=no_place):
            if not no_place:
                raise PolicyError(judgement.text)
            self._link.drop(connection)
        self._away(act, judgement.text, judgement.retry_after_s or 0.0)

    def _try_differently(self, act: _Act, judgement: Judgement) -> NoReturn:
        """Do what the worker needs before the same act goes again, or raise what it says."""
        self._uploader.returned(act.step.number)
        if judgement.verdict is Verdict.BUSY:
            self._notices.say('busy', f'the worker is busy: {judgement.text}')
            raise _Again(self._busy_s(act, judgement.retry_after_s))
        if act.helped or judgement.verdict is Verdict.FAILED:
            raise PolicyError(judgement.text)
        act.helped = True
        self._tally.count('resends')
        if judgement.verdict is Verdict.RESEND:
            self._uploader.resend(judgement.resend_from)
        else:
            self._uploader.restart()
        raise _Again(0.0)

    def _busy_s(self, act: _Act, retry_after_s: float | None) -> float:
        longest_s = min(act.busy_s, retry_after_s or BUSY_LAST_S)
        act.busy_s *= 2
        return (0.5 + 0.5 * self._jitter()) * longest_s

    def _away(self, act: _Act, reason: str, at_least_s: float = 0.0) -> NoReturn:
        """Count a failed attempt, and try again later or raise WorkerLost."""
        self._uploader.returned(act.step.number)
        if act.cancel.is_set():
            raise Retired(f'step {act.step.number} was given up')
        self._notices.say('link', f'the worker is away: {reason}')
        raise _Again(self._outage.failed(reason, at_least_s))

    def _back(self) -> None:
        lasted_s = self._outage.over()
        if lasted_s is not None:
            self._notices.say('link', f'the worker is back after {lasted_s:.1f} s')


class _Again(Exception):
    """The same act is to be sent again, after `wait_s`."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(wait_s)
        self.wait_s = wait_s


@dataclass
class _Act:
    """One act on its way, under one request id."""

    step: Step
    parts: Parts
    request_id: str
    cancel: Cancel
    sent_to: str | None = None
    """The worker process that may have begun it, and did not say how it went."""
    sends: int = 0
    renewals: int = 0
    """How often the worker's coordinates were asked for anew."""
    helped: bool = False
    """Whether the worker was given what it lacked; that is done once."""
    busy_s: float = BUSY_FIRST_S
    """The longest wait for a free place, next."""


def _handler_ms(reply: Reply) -> float | None:
    perf = reply.body.get(wire.KEY_PERF)
    said = perf.get(wire.KEY_HANDLER_MS) if isinstance(perf, dict) else None
    return float(said) if isinstance(said, (int, float)) else None


def _warnings(reply: Reply) -> list[str]:
    said = reply.body.get(wire.KEY_WARNINGS)
    return list(map(str, said)) if isinstance(said, list) else []
