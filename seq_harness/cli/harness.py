"""Run the harness node; arguments are those of any ROS 2 node."""

from __future__ import annotations

from collections.abc import Sequence
import sys

from seq_harness.ros.signals import end_at_once

USAGE = """usage: harness --ros-args --params-file FILE [-p NAME:=VALUE ...] [-r FROM:=TO ...]

Runs the node until SIGINT or SIGTERM. A parameter file that is complete: config/demo.yaml.
`preflight --params-file FILE` tells what is wrong before anything moves."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until a signal; 0 after a wanted stop, 2 for wrong parameters."""
    given = sys.argv[1:] if argv is None else argv
    if given and given[0] in ('-h', '--help'):
        print(USAGE)
        return 0
    end_at_once()
    from seq_harness.ros.harness_main import main as run

    return run(argv)
