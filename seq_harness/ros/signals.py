"""The signals that end a process of ours in good order."""

from __future__ import annotations

import os
import signal


def heeded(number: signal.Signals) -> bool:
    """Tell whether a signal may do anything: whoever started this process may have it ignored."""
    return signal.getsignal(number) is not signal.SIG_IGN


def ending_signals() -> list[signal.Signals]:
    """List them; SIGHUP, by which a terminal goes, is none where nohup has it ignored."""
    hangup = [signal.SIGHUP] if heeded(signal.SIGHUP) else []
    return [signal.SIGINT, signal.SIGTERM, *hangup]


def ignore_signals() -> None:
    """Let the end that has begun go on: one more signal asks for nothing else."""
    for number in ending_signals():
        signal.signal(number, signal.SIG_IGN)


def end_at_once() -> None:
    """
    Let a signal end this process with 0 before there is anything to put away.

    While modules are imported an exception of a handler may come out as another, or not at all.
    """
    for number in ending_signals():
        signal.signal(number, _end)


def _end(number: int, frame: object) -> None:
    os._exit(0)
