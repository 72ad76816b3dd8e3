"""Images as they come from cameras, in every encoding that is read."""

from __future__ import annotations

from collections.abc import Callable
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from seq_harness.messages.images import check_image, decode_image, ImageRefused

Of = Callable[[str], Callable[..., Any]]

IMAGE = 'sensor_msgs/msg/Image'
RGB = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3) * 10


def _image(of: Of, encoding: str, rows: np.ndarray, step: int | None = None, **more: Any) -> Any:
    """Pack `rows` [H, W, ...] into an image whose rows are `step` bytes long."""
    height, width = rows.shape[:2]
    flat = np.ascontiguousarray(rows).view(np.uint8).reshape(height, -1)
    step = step or flat.shape[1]
    padded = np.full((height, step), 0xEE, np.uint8)
    padded[:, : flat.shape[1]] = flat
    fields = {'encoding': encoding, 'height': height, 'width': width, 'step': step}
    return of(IMAGE)(data=padded.tobytes(), **{**fields, **more})


def _with_alpha(colours: np.ndarray) -> np.ndarray:
    return np.concatenate([colours, np.full((*colours.shape[:2], 1), 7, np.uint8)], axis=2)


@pytest.mark.parametrize('step', [None, 40])
@pytest.mark.parametrize(
    ('encoding', 'sent'),
    [
        ('rgb8', RGB),
        ('bgr8', RGB[..., ::-1]),
        ('8UC3', RGB[..., ::-1]),
        ('rgba8', _with_alpha(RGB)),
        ('bgra8', _with_alpha(RGB[..., ::-1])),
        ('8UC4', _with_alpha(RGB[..., ::-1])),
    ],
)
def test_g8_colour_comes_out_as_rgb_whatever_its_order_and_row_length(
    of: Of, encoding: str, sent: np.ndarray, step: int | None
) -> None:
    pixels = decode_image(_image(of, encoding, sent, step))
    np.testing.assert_array_equal(pixels, RGB)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous


@pytest.mark.parametrize('encoding', ['mono8', '8UC1'])
def test_grey_comes_out_as_rgb(of: Of, encoding: str) -> None:
    grey = RGB[..., 0]
    pixels = decode_image(_image(of, encoding, grey, step=9))
    np.testing.assert_array_equal(pixels, np.stack([grey] * 3, axis=2))


@pytest.mark.parametrize('encoding', ['mono16', '16UC1'])
@pytest.mark.parametrize('big', [0, 1])
def test_depth_keeps_its_16_bits_in_either_byte_order(of: Of, encoding: str, big: int) -> None:
    depth = np.array([[1, 256, 65535], [4000, 300, 2]], np.uint16)
    sent = depth.astype('>u2' if big else '<u2')
    pixels = decode_image(_image(of, encoding, sent, step=10, is_bigendian=big))
    np.testing.assert_array_equal(pixels, depth)
    assert pixels.dtype == np.uint16
    assert pixels.dtype.isnative


@pytest.mark.parametrize('big', [0, 1])
def test_depth_in_metres_keeps_its_gaps(of: Of, big: int) -> None:
    depth = np.array([[0.5, np.nan], [1.25, np.inf]], np.float32)
    sent = depth.astype('>f4' if big else '<f4')
    pixels = decode_image(_image(of, '32FC1', sent, is_bigendian=big))
    np.testing.assert_array_equal(pixels, depth)
    assert pixels.dtype == np.float32


def test_a_last_row_without_its_padding_is_read(of: Of) -> None:
    message = _image(of, 'rgb8', RGB, step=20)
    message.data = message.data[:-8]
    np.testing.assert_array_equal(decode_image(message), RGB)


def test_pixels_cannot_be_written(of: Of) -> None:
    with pytest.raises(ValueError, match='read-only'):
        decode_image(_image(of, 'rgb8', RGB))[0, 0, 0] = 1


def _exact_rgb(luma: np.ndarray, blue: np.ndarray, red: np.ndarray) -> np.ndarray:
    y, u, v = (plane.astype(np.float64) for plane in (luma, blue, red))
    y, u, v = (y - 16) * 255 / 219, (u - 128) * 255 / 224, (v - 128) * 255 / 224
    rgb = np.stack([y + 1.402 * v, y - 0.344136 * u - 0.714136 * v, y + 1.772 * u], axis=2)
    return np.clip(rgb, 0, 255)


