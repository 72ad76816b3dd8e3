"""Public policy servers as their packages ship them, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
import os
from pathlib import Path
import signal
import subprocess
import tempfile
from typing import Any

import pytest
from support.ports import free_port
from support.sources import ROOT
from support.waiting import PATIENCE_S, wait_for

PYTHON = os.environ.get('SEQ_HARNESS_SERVERS_PYTHON', '')
"""The Python of the environment that holds the packages of scripts/requirements-servers.in."""

needs_servers = pytest.mark.skipif(
    not PYTHON,
    reason='SEQ_HARNESS_SERVERS_PYTHON names no Python with the public policy servers: '
    'scripts/test makes it, where there is a Python 3.11 or 3.12',
)
"""Marks what runs a public policy server, or its client."""

OURS = {'PYTHONPATH': os.pathsep.join(str(ROOT / name) for name in ('', 'test'))}
"""For a script that needs our model of the arm, or what lies beside it."""


END_S = 5.0
LISTENING = '0A'  # As /proc/net/tcp writes it.


class ServerProcess:
    """A script that runs with the servers' packages, until it is ended."""

    def __init__(
        self, script: Path, *arguments: str, variables: Mapping[str, str] | None = None
    ) -> None:
        """Start it; its folder is on its path and nothing of ROS 2, and `variables` are set."""
        kept = {key: value for key, value in os.environ.items() if key not in ROS_ONLY}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._process = subprocess.Popen(
            [PYTHON, str(script), *arguments],
            env={**kept, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    @property
    def pid(self) -> int:
        """Name the process, for a signal of its own."""
        return self._process.pid

    def output(self) -> str:
        """Return what it printed so far."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors='replace')

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """Return its exit status once it ended by itself."""
        return self._process.wait(within_s)

    def wait_for_port(self, port: int, within_s: float = PATIENCE_S) -> None:
        """Return once somebody listens on the port; fail, with its output, if it ended."""

        def listens() -> bool:
            if self._process.poll() is not None:
                raise AssertionError(f'the server ended before it listened:\n{self.output()}')
            return is_listened_to(port)

        wait_for(listens, within_s, f'a server on port {port}')

    def end(self) -> None:
        """End it, by force where it does not heed a request, even if it is stopped."""
        if self._output.closed:
            return
        self._process.terminate()
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._output.close()

    def kill(self) -> None:
        """Kill it, as nothing can be prepared for."""
        self._process.kill()
        self._process.wait(PATIENCE_S)


ROS_ONLY = frozenset({'PYTHONPATH', 'PYTHONHOME', 'LD_LIBRARY_PATH', 'AMENT_PREFIX_PATH'})
"""What an environment of ROS 2 sets, and a Python beside it must not see."""


@contextmanager
def served(
    script: Path, *arguments: str, port: int | None = None, **options: Any
) -> Iterator[tuple[ServerProcess, int]]:
    """
    Run a script that serves until the block ends; give its process and its port.

    The script is called with `--port PORT` before `arguments`, and listens there on 127.0.0.1; a
    given `port` is one that was served before. `options` are those of ServerProcess.
    """
    chosen = free_port() if port is None else port
    server = ServerProcess(script, '--port', str(chosen), *arguments, **options)
    try:
        server.wait_for_port(chosen)
        yield server, chosen
    finally:
        server.end()


def is_listened_to(port: int) -> bool:
    """Tell whether somebody listens on a TCP port, without bothering them."""
    ending = f':{port:04X}'
    tables = (Path('/proc/net') / name for name in ('tcp', 'tcp6'))
    rows = (line.split() for table in tables for line in table.read_text().splitlines()[1:])
    return any(row[1].endswith(ending) and row[3] == LISTENING for row in rows)
