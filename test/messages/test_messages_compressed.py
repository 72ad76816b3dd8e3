"""Compressed images with every format string in use."""

from __future__ import annotations

from collections.abc import Callable
import io
import struct
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.messages.compressed_image import compressed_form, jpeg_as_it_came
from seq_harness.messages.images import check_compressed, decode_compressed, ImageRefused

Of = Callable[[str], Callable[..., Any]]

KIND = 'sensor_msgs/msg/CompressedImage'
RED = np.zeros((16, 24, 3), np.uint8)
RED[..., 0] = 220
DEPTH = np.arange(16 * 24, dtype=np.uint16).reshape(16, 24) * 150


def _bytes_of(pixels: np.ndarray, codec: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, codec)
    return out.getvalue()


JPEG, PNG, PNG16 = _bytes_of(RED, 'jpeg'), _bytes_of(RED, 'png'), _bytes_of(DEPTH, 'png')
GREY_JPEG = _bytes_of(RED[..., 0], 'jpeg')
DEPTH_HEADER = struct.pack('<i2f', 0, 0.0, 0.0)


def _message(of: Of, text: str, data: bytes) -> Any:
    return of(KIND)(format=text, data=data)


@pytest.mark.parametrize(
    ('text', 'data'),
    [
        ('jpeg', JPEG),
        ('jpg', JPEG),
        ('', JPEG),
        ('rgb8; jpeg compressed bgr8', JPEG),
        ('bgr8; jpeg compressed bgr8', JPEG),
        ('rgb8; jpeg compressed rgb8', JPEG),
        ('rgb8; jpeg compressed ', JPEG),
        ('bayer_rggb8; jpeg compressed bgr8', JPEG),
        ('png', PNG),
        ('rgb8; png compressed bgr8', PNG),
        ('bgra8; png compressed bgr8', PNG),
    ],
)
def test_g11_red_stays_red_whatever_order_the_format_names(of: Of, text: str, data: bytes) -> None:
    pixels = decode_compressed(_message(of, text, data))
    assert pixels.shape == (16, 24, 3)
    assert pixels.dtype == np.uint8
    np.testing.assert_allclose(pixels, RED, atol=3)


def test_grey_comes_out_as_rgb(of: Of) -> None:
    pixels = decode_compressed(_message(of, 'mono8; jpeg compressed ', GREY_JPEG))
    np.testing.assert_allclose(pixels, np.full((16, 24, 3), 220), atol=3)


def test_a_compressed_mosaic_is_interpolated(of: Of) -> None:
    mosaic = np.tile(np.array([[200, 120], [120, 40]], np.uint8), (8, 12))
    message = _message(of, 'bayer_rggb8; png compressed ', _bytes_of(mosaic, 'png'))
    pixels = decode_compressed(message)
    np.testing.assert_array_equal(pixels, np.broadcast_to([200, 120, 40], (16, 24, 3)))


@pytest.mark.parametrize(
    ('text', 'data'),
    [
        ('16UC1; png compressed ', PNG16),
        ('mono16; png compressed ', PNG16),
        ('png', PNG16),
        ('16UC1; compressedDepth png', DEPTH_HEADER + PNG16),
        ('16UC1; compressedDepth', DEPTH_HEADER + PNG16),
    ],
)
def test_g10_depth_keeps_its_16_bits(of: Of, text: str, data: bytes) -> None:
    pixels = decode_compressed(_message(of, text, data))
    np.testing.assert_array_equal(pixels, DEPTH)
    assert pixels.dtype == np.uint16


def test_inverse_depth_comes_out_in_metres(of: Of) -> None:
    metres = np.array([[0.5, 2.0], [9.5, np.nan]], np.float32)
    quantum, farthest = 100.0, 10.0
    numerator = quantum * (quantum + 1)
    offset = 1.0 - numerator / farthest
    with np.errstate(invalid='ignore'):
        stored = np.nan_to_num(numerator / metres + offset).astype(np.uint16)
    data = struct.pack('<i2f', 1, numerator, offset) + _bytes_of(stored, 'png')
    pixels = decode_compressed(_message(of, '32FC1; compressedDepth png', data))
    assert pixels.dtype == np.float32
    np.testing.assert_allclose(pixels, metres, rtol=0.01)


@pytest.mark.parametrize('behind', [bytes(512), b'\xaa' * 7, JPEG[200:-1], PNG[:-1]])
@pytest.mark.parametrize(('kind', 'picture'), [('jpeg', JPEG), ('png', PNG)])
def test_g54_what_a_driver_left_behind_the_end_of_a_picture_is_left_out(
    of: Of, kind: str, picture: bytes, behind: bytes
) -> None:
    message = _message(of, kind, picture + behind)
    check_compressed(message)
    whole = decode_compressed(_message(of, kind, picture))
    assert (decode_compressed(message) == whole).all()
    if kind == 'jpeg':
        assert jpeg_as_it_came(message, 24, 16, 1) == picture


def test_g54_a_jpeg_without_its_huffman_tables_is_read_as_cameras_mean_it(of: Of) -> None:
    """Frames of MJPEG leave out the tables that every reader has."""
    at, bare = 0, JPEG
    while (at := bare.find(b'\xff\xc4')) >= 0:
        bare = bare[:at] + bare[at + 2 + int.from_bytes(bare[at + 2 : at + 4], 'big') :]
    assert len(bare) < len(JPEG) - 400
    whole = decode_compressed(_message(of, 'jpeg', JPEG))
    assert (decode_compressed(_message(of, 'jpeg', bare)) == whole).all()


