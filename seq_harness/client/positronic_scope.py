"""One episode of a policy behind a positronic server: one session of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import threading
import time
from typing import Any, NamedTuple

from seq_harness.client.cancel import Cancel
from seq_harness.client.figures import RECENT, ScopeFigures, Spread
from seq_harness.client.key_map import KeyMap, KeyMapRefused, ROWS
from seq_harness.client.notices import Notices
from seq_harness.client.positronic_opening import PROGRESS_S
from seq_harness.client.positronic_rows import Rows, rows_of
from seq_harness.client.positronic_session import Answer, Session
from seq_harness.client.positronic_sessions import Sessions
from seq_harness.client.positronic_stack import LocalStack, StackRefused
from seq_harness.client.transport import AnswerTimedOut, ConnectionLost
from seq_harness.client.unstreamed import UnstreamedScope
from seq_harness.contract.numpy_msgpack import pack
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import (
    ActAbandoned,
    PolicyError,
    Retired,
    Standing,
    StateLost,
    Step,
    WorkerLost,
)

SERVED = 'served_ms'
"""The part of a round trip that was the server's own, in what an answer says of its times."""


class Terms(NamedTuple):
    """What stands between the robot's terms and the server's."""

    keys: KeyMap
    """What the robot's user says of the server's keys."""
    stack: LocalStack
    """What the server says itself."""

    def observation(self, observation: Observation) -> Any:
        """
        Return an observation as the server is to see it.

        Raises
        ------
        PolicyError
            It is not what either of them says.

        """
        try:
            return self.stack.encode(self.keys.request(observation))
        except (KeyMapRefused, StackRefused) as error:
            raise PolicyError(f'the observation is not what the server reads: {error}') from error

    def rows(self, result: Any) -> Rows | None:
        """Tell an answer into rows; raises as `rows_of`."""
        told = rows_of(result, self.stack.fps, self.keys.rows_key or ROWS)
        if told is None:
            return None
        return told._replace(rows=self.keys.unpadded(told.rows))


class PositronicScope(UnstreamedScope):
    """
    Ask one session about an episode's steps.

    The server keeps what its policy remembers in the session. So a session that is lost is opened
    anew once, and only before it has answered; afterwards its loss ends the episode. The session
    itself is ended from another thread.
    """

    def __init__(
        self,
        sessions: Sessions,
        terms: Terms,
        clock_ns: Callable[[], int],
        notices: Notices,
        *,
        act_timeout_s: float,
        max_request_age_s: float,
        keeps_state: bool = True,
    ) -> None:
        super().__init__()
        self._sessions = sessions
        self._terms = terms
        self._clock_ns = clock_ns
        self._notices = notices
        self._act_timeout_s = act_timeout_s
        self._keeps_state = keeps_state
        self._max_age_ns = round(max_request_age_s * 1e9)
        self._times: dict[str, deque[float]] = {}  # under _lock
        self._lock = threading.Lock()  # held for a few assignments
        self._session: Session | None = None  # the thread that acts, then `_let_go`
        self._meta: bytes | None = None  # of the session that was first; the thread that acts
        self._reconnects = 0
        self._is_second = False  # the last one was lost before it answered; the thread that acts
        self._kind = ''

    def figures(self) -> ScopeFigures:
        """Return what this episode did on the wire so far; may be called from any thread."""
        return ScopeFigures(self._tally.figures(), reconnects=self._reconnects)

    def standing(self) -> Standing:
        """Say how the act that is under way stands; may be called from any thread."""
        session = self._session
        if session is None:
            return Standing.AWAY
        return Standing.SILENT if session.is_silent else Standing.THERE

    def server_times(self) -> dict[str, Spread]:
        """Return what the parts of inferences took on the server's clock, by the wire's names."""
        with self._lock:
            times = {name: list(recent) for name, recent in self._times.items()}
        return {name: Spread.of(recent) for name, recent in sorted(times.items())}

    def _ask(self, step: Step, cancel: Cancel) -> Any:
        return self._outputs(self._answered(step, cancel))

    def _let_go(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._sessions.give_back(session)

    def _answered(self, step: Step, cancel: Cancel) -> Answer:
        observation = self._terms.observation(step.observation)
        while True:
            session = self._taken(cancel)
            began_s = time.perf_counter()
            try:
                answer = session.infer(observation, self._act_timeout_s, cancel, self._waited)
            except (ConnectionLost, AnswerTimedOut) as error:
                self._lose(session, error, cancel)
                if isinstance(error, AnswerTimedOut) or self._is_old(step):
                    raise ActAbandoned(f'step {step.number}: {error}') from error
                self._tally.count('repeated')
            except PolicyError:
                self._drop(session)
                raise
            else:
                self._note(answer, (time.perf_counter() - began_s) * 1e3)
                return answer

    def _waited(self, waited_s: float) -> None:
        told = f'the server has not answered for {waited_s:.0f} s'
        self._notices.say('waiting', told, again_s=PROGRESS_S)

    def _taken(self, cancel: Cancel) -> Session:
        """Return the episode's session, opened anew where it was lost before it answered."""
        if self._session is not None:
            return self._session
        session = self._sessions.take(cancel)
        meta = pack(dict(session.meta))
        if self._meta is not None and meta != self._meta:
            self._sessions.give_back(session)
            raise WorkerLost('the session was lost, and the server declares otherwise by now')
        self._is_second = self._meta is not None
        self._reconnects += self._is_second
        self._meta, self._session = meta, session
        return session

    def _lose(self, session: Session, error: Exception, cancel: Cancel) -> None:
        """Let a session go that failed; raise where the episode cannot go on without it."""
        self._drop(session)
        if cancel.is_set():
            raise Retired('the act was given up')
        if session.answered and self._keeps_state:
            raise StateLost(
                f'the session was lost, and with it what the policy remembered: {error}'
            ) from error
        if self._is_second and not session.answered:
            raise WorkerLost(f'the session was lost again before it answered: {error}') from error
        self._notices.say('link', f'the session was lost: {error}')

    def _drop(self, session: Session) -> None:
        self._session = None
        self._sessions.lost(session)

    def _is_old(self, step: Step) -> bool:
        return self._clock_ns() - step.t_ns > self._max_age_ns

    def _note(self, answer: Answer, round_trip_ms: float) -> None:
        self._tally.answered(round_trip_ms, answer.timing_ms.get(SERVED))
        with self._lock:
            for name, took_ms in answer.timing_ms.items():
                self._times.setdefault(name, deque(maxlen=RECENT)).append(took_ms)

    def _outputs(self, answer: Answer) -> Any:
        rows = self._terms.rows(answer.result)
        if rows is None:
            return None
        self._check_kind(rows)
        return rows.outputs()

    def _check_kind(self, rows: Rows) -> None:
        """Refuse commands of another kind than the first: one column means one thing."""
        if self._kind and rows.kind != self._kind:
            raise PolicyError(
                f'the server answers {rows.kind} after {self._kind}; one kind was expected'
            )
        if not self._kind:
            width = rows.rows.shape[-1] if rows.rows.ndim else 1
            self._notices.say('rows', f'the server answers {rows.kind}, {width} columns a row')
        self._kind = rows.kind
