"""The process of a node of ours: set-up that only our own main may do, signals, and the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import ctypes
import ctypes.util
import signal
import sys
import threading
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown
from seq_harness.ros.scheduling import request_niceness

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
            self.facts['niceness'] = request_niceness(niceness).text

    def finish(self, reason: str, status: int) -> None:
        """Let `run` return `status`; from any thread. The first reason to end holds."""
        if not self._stop.is_set():
            self._reason, self._status = reason, status
        self._stop.set()

    def run(
        self,
        node: Node,
        on_stop: Callable[[str], None],
        stand_aside: Callable[[], None] | None = None,
    ) -> int:
        """
        Spin `node` until a signal or `finish`; then call `on_stop` and end the executor.

        `stand_aside` returns once the next callback may begin. Returns the exit status: 0 for a
        signal.
        """
        executor = SingleThreadedExecutor() if stand_aside is None else _Polite(stand_aside)
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
            logger = rclpy.logging.get_logger('executor')
            if self._stop.is_set():
                # What it waits on may go before it does.
                logger.info(f'the executor ends: {error!r}')
                return
            logger.fatal(f'the executor failed: {error!r}')
            self.finish(f'exception: {error!r}', 1)

    def _on_signal(self, number: int, frame: Any) -> None:
        self.finish(f'signal: {signal.Signals(number).name}', 0)


class _Polite(SingleThreadedExecutor):
    """Executes a callback once nothing more urgent is near."""

    def __init__(self, stand_aside: Callable[[], None]) -> None:
        super().__init__()
        self._stand_aside = stand_aside

    def wait_for_ready_callbacks(self, *args: Any, **kwargs: Any) -> Any:
        ready: Any = super().wait_for_ready_callbacks(*args, **kwargs)
        self._stand_aside()
        return ready


def keep_large_blocks() -> bool:
    """Tell malloc to keep blocks of a camera frame's size; return whether the system could."""
    try:
        mallopt = ctypes.CDLL(ctypes.util.find_library('c')).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(parameter, value) == 1 for parameter, value in _MALLOC)
