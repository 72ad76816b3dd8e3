"""Workers as processes of their own, and the policies that the benchmarks serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
import subprocess
import sys
from typing import Any, ClassVar

import numpy as np

START_S = 30.0


class Still:
    """Answers 1.4 kB at once, whatever it is given."""

    def __init__(self) -> None:
        self._actions = np.zeros((50, 7), np.float32)

    def infer(self, inputs: Any) -> dict[str, Any]:
        """Answer the same rows again."""
        return {'actions': self._actions}


class Every(Still):
    """Reads every observation since the act before."""

    observations: ClassVar[Mapping[str, Any]] = {'every': 1}

    def infer(self, inputs: Any) -> dict[str, Any]:
        """Answer how many observations were read, beside the rows."""
        return {**super().infer(inputs), 'read': len(inputs['observations'])}


class Batch(Still):
    """Reads a list of observations that its act carries all by itself."""

    def infer(self, inputs: Any) -> dict[str, Any]:
        """Answer how many observations were read, beside the rows."""
        return {**super().infer(inputs), 'read': len(inputs['observations'])}


class WorkerProcess:
    """A worker that serves one of these policies."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def resident_mb(self) -> float:
        """Return how much memory the process holds, in MB."""
        status = Path(f'/proc/{self._process.pid}/status').read_text()
        line = next(line for line in status.splitlines() if line.startswith('VmRSS:'))
        return int(line.split()[1]) / 1024


@contextmanager
def serving(policy: type) -> Iterator[WorkerProcess]:
    """Serve a policy of this module until the block ends."""
    process = subprocess.Popen(
        [
            *(sys.executable, '-m', 'seq_harness.cli.worker'),
            *(f'{Path(__file__).stem}:{policy.__name__}', '--port', '0'),
        ],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        if process.stdout is None:
            raise RuntimeError('the worker has no output')
        yield WorkerProcess(process, process.stdout.readline().split()[-1])
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
