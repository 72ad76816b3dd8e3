"""Random images against a slow reader of single bytes, and random damage against everything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
import io
import random
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.inputs import Inputs, Verdict
from seq_harness.messages.images import decode_image, ImageRefused
from seq_harness.observation import ObservationRefused, ObservationSpec
from support.robots import S, settings_of

IMAGES, DAMAGED = 2000, 10000

RGB_AT = {
    'rgb8': (3, (0, 1, 2)),
    'rgba8': (4, (0, 1, 2)),
    'bgr8': (3, (2, 1, 0)),
    'bgra8': (4, (2, 1, 0)),
    '8UC3': (3, (2, 1, 0)),
    '8UC4': (4, (2, 1, 0)),
    'mono8': (1, (0, 0, 0)),
    '8UC1': (1, (0, 0, 0)),
}
"""Encoding to its bytes a pixel, and where red, green and blue are among them."""

NUMBERS = {'mono16': (2, 'H'), '16UC1': (2, 'H'), '32FC1': (4, 'f')}
"""Encoding to its bytes a pixel, and their format for struct."""

PAIRS = {
    'yuv422': (1, 0, 2),
    'uyvy': (1, 0, 2),
    'yuv422_yuy2': (0, 1, 3),
    'yuyv': (0, 1, 3),
}
"""Encoding to the places of the first luma, of blue and of red chroma, in four bytes."""

MOSAICS = {
    'bayer_rggb8': ('rg', 'gb'),
    'bayer_grbg8': ('gr', 'bg'),
    'bayer_gbrg8': ('gb', 'rg'),
    'bayer_bggr8': ('bg', 'gr'),
}
"""Encoding to the colours of its first two rows and columns."""

PLANES = {'nv12': (2, 0), 'nv21': (2, 1), 'nv24': (1, 0)}
"""Encoding to how many pixels share chroma each way, and the place of blue in its pairs."""

SIZES = {
    **{name: size for name, (size, _) in {**RGB_AT, **NUMBERS}.items()},
    **dict.fromkeys(PAIRS, 2),
}
"""Encoding to its bytes a pixel within a row, where they are not 1."""

Pixel = Callable[[Any, int, int], Any]


def packed_pixel(message: Any, row: int, column: int) -> Any:
    size, places = RGB_AT[message.encoding]
    at = row * message.step + column * size
    return [message.data[at + place] for place in places]


def number_pixel(message: Any, row: int, column: int) -> Any:
    size, kind = NUMBERS[message.encoding]
    at = row * message.step + column * size
    order = '>' if message.is_bigendian else '<'
    return struct.unpack(order + kind, message.data[at : at + size])[0]


def pair_pixel(message: Any, row: int, column: int) -> Any:
    luma, blue, red = PAIRS[message.encoding]
    at = row * message.step + column // 2 * 4
    y = message.data[at + luma + column % 2 * 2]
    return rgb_of(y, message.data[at + blue], message.data[at + red])


def mosaic_pixel(message: Any, row: int, column: int) -> Any:
    """Return a colour that was measured, or the mean of its nearest, halves rounded up."""
    pattern = MOSAICS[message.encoding]
    found = []
    for colour in 'rgb':
        seen = []
        for down, right in NEAREST:
            if pattern[(row + down) % 2][(column + right) % 2] == colour:
                r, c = (
                    mirrored(row + down, message.height),
                    mirrored(column + right, message.width),
                )
                seen.append(message.data[r * message.step + c])
                if not (down or right):
                    break
        found.append(seen[0] if len(seen) == 1 else (2 * sum(seen) + len(seen)) // 2 // len(seen))
    return found


NEAREST = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
"""Where a colour is looked for: the place itself first."""


def mirrored(place: int, count: int) -> int:
    """Reflect a place beyond the border about the sample at the border."""
    return -place if place < 0 else 2 * (count - 1) - place if place >= count else place


def plane_pixel(message: Any, row: int, column: int) -> Any:
    shared, blue = PLANES[message.encoding]
    chroma = message.step * message.height
    # A row of pairs is as long as two rows of pixels, for as many columns as share one.
    at = chroma + row // shared * (message.step * 2 // shared) + column // shared * 2
    y = message.data[row * message.step + column]
    return rgb_of(y, message.data[at + blue], message.data[at + 1 - blue])


def rgb_of(y: int, u: int, v: int) -> list[float]:
    """Convert by the formula of ITU-R BT.601, video range."""
    luma, blue, red = (y - 16) * 255 / 219, (u - 128) * 255 / 224, (v - 128) * 255 / 224
    rgb = (luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red, luma + 1.772 * blue)
    return [min(255.0, max(0.0, value)) for value in rgb]


READERS: dict[str, Pixel] = {
    **dict.fromkeys(RGB_AT, packed_pixel),
    **dict.fromkeys(NUMBERS, number_pixel),
    **dict.fromkeys(PAIRS, pair_pixel),
    **dict.fromkeys(MOSAICS, mosaic_pixel),
    **dict.fromkeys(PLANES, plane_pixel),
}


def random_image(chance: random.Random) -> SimpleNamespace:
    """Return a valid image of a random encoding, size, row length and byte order."""
    encoding = chance.choice(sorted(READERS))
    size = SIZES.get(encoding, 1)
    width, height = chance.randint(1, 7), chance.randint(1, 6)
    if encoding in MOSAICS:
        width, height = width + 1, height + 1
    if encoding in (*PAIRS, 'nv12', 'nv21'):
        width, height = 2 * chance.randint(1, 3), 2 * chance.randint(1, 3)
    step = width * size + chance.choice([0, 0, 1, 3, 16])
    low, high = (16, 235) if encoding in (*PAIRS, *PLANES) else (0, 255)
    rows = height * {'nv12': 3, 'nv21': 3, 'nv24': 6}.get(encoding, 2) // 2
    # A last row may come without its padding.
    count = step * rows - chance.choice([0, step - width * size])
    data = bytes(chance.randint(low, high) for _ in range(count))
    return SimpleNamespace(
        encoding=encoding,
        width=width,
        height=height,
        step=step,
        is_bigendian=chance.randint(0, 1),
        data=data,
    )


def test_every_encoding_that_is_known_has_a_slow_reader() -> None:
    message = random_image(random.Random(1))
    message.encoding = 'none'
    with pytest.raises(ImageRefused) as refused:
        decode_image(message)
    assert set(str(refused.value).partition('one of ')[2].split(', ')) == set(READERS)


def test_g8_g9_random_images_decode_as_a_slow_reader_reads_them() -> None:
    chance = random.Random(8)
    for _ in range(IMAGES):
        message = random_image(chance)
        read = READERS[message.encoding]
        expected = np.array(
            [
                [read(message, row, column) for column in range(message.width)]
                for row in range(message.height)
            ]
        )
        pixels = decode_image(message)
        assert pixels.shape == expected.shape
        # Within 2 of the exact value, which is rounded besides.
        slack = 2.5 if message.encoding in (*PAIRS, *PLANES) else 0.0
        np.testing.assert_allclose(pixels, expected, rtol=0, atol=slack, equal_nan=True)


def compressed(codec: str) -> SimpleNamespace:
    out = io.BytesIO()
    Image.fromarray(np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)).save(out, codec)
    return SimpleNamespace(format=codec, data=out.getvalue())


def damaged(whole: SimpleNamespace, chance: random.Random) -> SimpleNamespace:
    """Return a copy that lacks a part, or in which bytes or fields say something else."""
    fields = dict(vars(whole))
    kind = chance.randrange(4)
    if kind == 0:
        fields['data'] = fields['data'][: chance.randrange(len(fields['data']) + 1)]
    elif kind == 1:
        data = bytearray(fields['data'])
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        fields['data'] = bytes(data)
    else:
        name = chance.choice(sorted(set(fields) - {'data'}))
        odd = ['', 'png', '16UC1; compressedDepth png', 'rgb8', 'nv12', 'bayer_rggb8', 'x' * 99]
        numbers = [0, 1, 2, 3, 7, 2**31, 2**32 - 1]
        fields[name] = chance.choice(odd if isinstance(fields[name], str) else numbers)
    return SimpleNamespace(**fields)


@pytest.mark.parametrize('kind', ['image', 'compressed_image'])
def test_g12_damaged_frames_are_read_or_refused_by_name_and_nothing_else(kind: str) -> None:
    chance = random.Random(12)
    settings = settings_of(
        input_names=['front', 'state'],
        inputs__front__topic='camera',
        inputs__front__type=kind,
        inputs__front__frozen_after_s=1.0,
    )
    inputs, spec = Inputs(settings.inputs), ObservationSpec(settings.inputs, {}, '')
    refused, pictures = 0, [compressed('JPEG'), compressed('PNG')]
    for number in range(DAMAGED // 2):
        good = random_image(chance) if kind == 'image' else chance.choice(pictures)
        now = S + number
        arrival = inputs.put('front', damaged(good, chance), now_ns=now, ros_now_ns=now)
        if arrival.verdict is Verdict.REFUSED:
            refused += 1
            assert arrival.reason.startswith('camera: ')
            continue
        observation = spec.observe(inputs.snapshot(), now, '')
        with suppress(ObservationRefused):
            assert isinstance(observation['front'], np.ndarray)
            continue
        refused += 1
    assert refused > DAMAGED // 10
