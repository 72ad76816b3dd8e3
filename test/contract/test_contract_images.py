"""Camera frames: fitting, encoding, depth, and sizes without decoding."""

import base64
import io
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from PIL import Image
import pytest
from seq_harness.contract import (
    decode_depth,
    encode_depth,
    encode_image,
    fit_image,
    image_size,
    ImageRefused,
)

PIXELS = np.random.default_rng(7).integers(0, 255, (60, 100, 3), np.uint8)


def decoded(data: str) -> Image.Image:
    """Open a frame in base64."""
    return Image.open(io.BytesIO(base64.b64decode(data)))


def test_a_frame_of_the_right_size_is_left_alone() -> None:
    assert fit_image(PIXELS, 100, 60, mode='pad', filter='bilinear') is PIXELS


def test_stretching_fills_the_frame() -> None:
    fitted = fit_image(np.full((6, 10, 3), 200, np.uint8), 5, 5, mode='stretch', filter='box')
    assert fitted.shape == (5, 5, 3)
    assert (fitted == 200).all()


def test_padding_keeps_the_ratio_in_the_middle_of_black() -> None:
    white = np.full((60, 100, 3), 255, np.uint8)
    fitted = fit_image(white, 50, 51, mode='pad', filter='nearest')
    rows = np.flatnonzero(fitted.any(axis=(1, 2)))
    # 100x60 into 50x51 is 50x30, and int((51 - 30) / 2) rows of black come first.
    assert (rows[0], rows[-1]) == (10, 39)
    assert (fitted[10:40] == 255).all()


def test_a_frame_is_encoded_as_rgb_jpeg_at_its_own_size() -> None:
    image = decoded(encode_image(PIXELS))
    assert (image.format, image.mode, image.size) == ('JPEG', 'RGB', (100, 60))
    assert decoded(encode_image(PIXELS[..., 0])).mode == 'RGB'


def test_what_is_encoded_already_passes() -> None:
    assert encode_image('aGk=') == 'aGk='
    assert encode_image(b'hi') == 'aGk='


@pytest.mark.parametrize(
    'frame', [PIXELS / 255.0, PIXELS.transpose(2, 0, 1), PIXELS.reshape(-1), PIXELS[None]]
)
def test_an_array_that_is_no_frame_is_refused(frame: Any) -> None:
    with pytest.raises(ImageRefused):
        encode_image(frame)


def test_depth_is_rounded_to_millimetres_and_what_is_no_reading_is_zero() -> None:
    metres = np.array([[0.0005, 0.0015, 0.0025, np.nan, np.inf, -1.0, 0.0, 70.0, 1.2346]])
    assert decode_depth(encode_depth(metres)).tolist() == [[0, 2, 2, 0, 0, 0, 0, 65535, 1235]]
    assert decode_depth(encode_depth(np.array([[1, 2]], np.uint16), 'mm')).tolist() == [[1, 2]]


@pytest.mark.parametrize('data', ['', 'aGk=', 'no base64 at all', encode_image(PIXELS)])
def test_a_depth_frame_that_is_no_png_is_refused(data: str) -> None:
    with pytest.raises(ImageRefused):
        decode_depth(data)


@pytest.mark.parametrize('form', ['PNG', 'JPEG'])
@pytest.mark.parametrize(
    'options', [{}, {'progressive': True}, {'exif': b'Exif\0\0' + bytes(300)}]
)
def test_a_size_is_read_from_the_head(form: str, options: dict[str, Any]) -> None:
    out = io.BytesIO()
    Image.fromarray(PIXELS).save(out, form, **(options if form == 'JPEG' else {}))
    raw = out.getvalue()
    assert image_size(raw) == (100, 60)
    assert image_size(base64.b64encode(raw).decode()) == (100, 60)


def test_the_tables_of_a_jpeg_are_passed_over_on_the_way_to_its_size() -> None:
    table = b'\xff\xc4\x00\x08' + bytes(6)
    filler = b'\xff'
    frame = b'\xff\xc2\x00\x11\x08\x00\x3c\x00\x64\x03'
    assert image_size(b'\xff\xd8' + table + filler + frame) == (100, 60)


@settings(max_examples=200)
@given(st.binary(max_size=60), st.sampled_from([b'', b'\xff\xd8\xff', b'\x89PNG\r\n\x1a\n']))
def test_a_size_is_read_or_refused(tail: bytes, head: bytes) -> None:
    try:
        width, height = image_size(head + tail)
    except ImageRefused:
        return
    assert width >= 0
    assert height >= 0
