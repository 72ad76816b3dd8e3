"""The process of a node of ours: set-up that only our own main may do, signals, and the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import ctypes
import ctypes.util
import os
import signal
import sys
import threading
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown

SWITCH_INTERVAL_S = 0.0005
"""How long a Python thread may keep another waiting for the interpreter."""

# glibc's mallopt parameters: camera frames are reused instead of mapped and unmapped each time.
_MALLOC = ((-3, 268_435_456), (-1, 536_870_912), (-2, 33_554_432))


class Process:
    """One node spun on a thread of its own, while the main thread waits for a signal."""

    def __init__(self, argv: Sequence[str] | None) -> None:
        """Take over this process: signals, the switch interval, malloc and rclpy."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self.facts = {'malloc': 'keeps large blocks' if keep_large_blocks() else 'not set'}
        """What the system granted, for people."""
        self._stop = threading.Event()
        self._reason = ''
        self._status = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        rclpy.init(
            args=None if argv is None else [sys.argv[0], *argv],
            signal_handler_options=SignalHandlerOptions.NO,
        )

    @property
    def reason(self) -> str:
        """Why the process ends, once it does."""
        return self._reason

    def favour(self, niceness: int) -> None:
        """Ask for that niceness for the threads that start from now on; 0 asks for none."""
        if niceness:
            self.facts['niceness'] = request_niceness(niceness)

    def finish(self, reason: str, status: int) -> None:
        """Let `run` return `status`; from any thread. The first reason to end holds."""
        if not self._stop.is_set():
            self._reason, self._status = reason, status
        self._stop.set()

    def run(self, node: Node, on_stop: Callable[[str], None]) -> int:
        """
        Spin `node` until a signal or `finish`; then call `on_stop` and end the executor.

        Returns the exit status: 0 for a signal.
        """
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        spinner = threading.Thread(target=self._spin, args=(executor,), name='executor')
        spinner.start()
        self._stop.wait()
        on_stop(self._reason)
        executor.shutdown(timeout_sec=0.0)
        spinner.join()
        return self._status

    def close(self) -> None:
        """Release rclpy; after this nothing of the node may be used."""
        try_shutdown()

    def _spin(self, executor: SingleThreadedExecutor) -> None:
        try:
            executor.spin()
        except ExternalShutdownException:
            pass
        except Exception as error:
            rclpy.logging.get_logger('executor').fatal(f'the executor failed: {error!r}')
            self.finish(f'exception: {error!r}', 1)

    def _on_signal(self, number: int, frame: Any) -> None:
        self.finish(f'signal: {signal.Signals(number).name}', 0)


def request_niceness(niceness: int) -> str:
    """
    Ask for a niceness for the calling thread, and those it starts; return what was granted.

    A thread that the system puts aside while it has the interpreter holds up the setpoint.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    except OSError as error:
        return (
            f'as it was: {niceness} was refused ({error}); grant nice in '
            '/etc/security/limits.d or CAP_SYS_NICE for punctual setpoints'
        )
    return str(niceness)


def keep_large_blocks() -> bool:
    """Tell malloc to keep blocks of a camera frame's size; return whether the system could."""
    try:
        mallopt = ctypes.CDLL(ctypes.util.find_library('c')).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(parameter, value) == 1 for parameter, value in _MALLOC)
