"""The command watchdog: zero what a harness commands once that is dead or frozen."""

from __future__ import annotations

from seq_harness.cli.nodes import run_node

_USAGE = """usage: seq-harness watchdog [--ros-args ...]

Listens to a harness that has require_watchdog set. Once that falls silent while it moves a robot,
by a crash, a kill or a freeze, its velocities and efforts are set to zero until a new episode
starts, or until ~/release is called. Parameters, each as --ros-args -p NAME:=VALUE: harness,
timeout_s, rt_priority."""


def main(argv: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the process's exit status."""
    return run_node('watchdog', _USAGE, 'seq_harness.ros.watchdog', argv)
