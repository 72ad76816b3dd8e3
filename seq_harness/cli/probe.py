"""The command probe: ask an endpoint about one instant of a recording, and draw the answer."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
import sys

from seq_harness.bags.params import read_file
from seq_harness.bags.probing import probe_at
from seq_harness.bags.records import BagError
from seq_harness.cli.files import writable
from seq_harness.playback.probe import Probed
from seq_harness.playback.uplink import PolicyError, WorkerLost


def main(argv: list[str] | None = None) -> int:
    """Probe, print and draw; 0 only if something would be commanded."""
    arguments = _parser().parse_args(argv)
    # A policy may lie in the current folder, as for the worker.
    sys.path.insert(0, os.getcwd())
    try:
        values = read_file(arguments.params_file)
        probed = probe_at(arguments.path, values, arguments.worker, arguments.at)
        _tell(probed, arguments)
    except (BagError, OSError, PolicyError, ValueError, WorkerLost) as error:
        print(f'probe: {error}', file=sys.stderr)
        return 1
    return 0 if probed.commanded else 1


def _tell(probed: Probed, arguments: argparse.Namespace) -> None:
    series = probed.series()
    print(f'round trip {probed.round_trip_ns / 1e6:.1f} ms')
    for name, (times, values) in series.items():
        print(f'{name}: {len(times)} setpoints of {values.shape[1]} from {times[0]:.3f} s on')
    if probed.finding:
        print(f'probe: {probed.finding}', file=sys.stderr)
    if arguments.json is not None:
        plain = {
            name: {'t_s': times.tolist(), 'values': values.tolist()}
            for name, (times, values) in series.items()
        }
        told = {'round_trip_ms': probed.round_trip_ns / 1e6, 'finding': probed.finding}
        arguments.json.write_text(json.dumps({**told, 'channels': plain}, indent=2) + '\n')
    if arguments.output is not None and series:
        draw(probed, arguments.output, f'{arguments.path.name} at {arguments.at:g} s')


def draw(probed: Probed, file: Path, title: str) -> None:
    """
    Draw each channel's commanded values over time, in a file of the kind that its name says.

    Raises
    ------
    ValueError
        No picture is of that kind.

    """
    from matplotlib.figure import Figure

    series = probed.series()
    figure = Figure(figsize=(9, 1 + 3 * len(series)), layout='constrained')
    panels = figure.subplots(len(series), 1, squeeze=False)
    for panel, (name, (times, values)) in zip(panels[:, 0], series.items(), strict=True):
        for column in range(values.shape[1]):
            panel.step(times, values[:, column], where='post', label=str(column))
        panel.axvline(probed.round_trip_ns / 1e9, color='grey', linestyle=':')
        panel.set_title(name)
        panel.set_xlabel('after the question / s')
        panel.legend(loc='center left', bbox_to_anchor=(1, 0.5))
    figure.suptitle(f'{title}: round trip {probed.round_trip_ns / 1e6:.1f} ms')
    figure.savefig(file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='seq-harness probe',
        description='Ask a policy about one instant of a recording; nothing is played.',
    )
    add = parser.add_argument
    add('path', type=Path, metavar='BAG', help='a rosbag2 folder, or its file')
    add('--params-file', type=Path, required=True, help='parameters of the harness')
    add(
        '--worker', required=True, metavar='URL|embedded:MODULE:POLICY',
        help='a worker, or a policy to run in this process',
    )  # fmt: skip
    add('--at', type=float, required=True, metavar='S', help='seconds after the first message')
    add('-o', '--output', type=writable, metavar='FILE', help='draw it, as PNG, SVG or PDF')
    add('--json', type=writable, metavar='FILE', help='write the values to FILE')
    return parser


if __name__ == '__main__':
    sys.exit(main())