@pytest.mark.parametrize(
    ('text', 'data', 'form'),
    [
        ('jpeg', JPEG, 'jpeg 24x16'),
        ('rgb8; jpeg compressed bgr8', JPEG, 'rgb8 jpeg 24x16'),
        ('png', PNG, 'png 24x16'),
        ('16UC1; compressedDepth png', DEPTH_HEADER + PNG16, '16UC1 png 24x16'),
        ('jpeg', JPEG[:30] + b'\xff\xd9', 'jpeg'),
    ],
)
def test_the_form_of_a_picture_is_told_by_its_headers(
    of: Of, text: str, data: bytes, form: str
) -> None:
    assert compressed_form(_message(of, text, data)) == form


@pytest.mark.parametrize(
    ('text', 'data', 'said'),
    [
        ('jpeg', b'', 'expected a JPEG or PNG picture, got 0 bytes .* begin with nothing'),
        ('jpeg', bytes(400), 'begin with 0000000000000000'),
        ('h264', b'\x00\x00\x00\x01' + bytes(20), "of format 'h264'"),
        ('jpeg', JPEG[:-2], 'JPEG of .* bytes breaks off: no end, ffd9, follows its pixels'),
        ('jpeg', JPEG[:-2] + JPEG, 'breaks off'),
        ('jpeg', JPEG[:40] + bytes(64), 'breaks off'),
        ('jpeg', JPEG[: len(JPEG) // 2], 'breaks off'),
        ('png', PNG[:-5], 'PNG of .* bytes breaks off'),
        ('png', PNG[:10], 'does not begin with its header'),
        ('16UC1; jpeg compressed ', GREY_JPEG, 'depth in 8 bits, with loss'),
        ('mono16; jpeg compressed ', GREY_JPEG, 'depth in 8 bits, with loss'),
        ('16UC1; compressedDepth png', PNG16, 'after a header of 12 bytes'),
        ('16UC1; compressedDepth rvl', DEPTH_HEADER + bytes(64), "'16UC1; compressedDepth rvl'"),
    ],
)
def test_g10_g12_what_cannot_be_a_whole_picture_is_refused_on_arrival(
    of: Of, text: str, data: bytes, said: str
) -> None:
    message = _message(of, text, data)
    for read in (check_compressed, decode_compressed):
        with pytest.raises(ImageRefused, match=said):
            read(message)


@pytest.mark.parametrize(
    ('text', 'data', 'said'),
    [
        ('16UC1; png compressed ', PNG, 'expected 16 bits a pixel'),
        ('32FC1; png compressed ', PNG16, "expected '32FC1; compressedDepth png'"),
        ('jpeg', JPEG[:3] + bytes(100) + b'\xff\xd9', 'does not decode'),
        ('png', _bytes_of(np.zeros((1, 8193), np.uint8), 'png'), 'at most 8192 .*, got 8193 x 1'),
    ],
)
def test_what_shows_only_on_decoding_is_refused_then(
    of: Of, text: str, data: bytes, said: str
) -> None:
    message = _message(of, text, data)
    check_compressed(message)
    with pytest.raises(ImageRefused, match=said):
        decode_compressed(message)


@pytest.mark.parametrize(('text', 'data'), [('jpeg', JPEG), ('png', PNG), ('png', PNG16)])
def test_damaged_bytes_give_pixels_or_a_refusal_and_nothing_else(
    of: Of, text: str, data: bytes
) -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        damaged = bytearray(data)
        for place in random.integers(0, len(data), 4):
            damaged[place] = random.integers(0, 256)
        try:
            assert decode_compressed(_message(of, text, bytes(damaged))).ndim in (2, 3)
        except ImageRefused:
            continue


def _photo(quality: int, mode: str = 'RGB') -> bytes:
    ramp = np.add.outer(np.arange(48), np.arange(64)).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(np.dstack([ramp, ramp[::-1], ramp * 2])).convert(mode).save(
        out, 'JPEG', quality=quality
    )
    return out.getvalue()


def test_a_jpeg_of_the_declared_size_and_quality_is_sent_on_as_it_came(of: Of) -> None:
    photo = _photo(90)
    assert jpeg_as_it_came(_message(of, 'rgb8; jpeg compressed bgr8', photo), 64, 48, 90) == photo
    assert jpeg_as_it_came(_message(of, 'jpeg', photo), 64, 48, 80) == photo


@pytest.mark.parametrize(
    ('text', 'data', 'size'),
    [
        ('jpeg', _photo(70), (64, 48)),
        ('jpeg', _photo(95), (32, 24)),
        ('jpeg', _photo(95, 'L'), (64, 48)),
        ('bayer_rggb8; jpeg compressed ', _photo(95, 'L'), (64, 48)),
        ('png', PNG, (64, 48)),
    ],
    ids=['coarser', 'of another size', 'grey', 'a mosaic', 'no JPEG'],
)
def test_another_picture_is_made_anew(
    of: Of, text: str, data: bytes, size: tuple[int, int]
) -> None:
    assert jpeg_as_it_came(_message(of, text, data), *size, 90) is None


def test_g12_a_jpeg_that_does_not_decode_is_not_sent_on(of: Of) -> None:
    photo = _photo(95)
    broken = photo[: len(photo) // 2] + photo[-2:]
    with pytest.raises(ImageRefused, match='does not decode'):
        jpeg_as_it_came(_message(of, 'jpeg', broken), 64, 48, 90)
