"""The processes of one injection: started, signalled, and ended whatever became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
from typing import Any

END_S = 6.0
"""How long a process may take to end after a SIGINT before it is killed."""

OURS = (sys.executable, '-m', 'seq_harness.cli.main')


class Processes:
    """Start processes that write to a log each; leaving the context ends them, frozen or not."""

    def __init__(self, folder: Path) -> None:
        """Take the folder for what they write."""
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Processes:
        """Start with none."""
        return self

    def __exit__(self, *raised: object) -> None:
        """End every process, the last one first."""
        for process in reversed(self._running.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
        for process in self._running.values():
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        variables: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """Start a command under a name; `options` are those of Popen, in place of the log."""
        with self.log(name).open('ab') as log:
            given = {'stdin': subprocess.PIPE, 'stdout': log, 'stderr': subprocess.STDOUT}
            environment = {**os.environ, 'PYTHONUNBUFFERED': '1', **(variables or {})}
            self._running[name] = subprocess.Popen(
                list(command), env=environment, **{**given, **options}
            )

    def __contains__(self, name: str) -> bool:
        """Tell whether a process of that name was started."""
        return name in self._running

    def log(self, name: str) -> Path:
        """Return the file that takes what a process writes."""
        return self.folder / f'{name}.log'

    def said(self, name: str) -> str:
        """Return what a process has written so far."""
        path = self.log(name)
        return path.read_text(errors='replace') if path.exists() else ''

    def tell(self, name: str, **what: Any) -> None:
        """Send a process a line of JSON."""
        stdin = self._running[name].stdin
        if stdin is None:
            raise RuntimeError(f'{name} takes no lines')
        stdin.write(json.dumps(what).encode() + b'\n')
        stdin.flush()

    def pid(self, name: str) -> int:
        """Return the id of a process."""
        return self._running[name].pid

    def send(self, name: str, *numbers: int) -> None:
        """Send signals to a process that may be gone."""
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(self.pid(name), number)

    def status(self, name: str) -> int | None:
        """Return the exit status of a process, or None while it runs."""
        return self._running[name].poll()

    def runs(self, name: str) -> bool:
        """Tell whether a process of that name was started and has not ended."""
        return name in self._running and self.status(name) is None
