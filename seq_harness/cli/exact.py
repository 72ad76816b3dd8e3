"""What `replay --exact` shows."""

from __future__ import annotations

from dataclasses import asdict
import json
from pathlib import Path
import sys

from seq_harness.bags.exact import Exact, replay_exact

SAME, DIFFERENT = 0, 1


def tell_exact(path: Path, file: Path | None) -> int:
    """
    Replay a record and show what came of it; 0 if every setpoint was the same and none is damaged.

    Raises
    ------
    BagError
        The record cannot be read, or cannot be replayed exactly.

    """
    exact = replay_exact(path)
    for name, value in (
        ('ended by', exact.reason or '-'),
        ('rounds', exact.rounds),
        ('setpoints', exact.setpoints),
        ('hash as recorded', exact.recorded_hash),
        ('hash', exact.hash),
    ):
        print(f'{name:<34}{value}')
    if file is not None:
        file.write_text(json.dumps(asdict(exact), indent=2) + '\n')
    if exact.broken:
        print(f'replay: the record breaks off: {exact.broken}', file=sys.stderr)
        print('replay: what is before was replayed', file=sys.stderr)
    return _verdict(exact)


def _verdict(exact: Exact) -> int:
    if exact.difference is not None:
        print(f'replay: the first difference: {exact.difference}', file=sys.stderr)
        for name, (then, here) in exact.elsewhere.items():
            print(f'replay: recorded with {name} {then}; here is {here}', file=sys.stderr)
        return DIFFERENT
    if exact.hash != exact.recorded_hash:
        print('replay: the hashes differ, though no setpoint does', file=sys.stderr)
        return DIFFERENT
    return DIFFERENT if exact.damaged else SAME
