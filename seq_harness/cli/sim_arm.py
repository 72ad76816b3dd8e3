"""The command sim-arm: run the simulated arm with a camera."""

import sys

_USAGE = """usage: seq-harness sim-arm [--ros-args ...]

Publishes joint_states and camera/image_raw; takes setpoints on
forward_position_controller/commands and joint_trajectory_controller/joint_trajectory.
Parameters, each as --ros-args -p NAME:=VALUE: joint_rate_hz, camera_rate_hz, distance_rate_hz,
tolerance_m, hold_s, seed, joint_names."""


def main(argv: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the process's exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] in ('-h', '--help'):
        print(_USAGE)
        return 0
    if arguments and arguments[0] != '--ros-args':
        print(
            f'seq-harness sim-arm: expected --ros-args, got {arguments[0]!r}\n{_USAGE}',
            file=sys.stderr,
        )
        return 2
    from seq_harness.ros.sim_arm import main as run

    return run(arguments)
