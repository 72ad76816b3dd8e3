"""The harness as a process that is started and stopped many times: it stays as large as it is."""

from __future__ import annotations

import os
from pathlib import Path
import re
from typing import NamedTuple

from seq_harness.cli.children import Children
from support.driving import Driven, driven
from support.waiting import PATIENCE_S

FIRST, MORE = 20, 100
GROWTH_MB, GROWTH_DESCRIPTORS = 20.0, 3

SCRIPTED = 'seq_harness.worker.policies.scripted:Scripted'
SLOW = (
    'delay_s=0.2',
    'chunks=[{"actions": [[0, 0, 0, 0, 0, 0]]}]',
    'actions={"key": "actions", "hz": 20}',
    'observations={"streams": {"front": {"at": [-2, 0]}, "state": {}}}',
    'columns=["joint_1", "joint_2", "joint_3", "joint_4", "joint_5", "joint_6"]',
)
"""Answers so late that the episode is over."""


class Size(NamedTuple):
    """What a process holds."""

    memory_mb: float
    descriptors: int

    @classmethod
    def of(cls, pid: int) -> Size:
        """Look at a process."""
        found = re.search(r'VmRSS:\s+(\d+)', Path(f'/proc/{pid}/status').read_text())
        assert found is not None
        return cls(int(found.group(1)) / 1024, len(os.listdir(f'/proc/{pid}/fd')))


def interrupt(run: Driven, count: int) -> None:
    """Start and stop episodes; each ends while its act is in flight."""
    watcher, each = run.watcher, run.children.check
    for _ in range(count):
        watcher.wait(lambda: watcher.call('start') == '', PATIENCE_S, 'a start', each)
        watcher.wait(lambda: watcher.figures['state'] == 'running', PATIENCE_S, 'an act', each)
        assert watcher.call('stop') == ''
        watcher.wait(lambda: not watcher.live, PATIENCE_S, 'its end', each)


def test_the_node_does_not_grow_with_episodes_that_end_while_an_act_is_in_flight(
    tmp_path: Path,
) -> None:
    with (
        Children(tmp_path) as children,
        driven(children, SCRIPTED, arguments=SLOW) as run,
    ):
        run.watcher.wait(lambda: run.watcher.ready, PATIENCE_S, 'a ready harness', children.check)
        interrupt(run, FIRST)
        before = Size.of(children.pid('harness'))
        interrupt(run, MORE)
        after = Size.of(children.pid('harness'))
    assert after.memory_mb - before.memory_mb <= GROWTH_MB
    assert after.descriptors - before.descriptors <= GROWTH_DESCRIPTORS
