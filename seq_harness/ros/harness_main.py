"""The process of the harness node."""

from __future__ import annotations

from collections.abc import Sequence
import sys
import time

from seq_harness.ros.node import HarnessNode
from seq_harness.ros.overrides import refuse_unbounded_files
from seq_harness.ros.process import Process
from seq_harness.settings.parameters import SettingsError

STOP_WITHIN_S = 1.0
"""How long a stopping process waits for its episode to end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until a signal; 0 after a wanted stop, 2 for wrong parameters."""
    process: Process | None = None
    arguments = sys.argv[1:] if argv is None else argv
    try:
        refuse_unbounded_files(arguments)
        process = Process(argv)
        node = HarnessNode(arguments=arguments)
    except Exception as error:
        # Whatever keeps the node from being made lies in its arguments or its parameter file.
        print(f'harness: {_told(error)}', file=sys.stderr)
        if process is not None:
            process.close()
        return 2
    process.favour(node.settings['niceness'])
    node.process_facts = process.facts
    if node.settings['autostart']:
        node.configure_soon(lambda: process.finish('configuring failed', 1))
    status = process.run(node, lambda reason: _stop(node, reason), node.stand_aside)
    node.close()
    node.destroy_node()
    process.close()
    return status


def _stop(node: HarnessNode, reason: str) -> None:
    node.interrupt(reason)
    until = time.monotonic() + STOP_WITHIN_S
    while node.episode_is_live and time.monotonic() < until:
        time.sleep(0.005)


def _told(error: Exception) -> str:
    if isinstance(error, SettingsError):
        return str(error)
    text = ' '.join(str(error).split())
    if 'PARAMETER_NOT_SET' in text:
        return (
            'a parameter is an empty list or has no value, so its type is unknown: give it '
            f'values, or leave it out of the parameter file ({text})'
        )
    return f'the arguments or the parameter file cannot be read: {text}'