def _video_planes(height: int, width: int, down: int, across: int) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [
        random.integers(16, 235, (height, width), np.uint8),
        random.integers(16, 240, (height // down, width // across), np.uint8),
        random.integers(16, 240, (height // down, width // across), np.uint8),
    ]


@pytest.mark.parametrize(
    ('encoding', 'order'),
    [
        ('uyvy', 'u0v1'),
        ('yuv422', 'u0v1'),
        ('yuyv', '0u1v'),
        ('yuv422_yuy2', '0u1v'),
    ],
)
def test_g9_4_2_2_is_read_in_the_order_its_name_declares(
    of: Of, encoding: str, order: str
) -> None:
    luma, blue, red = _video_planes(4, 6, 1, 2)
    parts = {'u': blue, 'v': red, '0': luma[:, 0::2], '1': luma[:, 1::2]}
    sent = np.stack([parts[key] for key in order], axis=2).reshape(4, 6, 2)
    pixels = decode_image(_image(of, encoding, sent, step=16))
    exact = _exact_rgb(luma, blue.repeat(2, axis=1), red.repeat(2, axis=1))
    np.testing.assert_allclose(pixels, exact, atol=2.5)


@pytest.mark.parametrize(
    ('encoding', 'down', 'swapped'), [('nv12', 2, False), ('nv21', 2, True), ('nv24', 1, False)]
)
@pytest.mark.parametrize('padding', [0, 2])
def test_two_plane_video_is_read(
    of: Of, encoding: str, down: int, swapped: bool, padding: int
) -> None:
    luma, blue, red = _video_planes(4, 6, down, down)
    pairs = np.stack([red, blue] if swapped else [blue, red], axis=2).reshape(4 // down, -1)
    step = 6 + padding
    planes = [
        np.pad(luma, [(0, 0), (0, padding)]),
        np.pad(pairs, [(0, 0), (0, step * 2 // down - pairs.shape[1])]),
    ]
    message = of(IMAGE)(
        encoding=encoding,
        height=4,
        width=6,
        step=step,
        data=b''.join(plane.tobytes() for plane in planes),
    )
    full = [plane.repeat(down, axis=0).repeat(down, axis=1) for plane in (blue, red)]
    np.testing.assert_allclose(decode_image(message), _exact_rgb(luma, *full), atol=2.5)


@pytest.mark.parametrize('pattern', ['rggb', 'grbg', 'gbrg', 'bggr'])
def test_a_mosaic_of_one_colour_is_that_colour_everywhere(of: Of, pattern: str) -> None:
    values = {'r': 200, 'g': 120, 'b': 40}
    cell = np.array([values[key] for key in pattern], np.uint8).reshape(2, 2)
    pixels = decode_image(_image(of, f'bayer_{pattern}8', np.tile(cell, (3, 4)), step=11))
    np.testing.assert_array_equal(pixels, np.broadcast_to([200, 120, 40], (6, 8, 3)))


def test_a_mosaic_of_a_ramp_is_interpolated_between_its_samples(of: Of) -> None:
    ramp = np.add.outer(np.arange(6) * 20, np.arange(6) * 10).astype(np.uint8)
    pixels = decode_image(_image(of, 'bayer_rggb8', ramp))
    inner = (slice(1, -1), slice(1, -1))
    for channel in range(3):
        np.testing.assert_array_equal(pixels[inner][..., channel], ramp[inner])


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'encoding': 'rgb9'}, "unknown image encoding 'rgb9'; expected one of .*bgr8"),
        ({'encoding': ''}, "unknown image encoding ''"),
        ({'width': 0}, 'at least 1 x 1 pixels, got 0 x 2'),
        ({'height': 0}, 'at least 1 x 1 pixels, got 4 x 0'),
        ({'step': 11}, "4 pixels of 'rgb8' take 12 bytes a row, got a step of 11"),
        ({'height': 3}, 'take 36 bytes, got 24'),
        ({'data': b''}, 'take 24 bytes, got 0'),
        ({'width': 2**31, 'step': 2**32 - 1}, 'take 6442450944 bytes a row'),
        ({'encoding': 'uyvy', 'width': 3}, "'uyvy' needs an even width, got 3 x 2"),
        ({'encoding': 'nv12', 'height': 1}, "'nv12' needs an even height, got 4 x 1"),
        ({'encoding': 'nv24'}, 'take 64 bytes, got 24'),
        ({'encoding': 'bayer_rggb8', 'width': 1}, 'at least 2 x 2 pixels, got 1 x 2'),
    ],
)
def test_g9_an_image_that_contradicts_itself_is_refused_with_both_numbers(
    of: Of, changes: dict[str, Any], said: str
) -> None:
    fields = {'encoding': 'rgb8', 'height': 2, 'width': 4, 'step': 12, 'data': RGB.tobytes()}
    message = of(IMAGE)(**{**fields, **changes})
    for read in (check_image, decode_image):
        with pytest.raises(ImageRefused, match=said):
            read(message)


def test_a_good_image_passes_the_check(of: Of) -> None:
    check_image(_image(of, 'rgb8', RGB, step=13))


def test_g14_images_are_read_without_cv_bridge_and_opencv() -> None:
    program = (
        'import sys\n'
        'import seq_harness.observation\n'
        "print(sorted(name for name in sys.modules if name in ('cv2', 'cv_bridge')))\n"
    )
    answer = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=30
    )
    assert answer.stdout.strip() == '[]'
