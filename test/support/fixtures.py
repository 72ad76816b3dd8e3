"""Bytes of both bindings as docs/wire.md shows them: what is sent, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
import os
from pathlib import Path
import re
from typing import Any, ClassVar

import numpy as np
from support.sources import ROOT

FOLDER = ROOT / 'docs' / 'fixtures'

EPISODE = '0123456789abcdef0123456789abcdef'
INSTANCE = '0123456789abcdef'
REQUEST_IDS = ('r-00000001', 'r-00000002')
HANDLER_MS = bytes.fromhex('3ff0000000000000')
"""1.0: how long an act took in the fixtures."""

WRITE = 'SEQ_HARNESS_WRITE_FIXTURES'
"""Set, the tests write the fixtures in place of comparing with them."""

FRONT = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
STATE = np.array([0.5, -0.5], np.float32)
OBSERVATION: Mapping[str, Any] = {'front': FRONT, 'state': STATE}


class Rows:
    """The policy of the fixtures: reads a window of one key and the newest of another."""

    observations: ClassVar[Mapping[str, Any]] = {
        'streams': {'front': {'at': [-1, 0]}, 'state': {}}
    }
    columns: ClassVar[list[str]] = ['joint_1', 'joint_2']
    actions: ClassVar[Mapping[str, Any]] = {'key': 'actions', 'hz': 20.0}

    def infer(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Answer two rows, and the steps that were read."""
        return {'actions': np.ones((2, 2), np.float32), 'steps': inputs['steps']}


def fixture(binding: str, name: str) -> bytes:
    """Return the bytes of one fixture, such as the websocket's `act request`."""
    return _read(binding)[name]


def check(binding: str, name: str, came: bytes) -> None:
    """Compare what came with a fixture, where it is not to be written."""
    came = plain(came)
    if os.environ.get(WRITE):
        _write(binding, {**_read(binding), name: came})
    assert came == fixture(binding, name), name


def plain(came: bytes) -> bytes:
    """Put what differs from run to run to what the fixtures hold."""
    came = re.sub(rb'(\xa8instance\xb0)[0-9a-f]{16}', rb'\g<1>' + INSTANCE.encode(), came)
    came = re.sub(rb'(\xaahandler_ms\xcb).{8}', rb'\g<1>' + HANDLER_MS, came, flags=re.DOTALL)
    came = re.sub(rb'("instance":")[0-9a-f]{16}', rb'\g<1>' + INSTANCE.encode(), came)
    came = re.sub(rb'(X-Seq-Instance: )[0-9a-f]{16}', rb'\g<1>' + INSTANCE.encode(), came)
    came = re.sub(rb'(X-Seq-Session: )[0-9a-f]{32}', rb'\g<1>' + EPISODE.encode(), came)
    came = re.sub(rb'(Host: |http://)127\.0\.0\.1:\d+', rb'\g<1>127.0.0.1:8765', came)
    came = re.sub(rb'\r\nContent-Length: \d+(?=.*worker_url)', b'', came, flags=re.DOTALL)
    came = re.sub(rb'("expires_at":\s?")[^"]*', rb'\g<1>2026-01-01T00:00:00Z', came)
    return re.sub(rb'\r\n(Date|Server): [^\r]*', b'', came)


def _path(binding: str) -> Path:
    return FOLDER / f'{binding}.txt'


def _read(binding: str) -> dict[str, bytes]:
    if not _path(binding).exists():
        return {}
    lines = _path(binding).read_text().splitlines()
    named = (line.partition(': ') for line in lines if line and not line.startswith('#'))
    return {name: bytes.fromhex(digits) for name, _, digits in named}


def _write(binding: str, fixtures: Mapping[str, bytes]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    head = f'# What goes over the {binding} binding, in hex; docs/wire.md tells it.\n'
    lines = (f'{name}: {data.hex()}\n' for name, data in fixtures.items())
    _path(binding).write_text(head + ''.join(lines))
