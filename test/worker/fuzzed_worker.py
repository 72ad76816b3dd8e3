"""A worker for hostile peers: run as a script, it serves until its input ends."""

from __future__ import annotations

from collections.abc import Mapping
import sys
from typing import Any, ClassVar

from seq_harness.worker.limits import Limits
from seq_harness.worker.running import served

# What is bounded is bounded low, so that what grows without bound is seen.
LIMITS = Limits(
    stream_wait_s=0.01,
    episodes=32,
    stream_frames=64,
    stream_bytes=1 << 18,
    worker_bytes=1 << 21,
    message_bytes=1 << 16,
    message_values=1 << 12,
    stranger_s=1.0,
)


class Echo:
    """Reads a window, and answers what it was handed."""

    observations: ClassVar[Mapping[str, Any]] = {
        'streams': {'image': {'at': [-1, 0]}, 'state': {}}
    }
    params: ClassVar[Mapping[str, Any]] = {'steps': {'type': 'int', 'default': 4, 'max': 8}}

    def infer(self, inputs: Any, params: Any, seed: Any) -> Any:
        """Answer the inputs."""
        return {'inputs': inputs, 'params': params, 'seed': seed}


if __name__ == '__main__':
    with served(Echo(), limits=LIMITS) as url:
        print(url, flush=True)
        sys.stdin.read()
