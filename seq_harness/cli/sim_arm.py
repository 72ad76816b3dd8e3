"""The command sim-arm: run the simulated arm with a camera."""

from seq_harness.cli.nodes import run_node

_USAGE = """usage: seq-harness sim-arm [--ros-args ...]

Publishes joint_states and camera/image_raw; takes setpoints on
forward_position_controller/commands and joint_trajectory_controller/joint_trajectory.
Parameters, each as --ros-args -p NAME:=VALUE: joint_rate_hz, camera_rate_hz, distance_rate_hz,
tolerance_m, hold_s, seed, joint_names."""


def main(argv: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the process's exit status."""
    return run_node('sim-arm', _USAGE, 'seq_harness.ros.sim_arm', argv)
