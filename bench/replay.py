"""
Time a replay in lockstep, and look at what it takes and whether it is the same every time.

A recording of ten minutes, with two JPEG cameras at 30 Hz and joints at 200 Hz, is replayed
uncharged with a policy that holds, at 50 rows a second; and a short one twenty times.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import io
import json
import math
from pathlib import Path
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
from PIL import Image, ImageFilter
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores

S = 1_000_000_000
START_NS = 1_700_000_000 * S
JOINTS = [f'joint_{number}' for number in range(1, 8)]
CAMERAS = ('left', 'right')
STORE = get_typestore(Stores.ROS2_JAZZY)
JOINT_STATE, COMPRESSED = 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/CompressedImage'
POLICY = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0&hz=50&rows=25'

MIN_SPEED_X = 30.0
MAX_RSS_MB = 300.0

ONE_RUN = """
import json, resource, sys
from seq_harness.bags import replay
bag, params, policy, times = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
runs = [replay(bag, params, policy) for _ in range(times)]
rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({
    'reasons': sorted({run.reason for run in runs}),
    'hashes': len({run.hash for run in runs}),
    'setpoints': len(runs[0].setpoints['arm']),
    'speed_x': round(min(run.speed_x for run in runs), 1),
    'rss_mb': round(rss_mb, 1),
}))
"""


def parameters() -> dict[str, Any]:
    """Return parameters that read the recordings made here."""
    wide = [1e4] * len(JOINTS)
    inputs: dict[str, Any] = {
        'state': {'topic': 'joint_states', 'type': 'joint_state', 'joints': JOINTS}
    }
    for name in CAMERAS:
        inputs[name] = {'topic': f'{name}/compressed', 'type': 'compressed_image'}
    channel = {
        'topic': 'commands',
        'type': 'float64_multi_array',
        'joints': JOINTS,
        'state': 'state',
        'lower': [-each for each in wide],
        'upper': wide,
        'max_velocity': wide,
    }
    return {
        'preview': False,
        'input_names': list(inputs),
        'inputs': inputs,
        'channel_names': ['arm'],
        'channels': {'arm': channel},
    }


def pictures(count: int = 8) -> list[Any]:
    """Return JPEGs of 640x480 pixels, as large as a camera's."""
    made = []
    for number in range(count):
        noise = np.random.default_rng(number).integers(0, 255, (480, 640, 3), np.uint8)
        picture = Image.fromarray(noise).filter(ImageFilter.GaussianBlur(2))
        out = io.BytesIO()
        picture.save(out, 'JPEG', quality=80)
        made.append(np.frombuffer(out.getvalue(), np.uint8))
    return made


def header(stamp_ns: int) -> Any:
    """Return a header stamped so."""
    sec, nanosec = divmod(stamp_ns, S)
    stamp = STORE.types['builtin_interfaces/msg/Time'](sec=sec, nanosec=nanosec)
    return STORE.types['std_msgs/msg/Header'](stamp=stamp, frame_id='')


def messages(seconds: float) -> Iterator[tuple[str, str, int, Any]]:
    """Yield topic, type, log time and message, in order of log time."""
    frames, nothing = pictures(), np.zeros(0)
    frame_number = 0
    for tick in range(round(seconds * 200)):
        log_ns = START_NS + tick * S // 200
        while frame_number * S // 30 <= tick * S // 200:
            data = frames[frame_number % len(frames)]
            for name in CAMERAS:
                stamped = header(log_ns - 8_000_000)
                picture = STORE.types[COMPRESSED](header=stamped, format='jpeg', data=data)
                yield f'/{name}/compressed', COMPRESSED, log_ns, picture
            frame_number += 1
        position = np.array([0.3 * math.sin(tick / 200 + joint) for joint in range(len(JOINTS))])
        state = STORE.types[JOINT_STATE](
            header=header(log_ns - 1_000_000),
            name=JOINTS,
            position=position,
            velocity=nothing,
            effort=nothing,
        )
        yield '/joint_states', JOINT_STATE, log_ns, state


def recorded(path: Path, seconds: float) -> Path:
    """Write a recording of so many seconds."""
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topics = {
            name: writer.add_connection(name, kind, typestore=STORE)
            for name, kind in [
                ('/joint_states', JOINT_STATE),
                *((f'/{name}/compressed', COMPRESSED) for name in CAMERAS),
            ]
        }
        for topic, kind, log_ns, message in messages(seconds):
            data = bytes(STORE.serialize_cdr(message, kind))
            writer.write(topics[topic], log_ns, data)
    return path


def measured(bag: Path, times: int) -> dict[str, Any]:
    """Replay in a process of its own, so that what it takes is its own."""
    command = [sys.executable, '-c', ONE_RUN, str(bag), json.dumps(parameters()), POLICY]
    done = subprocess.run([*command, str(times)], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    """Print a table, and the figures as one JSON object; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seconds', type=float, default=600.0, help='of the long recording')
    parser.add_argument('--times', type=int, default=20, help='that the short one is replayed')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='bench-replay-') as folder:
        long = measured(recorded(Path(folder) / 'long', arguments.seconds), 1)
        short = measured(recorded(Path(folder) / 'short', 5.0), arguments.times)
    print(f'{"recording":<12}{"setpoints":>10}{"speed x":>10}{"rss MB":>10}{"hashes":>10}')
    for name, each in (('long', long), ('short', short)):
        print(
            f'{name:<12}{each["setpoints"]:>10}{each["speed_x"]:>10}{each["rss_mb"]:>10}'
            f'{each["hashes"]:>10}'
        )
    figures = {
        'speed_x': long['speed_x'],
        'rss_mb': long['rss_mb'],
        'hashes': short['hashes'],
        'reasons': sorted({*long['reasons'], *short['reasons']}),
    }
    print(json.dumps(figures))
    met = long['speed_x'] >= MIN_SPEED_X and long['rss_mb'] < MAX_RSS_MB and short['hashes'] == 1
    return 0 if met and figures['reasons'] == ['bag_ended'] else 1


if __name__ == '__main__':
    sys.exit(main())
