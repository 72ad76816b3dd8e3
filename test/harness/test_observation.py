"""What the policy reads of a snapshot."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.contract import Camera
from seq_harness.inputs import Inputs
from seq_harness.observation import frame_of, ObservationRefused, ObservationSpec
from support.robots import settings_of

FRONT: dict[str, Any] = {
    'input_names': ['front'],
    'inputs__front__topic': 'camera',
    'inputs__front__type': 'image',
    'inputs__front__stamp': 'arrival',
}


def image(pixels: Any) -> SimpleNamespace:
    height, width = pixels.shape[:2]
    return SimpleNamespace(
        height=height,
        width=width,
        encoding='rgb8',
        is_bigendian=0,
        step=3 * width,
        data=pixels.tobytes(),
    )


def observed(camera: Camera | None, message: Any) -> Any:
    settings = settings_of(
        input_names=['front', 'state'],
        inputs__front__topic='camera',
        inputs__front__type='image',
        inputs__front__stamp='arrival',
    )
    inputs = Inputs(settings.inputs)
    inputs.put('front', message, now_ns=0, ros_now_ns=0)
    spec = ObservationSpec(settings.inputs, {'front': camera} if camera else {}, 'prompt')
    return spec.observe(inputs.snapshot(), 0, 'go')


def test_r8_what_was_sampled_stays_when_a_newer_message_arrives() -> None:
    settings = settings_of()
    inputs = Inputs(settings.inputs)
    spec = ObservationSpec(settings.inputs, {}, 'prompt')

    def arrive(value: float) -> None:
        message = SimpleNamespace(
            header=SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=1)),
            name=['j2', 'j1'],
            position=[value, -value],
        )
        inputs.put('state', message, now_ns=0, ros_now_ns=1)

    arrive(0.25)
    sampled = spec.observe(inputs.snapshot(), 0, 'go')
    arrive(0.5)
    assert list(sampled['state']) == [-0.25, 0.25]
    assert sampled['state'].dtype == np.float32
    with pytest.raises(ValueError, match='read-only'):
        sampled['state'][0] = 1


def test_an_observation_has_the_keys_of_the_inputs_and_the_instruction() -> None:
    message = image(np.zeros((4, 6, 3), np.uint8))
    observation = observed(None, message)
    assert list(observation) == ['front', 'state', 'prompt']
    assert observation['prompt'] == 'go'


def test_a_value_is_made_once_and_only_when_it_is_read() -> None:
    broken = image(np.zeros((4, 6, 3), np.uint8))
    observation = observed(None, broken)
    broken.encoding = 'nonsense'
    with pytest.raises(ValueError, match='nonsense'):
        observation['front']
    whole = observed(None, image(np.zeros((4, 6, 3), np.uint8)))
    assert whole['front'] is whole['front']


def test_g38_a_declared_camera_is_fitted_and_encoded() -> None:
    pixels = np.full((48, 64, 3), (10, 200, 30), np.uint8)
    camera = Camera(width=32, height=32, resize='pad', filter='bilinear', codec='jpeg')
    encoded = observed(camera, image(pixels))['front']
    decoded = np.asarray(Image.open(io.BytesIO(encoded)))
    assert decoded.shape == (32, 32, 3)
    assert np.abs(decoded[16, 16].astype(int) - (10, 200, 30)).max() < 8
    assert decoded[0, 0].max() < 30, 'the padding is black'


def test_a_frame_of_another_size_without_a_way_to_fit_it_is_refused_with_both_sizes() -> None:
    with pytest.raises(ObservationRefused, match=r'camera gives frames of 64x48.*reads 32x32'):
        frame_of(np.zeros((48, 64, 3), np.uint8), Camera(width=32, height=32), 'camera')


@pytest.mark.parametrize('encoding', ['mono16', '32FC1'])
def test_depth_in_the_place_of_colours_is_refused_by_the_name_of_its_input(encoding: str) -> None:
    depth = image(np.zeros((48, 64), np.uint16 if encoding == 'mono16' else np.float32))
    depth.encoding, depth.step = encoding, len(depth.data) // 48
    camera = Camera(width=64, height=48, codec='jpeg')
    with pytest.raises(ObservationRefused, match=r"input 'front': camera gives frames of "):
        observed(camera, depth)['front']
    for codec in ('raw', 'png'):
        with pytest.raises(ObservationRefused, match='policy reads colours of 8 bits'):
            frame_of(np.zeros((48, 64), np.uint16), Camera(width=64, height=48, codec=codec), 'c')


def test_a_blank_observation_has_the_declared_sizes() -> None:
    settings = settings_of()
    blank = ObservationSpec(settings.inputs, {}, 'prompt').blank('go')
    assert list(blank) == ['state', 'prompt']
    assert list(blank['state']) == [0.0, 0.0]


@pytest.mark.parametrize(('quality', 'same'), [(None, True), (80, True), (100, False)])
def test_a_jpeg_that_fits_reaches_the_policy_as_the_camera_made_it(
    quality: int | None, same: bool
) -> None:
    out = io.BytesIO()
    Image.fromarray(np.full((16, 16, 3), 90, np.uint8)).save(out, 'JPEG', quality=90)
    changes = {'input_names': ['front', 'state'], 'inputs__front__type': 'compressed_image'}
    settings = settings_of(**{**FRONT, **changes})
    inputs = Inputs(settings.inputs)
    message = SimpleNamespace(format='jpeg', data=out.getvalue())
    inputs.put('front', message, now_ns=0, ros_now_ns=0)
    camera = Camera(width=16, height=16, codec='jpeg', quality=quality)
    spec = ObservationSpec(settings.inputs, {'front': camera}, '')
    sent = spec.observe(inputs.snapshot(), 0, '')['front']
    assert (sent == out.getvalue()) is same
    assert Image.open(io.BytesIO(sent)).size == (16, 16)
