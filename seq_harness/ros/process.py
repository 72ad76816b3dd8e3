"""The process of a node of ours: set-up that only our own main may do, signals, and the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
import os
from queue import Empty, SimpleQueue
import signal
import sys
import threading
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown
from seq_harness.ros.console import Console
from seq_harness.ros.memory import keep_large_blocks
from seq_harness.ros.scheduling import request_niceness
from seq_harness.ros.signals import ending_signals, heeded, ignore_signals

SWITCH_INTERVAL_S = 0.0005
"""How long a Python thread may keep another waiting for the interpreter."""

COUNT_S = 1.0
"""How often lost lines are counted."""


class Process:
    """One node spun on a thread of its own, while the main thread waits for a signal."""

    def __init__(
        self, argv: Sequence[str] | None, *, endures: Collection[signal.Signals] = ()
    ) -> None:
        """
        Take over this process: streams, signals, the switch interval, malloc and rclpy.

        What it `endures` of the signals that end a process makes it `abandoned` alone.
        """
        self._console = Console()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self.facts = {'malloc': 'keeps large blocks' if keep_large_blocks() else 'not set'}
        """What the system granted and the console took, for people."""
        # A signal may come within another's handler, which must take no lock.
        self._ends: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._endures = endures
        self._endured = ''
        self._parent = os.getppid() if heeded(signal.SIGHUP) else None
        for number in ending_signals():
            signal.signal(number, self._on_signal)
        rclpy.init(
            args=None if argv is None else [sys.argv[0], *argv],
            signal_handler_options=SignalHandlerOptions.NO,
        )

    @property
    def abandoned(self) -> str:
        """
        Say why nobody looks after this process any more; empty while somebody may.

        Who started it with SIGHUP ignored, as nohup does, wants it to stay.
        """
        orphan = self._parent is not None and os.getppid() != self._parent
        return self._endured or ('what started it is gone' if orphan else '')

    def favour(self, niceness: int) -> None:
        """Ask for that niceness for the threads that start from now on; 0 asks for none."""
        if niceness:
            self.facts['niceness'] = request_niceness(niceness).text

    def finish(self, reason: str, status: int) -> None:
        """Let `run` return `status`; from any thread. The first reason to end holds."""
        self._ends.put((reason, status))

    def run(
        self,
        node: Node,
        on_stop: Callable[[str], None],
        stand_aside: Callable[[], None] = lambda: None,
    ) -> int:
        """
        Spin `node` until a signal or `finish`; then call `on_stop` and end the executor.

        `stand_aside` returns once the next callback may begin. Returns the exit status: 0 for a
        signal.
        """
        executor = _Executor(stand_aside)
        executor.add_node(node)
        spinner = threading.Thread(target=self._spin, args=(executor,), name='executor')
        spinner.start()
        reason, status = self._wait()
        on_stop(reason)
        executor.end()
        spinner.join()
        executor.shutdown()
        return status

    def close(self) -> None:
        """Release rclpy, after which nothing of the node may be used; then the console."""
        ignore_signals()
        try_shutdown()
        self._console.close()

    def _wait(self) -> tuple[str, int]:
        while True:
            try:
                end = self._ends.get(timeout=COUNT_S)
            except Empty:
                self.facts['console'] = f'{self._console.lost} lines lost'
            else:
                ignore_signals()
                return end

    def _spin(self, executor: _Executor) -> None:
        try:
            executor.run()
        except Exception as error:
            rclpy.logging.get_logger('executor').fatal(f'the executor failed: {error!r}')
            self.finish(f'exception: {error!r}', 1)

    def _on_signal(self, number: int, frame: Any) -> None:
        name = signal.Signals(number).name
        if number in self._endures:
            self._endured = self._endured or f'signal: {name}'
        else:
            self.finish(f'signal: {name}', 0)


class _Executor(SingleThreadedExecutor):
    """Executes a callback once nothing more urgent is near, until it is ended."""

    def __init__(self, stand_aside: Callable[[], None]) -> None:
        super().__init__()
        self._stand_aside = stand_aside
        self._over = threading.Event()

    def run(self) -> None:
        """Execute callbacks until `end`; on one thread."""
        while not self._over.is_set():
            self.spin_once()

    def end(self) -> None:
        """Let `run` return, once the callback that is under way is over; from any thread."""
        self._over.set()
        self.wake()

    def wait_for_ready_callbacks(
        self, timeout_sec: Any = None, nodes: Any = None, condition: Any = None
    ) -> Any:
        ready: Any = super().wait_for_ready_callbacks(timeout_sec, nodes, self._over.is_set)
        self._stand_aside()
        return ready
