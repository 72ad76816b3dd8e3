"""The command preflight: name what is wrong with the robot and the worker before motion."""

from __future__ import annotations

import argparse

from seq_harness.cli.files import readable


def main(argv: list[str] | None = None) -> int:
    """Look, print what was found, and return 0, 1 after a warning, or 2 after a fault."""
    parser = argparse.ArgumentParser(
        prog='seq-harness preflight',
        description='Look at the inputs, the controllers, the worker and this machine; nothing '
        'moves. What follows -- is for ROS, such as -p worker_url:=ws://robot:8765.',
    )
    parser.add_argument(
        '--params-file', type=readable, required=True, help='the parameters of the harness'
    )
    parser.add_argument('--json', action='store_true', help='print one JSON object')
    parser.add_argument('--seconds', type=_seconds, default=3.0, help='how long to listen; 3')
    parser.add_argument('ros', nargs='*', help='more ROS arguments, after --')
    options = parser.parse_args(argv)
    from seq_harness.ros.preflight_main import main as run

    arguments = ['--params-file', str(options.params_file), *options.ros]
    return run(arguments, as_json=options.json, watch_s=options.seconds)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f'expected seconds above 0, up to an hour, got {text}')
    return seconds
