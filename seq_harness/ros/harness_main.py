"""The process of the harness node."""

from __future__ import annotations

from collections.abc import Sequence
import sys
import time

from seq_harness.ros.node import HarnessNode
from seq_harness.ros.process import Process
from seq_harness.settings.parameters import SettingsError

STOP_WITHIN_S = 1.0
"""How long a stopping process waits for its episode to end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until a signal; 0 after a wanted stop, 2 for wrong parameters."""
    process = Process(argv)
    try:
        node = HarnessNode()
    except SettingsError as error:
        print(f'harness: {error}', file=sys.stderr)
        process.close()
        return 2
    node.process_facts = process.facts
    if node.settings['autostart']:
        node.configure_soon(lambda: process.finish('configuring failed', 1))
    status = process.run(node, lambda reason: _stop(node, reason))
    node.close()
    node.destroy_node()
    process.close()
    return status


def _stop(node: HarnessNode, reason: str) -> None:
    node.interrupt(reason)
    until = time.monotonic() + STOP_WITHIN_S
    while node.episode_is_live and time.monotonic() < until:
        time.sleep(0.005)
