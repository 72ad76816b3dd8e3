"""The end of a round: what it answered goes out, unless its time is over."""

from __future__ import annotations

from collections.abc import Callable

from seq_harness.harness.lateness import Lateness, Punctual
from seq_harness.harness.readiness import Prepared
from seq_harness.harness.requests import Requests
from seq_harness.harness.running import Running
from seq_harness.outputs import Outputs
from seq_harness.playback.session import Commands


class Sending:
    """Publish what rounds answer; the paced thread's alone."""

    def __init__(
        self,
        requests: Requests,
        outputs: Outputs,
        lateness: Lateness,
        now_ns: Callable[[], int],
        await_instant: Callable[[int], None],
    ) -> None:
        self._requests = requests
        self._outputs = outputs
        self._lateness = lateness
        self._now_ns = now_ns
        self._await_instant = await_instant

    def send(
        self, running: Running, commands: Commands, ready: Prepared | None, t: int
    ) -> Punctual:
        """Publish at `t`, unless it is too late or a stop or a pause has come by then (R44)."""
        encoded = ready.encoded if ready is not None and ready.commands is commands else None
        if encoded is None:
            encoded = self._outputs.encode(commands)
        self._await_instant(t)
        now = self._now_ns()
        past = running.deadline_ns is not None and now >= running.deadline_ns
        if past or self._requests.withheld or self._requests.interrupts:
            running.withheld += 1
            return Punctual.ON_TIME
        punctual = self._lateness.judge(running, t, now)
        old = ready is not None and ready.expired(now)
        if old or punctual is not Punctual.ON_TIME:
            running.withheld += 1
            return punctual
        self._outputs.publish(encoded)
        running.note_setpoint(now)
        return punctual
