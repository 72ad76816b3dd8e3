"""
Time a camera frame from its message to the JPEG that a policy is sent.

The frame is what rclpy hands over, rgb8 without padding; the policy wants 224 x 224, padded,
bilinear, quality 95. By turns in one run, so that the ratio holds on a noisy machine, the same
message goes through the harness's observation and through the bare calls of numpy and Pillow that
the job takes: the pixels, the resizing into black, and the encoder, with the same filter and
quality. Both must give the same bytes.
"""

from __future__ import annotations

import argparse
from array import array
from collections.abc import Callable
import gc
import io
import json
import statistics
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
from seq_harness.contract.camera import Camera, JPEG_QUALITY
from seq_harness.inputs import Inputs
from seq_harness.observation import ObservationSpec
from seq_harness.settings import parse

SIZES = ((640, 480), (1280, 720))
SIDE = 224
FRAMES, WARM = 400, 20
"""Frames of each, by turns, and those before them that are not counted."""

S = 1_000_000_000


def scene(width: int, height: int) -> bytes:
    """Return RGB pixels of smooth shades under a little noise, as a camera's are."""
    rows, columns = np.mgrid[0:height, 0:width]
    shades = [np.sin(columns / (23 + 9 * c)) + np.cos(rows / (17 + 7 * c)) for c in range(3)]
    noise = np.random.default_rng(3).normal(0.0, 4.0, (height, width, 3))
    pixels = 128 + 55 * np.stack(shades, axis=2) + noise
    return np.clip(pixels, 0, 255).astype(np.uint8).tobytes()


def message_of(width: int, height: int, data: Any) -> SimpleNamespace:
    """Return what has the fields of a sensor_msgs/Image."""
    stamp = SimpleNamespace(sec=1, nanosec=0)
    return SimpleNamespace(
        header=SimpleNamespace(stamp=stamp),
        encoding='rgb8',
        width=width,
        height=height,
        step=3 * width,
        is_bigendian=0,
        data=data,
    )


class Ours:
    """The way of a frame through the harness: put, observed, and read."""

    def __init__(self, message: SimpleNamespace) -> None:
        settings = parse(
            {
                'input_names': ['front', 'state'],
                'inputs.front.topic': 'camera/image_raw',
                'inputs.front.type': 'image',
                'inputs.state.topic': 'joint_states',
                'inputs.state.type': 'joint_state',
                'inputs.state.joints': ['joint'],
                'channel_names': ['arm'],
                'channels.arm.topic': 'commands',
                'channels.arm.type': 'float64_multi_array',
                'channels.arm.joints': ['joint'],
                'channels.arm.state': 'state',
                'channels.arm.lower': [-1.0],
                'channels.arm.upper': [1.0],
                'channels.arm.max_velocity': [1.0],
            }
        )
        camera = Camera(width=SIDE, height=SIDE, resize='pad', filter='bilinear', codec='jpeg')
        self._message = message
        self._inputs = Inputs(settings.inputs)
        self._spec = ObservationSpec(settings.inputs, {'front': camera}, '')
        self._now_ns = S

    def __call__(self) -> bytes:
        """Return the JPEG of the next frame."""
        self._now_ns += S // 30
        self._message.header.stamp.sec, self._message.header.stamp.nanosec = divmod(
            self._now_ns, S
        )
        self._inputs.put(
            'front', self._message, now_ns=self._now_ns, ros_now_ns=self._now_ns, topic='camera'
        )
        observation = self._spec.observe(self._inputs.snapshot(), self._now_ns, '')
        jpeg: bytes = observation['front']
        return jpeg


def bare(message: SimpleNamespace) -> bytes:
    """Return the JPEG of a frame by the libraries' own calls alone."""
    pixels = np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
    image = Image.fromarray(pixels)
    ratio = max(image.width / SIDE, image.height / SIDE)
    inner = (int(image.width / ratio), int(image.height / ratio))
    padded = Image.new('RGB', (SIDE, SIDE))
    place = (int((SIDE - inner[0]) / 2), int((SIDE - inner[1]) / 2))
    padded.paste(image.resize(inner, Image.Resampling.BILINEAR), place)
    out = io.BytesIO()
    padded.save(out, 'JPEG', quality=JPEG_QUALITY)
    return out.getvalue()


def time_ms(call: Callable[[], bytes]) -> float:
    """Return how long a frame took, in ms."""
    start_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start_ns) / 1e6


def compared(width: int, height: int, frames: int) -> tuple[list[float], list[float]]:
    """Return the times of our frames and of the bare ones, in ms, made by turns."""
    message = message_of(width, height, array('B', scene(width, height)))
    ours = Ours(message)
    if ours() != bare(message):
        raise SystemExit(f'the two JPEGs of {width} x {height} differ: nothing is compared')
    own: list[float] = []
    plain: list[float] = []
    for _ in range(WARM + frames):
        own.append(time_ms(ours))
        plain.append(time_ms(lambda: bare(message)))
    return own[WARM:], plain[WARM:]


def main() -> None:
    """Print a table, and the figures as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--frames', type=int, default=FRAMES, help='of each (%(default)s)')
    options = parser.parse_args()
    gc.freeze()
    figures: dict[str, float] = {}
    print(f'{"frame":>10}{"ours ms":>10}{"p99":>8}{"bare ms":>10}{"p99":>8}{"ratio":>8}')
    for width, height in SIZES:
        own, plain = compared(width, height, options.frames)
        medians = statistics.median(own), statistics.median(plain)
        name, ratio = f'{width}x{height}', medians[0] / medians[1]
        tails = np.percentile(own, 99), np.percentile(plain, 99)
        print(
            f'{name:>10}{medians[0]:>10.3f}{tails[0]:>8.2f}{medians[1]:>10.3f}{tails[1]:>8.2f}'
            f'{ratio:>8.3f}'
        )
        figures[f'ms_{name}'] = round(medians[0], 3)
        figures[f'ratio_{name}'] = round(ratio, 3)
    print(json.dumps(figures))


if __name__ == '__main__':
    main()
