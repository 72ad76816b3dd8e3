"""The command watchdog: zero what a harness commands once that is dead or frozen."""

from __future__ import annotations

import sys

_USAGE = """usage: seq-harness watchdog [--ros-args ...]

Listens to a harness that has require_watchdog set. Once that falls silent while it moves a robot,
by a crash, a kill or a freeze, its velocities and efforts are set to zero until a new episode
starts, or until ~/release is called. Parameters, each as --ros-args -p NAME:=VALUE: harness,
timeout_s, rt_priority."""


def main(argv: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the process's exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] in ('-h', '--help'):
        print(_USAGE)
        return 0
    if arguments and arguments[0] != '--ros-args':
        print(
            f'seq-harness watchdog: expected --ros-args, got {arguments[0]!r}\n{_USAGE}',
            file=sys.stderr,
        )
        return 2
    from seq_harness.ros.watchdog import main as run

    return run(arguments)
