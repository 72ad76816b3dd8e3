"""What the commands that run one node share: help, and arguments that are for ROS."""

from __future__ import annotations

from importlib import import_module
import sys

from seq_harness.ros.signals import end_at_once


def run_node(command: str, usage: str, module: str, argv: list[str] | None) -> int:
    """
    Run the node of `module` until SIGINT or SIGTERM; return the process's exit status.

    The module is imported only then, so that help needs no ROS.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] in ('-h', '--help'):
        print(usage)
        return 0
    if arguments and arguments[0] != '--ros-args':
        print(
            f'seq-harness {command}: expected --ros-args, got {arguments[0]!r}\n{usage}',
            file=sys.stderr,
        )
        return 2
    end_at_once()
    status: int = import_module(module).main(arguments)
    return status
