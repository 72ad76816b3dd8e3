"""Child processes of a command: started together, watched, and ended without a trace."""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from types import TracebackType

END_WITHIN_S = 5.0
"""How long a child may take to end by itself before it is killed."""

TAIL_LINES = 20


class ChildFailed(RuntimeError):
    """A child ended by itself; the text ends with the last it wrote."""


class Children:
    """Start commands of this package as processes; leaving the context ends them all."""

    def __init__(self, logs: Path) -> None:
        """Take the folder for what the children write."""
        self._logs = logs
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Children:
        """Start with no child."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every child, the last one first."""
        self.end()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start `seq-harness COMMAND ...` under `name`."""
        with self.log(name).open('wb') as log:
            self._children[name] = subprocess.Popen(
                [sys.executable, '-m', 'seq_harness.cli.main', *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, 'PYTHONUNBUFFERED': '1'},
            )

    def __contains__(self, name: str) -> bool:
        """Tell whether a child of that name was started."""
        return name in self._children

    def log(self, name: str) -> Path:
        """Return the file that takes what the child writes."""
        return self._logs / f'{name}.log'

    def pid(self, name: str) -> int:
        """Return the process id of a child."""
        return self._children[name].pid

    def ended(self, name: str) -> int | None:
        """Return the exit status of a child, or None while it runs."""
        return self._children[name].poll()

    def check(self, names: Sequence[str] | None = None) -> None:
        """
        Check that children still run, all of them unless named.

        Raises
        ------
        ChildFailed
            Names the child that ended, with its status and the last lines it wrote.

        """
        for name in names or list(self._children):
            status = self.ended(name)
            if status is not None:
                raise ChildFailed(f'{name} ended with status {status}:\n{self.tail(name)}')

    def tail(self, name: str) -> str:
        """Return the last lines that a child wrote."""
        lines = self.log(name).read_text(errors='replace').splitlines()
        return '\n'.join(f'  | {line}' for line in lines[-TAIL_LINES:])

    def end(self) -> dict[str, int]:
        """Interrupt every child, wait for it, and kill what stays; return the statuses."""
        for child in reversed(self._children.values()):
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        until = time.monotonic() + END_WITHIN_S
        for child in self._children.values():
            try:
                child.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        return {name: child.returncode for name, child in self._children.items()}
