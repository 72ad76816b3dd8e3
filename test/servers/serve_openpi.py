"""Policies behind the real openpi-server; its options say how they behave."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

import numpy as np
from openpi_client.base_policy import BasePolicy
from openpi_server import WebsocketPolicyServer
from servers.reaching import Reaching


class Counting(BasePolicy):  # type: ignore[misc]
    """Answers rows that say which inference it was, and prints what it read."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._count = 0

    def infer(self, obs: dict[str, Any]) -> Any:
        number, options = self._count, self._options
        self._count += 1
        print(json.dumps({'read': shapes(obs)}), flush=True)
        if number == options.slow_at:
            time.sleep(options.slow_s)
        if number == options.fail_at:
            raise ValueError('told to fail')
        if number == options.die_at:
            os._exit(1)
        if number == options.list_at:
            return [1, 2]
        rows = np.full((options.rows, options.width), number, np.float32)
        return {options.rows_key: rows, 'state': np.zeros(3)}


class Pursuing(BasePolicy):  # type: ignore[misc]
    """Reaches for the target that its frame shows."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._frame, self._state = options.frame_key, options.state_key
        self._reaching = Reaching(options.jumps)

    def infer(self, obs: dict[str, Any]) -> Any:
        frame = obs[self._frame]
        if frame.shape[0] == 3:
            frame = frame.transpose(1, 2, 0)
        return self._reaching.answer(frame, obs[self._state])


def shapes(value: Any) -> Any:
    """Describe an observation: an array by its type and shape, whatever else by itself."""
    if isinstance(value, dict):
        return {key: shapes(item) for key, item in value.items()}
    return [value.dtype.str, *value.shape] if isinstance(value, np.ndarray) else value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--reach', action='store_true')
    parser.add_argument('--jumps', type=int, default=3)
    parser.add_argument('--frame-key', default='front')
    parser.add_argument('--state-key', default='state')
    parser.add_argument('--metadata', type=json.loads, default={})
    parser.add_argument('--rows-key', default='actions')
    parser.add_argument('--rows', type=int, default=8)
    parser.add_argument('--width', type=int, default=6)
    parser.add_argument('--slow-s', type=float, default=0.0)
    for name in ('slow', 'fail', 'die', 'list'):
        parser.add_argument(f'--{name}-at', type=int, default=-1)
    options = parser.parse_args()
    policy = Pursuing(options) if options.reach else Counting(options)
    WebsocketPolicyServer(policy, '127.0.0.1', options.port, options.metadata).serve_forever()


if __name__ == '__main__':
    main()
