"""The loop: a round takes a snapshot, asks the session, emits, and says when to come back."""

from __future__ import annotations

from collections.abc import Callable
import logging
from typing import Protocol

from seq_harness.episode import Sampled
from seq_harness.harness.ending import reason_of
from seq_harness.harness.holding import Holding, Unavailable
from seq_harness.harness.lateness import Lateness, Punctual, STALLED
from seq_harness.harness.manual import Manual, ManualGuard
from seq_harness.harness.opening import Opening
from seq_harness.harness.readiness import Prepared, Preparing
from seq_harness.harness.requests import Hold, NOT_RUNNING, OnInstruction, RequestAnswer, Requests
from seq_harness.harness.running import Limits, Opened, Report, Running, State
from seq_harness.harness.sending import Sending
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.observation import ObservationSpec
from seq_harness.outputs import Outputs
from seq_harness.playback.session import CEILING_NS, Commands, FLOOR_NS

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """The playback clock of a driver."""

    def now_ns(self) -> int:
        """Return the reading in ns; it never goes back while an episode runs."""


class Harness:
    """
    Run episodes round by round under whatever driver calls `round`.

    The paced thread calls `round`; any thread may ask for what the other methods name.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        inputs: Inputs,
        outputs: Outputs,
        spec: ObservationSpec,
        open_episode: Callable[[], Opened],
        limits: Limits,
        instruction: str,
        wake: Callable[[], None],
        on_change: Callable[[], None],
        on_instruction: OnInstruction = OnInstruction.NEXT_ACT,
        manual: ManualGuard | None = None,
        unavailable: Unavailable = lambda snapshot: None,
        reap: Callable[[float], int] = lambda within_s: 0,
        look: Callable[[], Snapshot] | None = None,
        requests: Requests | None = None,
        await_instant: Callable[[int], None] = lambda instant_ns: None,
        clock_step_ns: Callable[[], int] = lambda: 0,
        number: int = 0,
    ) -> None:
        """
        Take the parts that outlive an episode.

        `wake` ends the driver's sleep; `on_change` hears of a new state, from any thread; `reap`
        waits so many seconds for calls that were given up, and returns how many still run (R56);
        `look` is how rounds look at the inputs, and `requests` where requests are kept;
        `await_instant` returns once a reading of the clock, which may be ahead, has come;
        `clock_step_ns` is how far apart the readings of a clock lie that goes by leaps; `number`
        is that of the last episode before this loop.
        """
        self._clock = clock
        self._inputs = inputs
        self._outputs = outputs
        self._spec = spec
        self._opening = Opening(open_episode, reap)
        self._limits = limits
        self._wake = wake
        self._on_change = on_change
        self._on_instruction = on_instruction
        self.manual = None if manual is None else Manual(manual, outputs)
        """What became of manual commands; None where none may pass."""
        self._look = look or inputs.snapshot
        self._preparing = Preparing(inputs, outputs, spec, self._look)
        self._requests = requests or Requests()
        self._requests.instruct(instruction)
        self._holding = Holding(
            self._requests,
            inputs,
            outputs,
            manual=self.manual,
            unavailable=unavailable,
            on_change=on_change,
        )
        self._lateness = Lateness(self._holding, clock_step_ns)
        self._sending = Sending(
            self._requests, outputs, self._lateness, clock.now_ns, await_instant
        )
        self._running: Running | None = None  # owner: the paced thread
        self._number = number  # owner: the paced thread
        self._last = Report(State.IDLE, number, '', {})  # replaced whole by the paced thread
        self.expected_ns: int | None = None
        """When the next round of a live episode is due: the loop's heartbeat; None when idle."""

    def instruct(self, text: str) -> None:
        """Set the instruction that the next act carries; ask for it at once, if so configured."""
        changed = self._requests.instruct(text)
        if changed and self._on_instruction is OnInstruction.REPLAN:
            self.replan()

    def start(self) -> RequestAnswer:
        """Ask for an episode; a second one while one is live is refused (R48)."""
        return self._woken(self._requests.start())

    def decline(self, reason: str) -> None:
        """Answer whoever asked for an episode that cannot begin (R49), unless one is live."""
        if self._requests.decline(reason):
            self._wake()

    def stop(self, reason: str) -> bool:
        """Ask for the end of the live episode; tell whether there is one."""
        live = self._requests.stop(reason)
        if live:
            self._wake()
        return live

    def withhold(self, reason: str) -> None:
        """Let nothing more out, even if the loop is stuck, and end the episode."""
        self._requests.withhold()
        self.stop(reason)

    def pause(self) -> RequestAnswer:
        """Ask that nothing plays: what is held and in flight is dropped; the deadline goes on."""
        return self._woken(self._requests.hold(Hold.PAUSED))

    def take_over(self) -> RequestAnswer:
        """Ask for the robot: as `pause`, and manual commands pass until `resume`."""
        return self._woken(self._requests.hold(Hold.TAKEN_OVER))

    def resume(self) -> RequestAnswer:
        """
        Ask that a held episode goes on, from the measured state and with a fresh plan.

        Refused while an input is missing or too old, or the arm is unavailable.
        """
        running = self._running
        if running is None:
            return NOT_RUNNING
        if running.hold is None and not self._requests.interrupts:
            return RequestAnswer(False, 'the episode is not paused')
        reason = self._holding.unready(self._inputs.snapshot(), self._clock.now_ns())
        if reason is not None:
            return RequestAnswer(False, f'{reason}: resume once that is well again')
        return self._woken(self._requests.resume())

    def replan(self) -> RequestAnswer:
        """Ask that the policy is asked at once, on what is seen now; rows play on meanwhile."""
        return self._woken(self._requests.replan())

    def restart(self) -> RequestAnswer:
        """Ask that what is held is dropped, and asked for afresh from the measured state."""
        return self._woken(self._requests.restart())

    def command(self, commands: Commands) -> RequestAnswer:
        """
        Ask that a manual command goes out, once it has passed the guard (R50).

        It passes while no episode runs, or while it is taken over; `manual` tells what became of
        it.
        """
        if self.manual is None:
            return RequestAnswer(False, 'manual commands need a guard, and none is configured')
        running = self._running
        held = running.hold if running is not None else None
        return self._woken(self._requests.command(commands, held))

    @property
    def waiting(self) -> bool:
        """Whether a live episode waits for its first inputs, so that arrivals should wake it."""
        running = self._running
        return running is not None and running.state is State.WAITING

    def report(self) -> Report:
        """Return the state and figures of the live episode, or of the last one."""
        running = self._running
        if running is None:
            return self._last
        figures = running.figures(self._clock.now_ns())
        return Report(running.state, running.number, '', figures)

    def round(self) -> int:
        """Do one round and return the instant of the next, on the playback clock (R39)."""
        start = self._clock.now_ns()
        self._pass_manual(start)
        running = self._running or self._opened(start)
        if running is None:
            self.expected_ns = None
            return start + CEILING_NS
        try:
            end, wake_ns = self._step(running, start)
        except Exception as error:
            end, wake_ns = reason_of(error), start
        if end is not None:
            self._end(running, end)
            self.expected_ns = None
            return start + FLOOR_NS
        self.expected_ns = min(max(wake_ns, start + FLOOR_NS), start + CEILING_NS)
        return self.expected_ns

    def prepare(self, instant_ns: int) -> bool:
        """
        Do what can be done before a round at `instant_ns`, shortly before it; tell of a setpoint.

        The round goes by the inputs as they are now, unless it comes early or much too late.
        """
        running = self._running
        return running is not None and self._preparing.prepare(
            running, instant_ns, self._requests.instruction
        )

    def close(self, reason: str) -> None:
        """End what is live or was asked for, once no thread calls `round` any more (R49)."""
        running = self._running
        if running is not None:
            self._end(running, self._requests.stop_reason or reason)
        elif self._requests.take_start():
            self._refuse_start(reason)

    def _woken(self, answer: RequestAnswer) -> RequestAnswer:
        if answer.accepted:
            self._wake()
        return answer

    def _opened(self, now: int) -> Running | None:
        if self._requests.stop_reason is not None and self._requests.take_start():
            self._refuse_start(self._requests.stop_reason)
            return None
        # Simulated time that has not begun reads 0: nothing starts and nothing is aged by it.
        if not now or not self._requests.take_start():
            return None
        opened = self._opening.open()
        if isinstance(opened, str):
            self._refuse_start(opened)
            return None
        self._number += 1
        if self.manual is not None:
            self.manual.begin()
        self._running = Running(opened, self._number, now)
        self._on_change()
        return self._running

    def _refuse_start(self, reason: str) -> None:
        """Answer whoever asked for an episode that never ran (R49)."""
        self._number += 1
        self._finish(Report(State.IDLE, self._number, reason, {}))

    def _step(self, running: Running, start: int) -> tuple[str | None, int]:
        """Do a round of a live episode; return its end, if it has come, and the next instant."""
        end = self._terminal(running, start)
        if end is not None:
            return end, start
        punctual = self._lateness.judge(running, self.expected_ns, start)
        if punctual is not Punctual.ON_TIME:
            return self._late(running, punctual, start)
        ready = self._preparing.take(start, self._requests.instruction)
        snapshot = self._look() if ready is None else ready.snapshot
        self._holding.apply(running, snapshot, start)
        if running.hold is not None:
            return None, min(running.deadline_ns or start + CEILING_NS, start + CEILING_NS)
        if ready is not None:
            return self._play(running, snapshot, ready)
        missing = self._inputs.missing(snapshot)
        if running.waiting and missing:
            return self._wait_for(self._inputs.named(missing, snapshot), running, start)
        stale = self._inputs.stale(snapshot, start)
        if missing or stale:
            return f'stale_input: {self._inputs.named(missing + stale, snapshot)}', start
        if running.waiting:
            running.waiting = False
            self._on_change()
        return self._play(running, snapshot, None)

    def _pass_manual(self, now: int) -> None:
        """Send a manual command, if nothing plays and the guard lets it pass (R50)."""
        running = self._running
        commands = self._requests.take_manual(running.hold if running is not None else None)
        if commands is None or self.manual is None:
            return
        snapshot = self._look()
        reason = (
            self._holding.unready(snapshot, now) if now else 'no_time: the clock has not begun'
        )
        if reason is not None:
            self.manual.refuse(reason.partition(':')[0], reason)
            return
        observation = self._spec.observe(snapshot, now, self._requests.instruction)
        self.manual.send(commands, observation, now)

    def _terminal(self, running: Running, now: int) -> str | None:
        if self._requests.stop_reason is not None:
            return self._requests.stop_reason
        if running.opened.player.finished is not None:
            return running.opened.player.finished
        if running.deadline_ns is not None and now >= running.deadline_ns:
            return 'deadline'
        return None

    def _late(self, running: Running, how: Punctual, now: int) -> tuple[str | None, int]:
        """Return the end of a loop that is too late, or when it goes on."""
        end = STALLED if how is Punctual.STALLED else None
        return end, self._lateness.back_at(running, now)

    def _wait_for(self, missing: str, running: Running, now: int) -> tuple[str | None, int]:
        until = running.started_ns + self._limits.inputs_ns
        if now >= until:
            return f'inputs_missing: {missing}', now
        return None, until

    def _play(
        self, running: Running, snapshot: Snapshot, ready: Prepared | None
    ) -> tuple[str | None, int]:
        """Call the session, emit what it answers; return the end, or when to come back."""
        opened = running.opened
        t = self._clock.now_ns()
        ahead = None if ready is None else ready.observation
        observation = ahead or self._spec.observe(snapshot, t, self._requests.instruction)
        observation.t_ns = t
        if running.called_ns is None:
            running.called_ns, running.deadline_ns = t, self._limits.deadline_ns(t)
        chunks = opened.player.statistics.chunks
        commands, resume_at_ns = opened.session(observation, t)
        if resume_at_ns <= t:
            raise ValueError(f'the session wants to resume at {resume_at_ns}, not after {t}')
        running.rounds += 1
        if commands:
            punctual = self._sending.send(running, commands, ready, t)
            if punctual is not Punctual.ON_TIME:
                return self._late(running, punctual, self._clock.now_ns())
            if opened.player.statistics.chunks > chunks:
                running.note_first_setpoint(self._clock.now_ns())
        if opened.episode.sample(observation, t) is not Sampled.NOTHING:
            running.timing.observation_age.add(self._inputs.age_ns(snapshot, t))
        if opened.player.finished is not None:
            return None, t
        expiry_ns = self._inputs.expiry_ns(snapshot)
        wanted = (
            resume_at_ns,
            opened.episode.next_step_ns,
            running.deadline_ns,
            opened.visible_ns(),
            None if expiry_ns is None else expiry_ns + 1,
        )
        return None, min(instant for instant in wanted if instant is not None)

    def _end(self, running: Running, reason: str) -> None:
        """Close the episode in reverse order; nothing is played after this (R55, R59)."""
        now = self._clock.now_ns()
        figures = running.figures(now)
        try:
            self._holding.stop_motion(running, now)
        except Exception:
            logger.exception('ending the motion failed')
        try:
            running.opened.stack.close()
        except Exception:
            logger.exception('closing the episode failed')
        self._running = None
        self._finish(Report(State.IDLE, running.number, reason, figures))

    def _finish(self, report: Report) -> None:
        self._last = report
        self._requests.finish()
        self._on_change()
