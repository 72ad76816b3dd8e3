"""The executor of a process of our own."""

from __future__ import annotations

import subprocess
import sys

from support.waiting import PATIENCE_S

SCRIPT = """
from rclpy.node import Node
from seq_harness.ros.process import Process

process, seen = Process([]), []
node = Node('polite')

def fire():
    seen.append('callback')
    if seen.count('callback') == 3:
        process.finish('seen', 0)

node.create_timer(0.01, fire)
process.run(node, lambda reason: None, lambda: seen.append('aside'))
process.close()
print(*seen)
"""


def test_the_executor_stands_aside_before_each_callback() -> None:
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    seen = done.stdout.split()
    callbacks = [at for at, what in enumerate(seen) if what == 'callback']
    assert len(callbacks) >= 3
    assert all(seen[at - 1] == 'aside' for at in callbacks)
