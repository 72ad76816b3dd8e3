"""Run the harness node; arguments are those of any ROS 2 node."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until a signal; 0 after a wanted stop, 2 for wrong parameters."""
    from seq_harness.ros.harness_main import main as run

    return run(argv)
