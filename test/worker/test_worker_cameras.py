"""Camera frames as a worker checks and decodes them."""

from __future__ import annotations

import asyncio
import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFile
import pytest
from seq_harness.contract.camera import Camera
from seq_harness.contract.errors import Rejected
from seq_harness.contract.images import encode_depth
from seq_harness.contract.own_io import Observations, Stream
from seq_harness.worker.cameras import Cameras
from seq_harness.worker.running import served
from worker.worker_wire import client_of


def cameras(**declared: Any) -> Cameras:
    camera = Camera(width=8, height=6, **declared)
    return Cameras(Observations({'front': Stream(camera=camera), 'state': Stream()}))


def picture(width: int = 8, height: int = 6) -> npt.NDArray[np.uint8]:
    red = np.linspace(0, 255, width * height).reshape(height, width)
    return np.stack([red, 255 - red, red * 0 + 40], axis=-1).astype(np.uint8)


def encoded(pixels: npt.NDArray[np.uint8], kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def test_a_png_is_decoded_to_rgb_rows() -> None:
    seen = cameras().decode({'front': encoded(picture(), 'PNG'), 'state': 1})
    np.testing.assert_array_equal(seen['front'], picture())
    assert seen['front'].dtype == np.uint8
    assert seen['state'] == 1


def test_a_jpeg_is_decoded() -> None:
    flat = np.full((6, 8, 3), (200, 30, 90), np.uint8)
    seen = cameras().decode({'front': encoded(flat, 'JPEG')})['front']
    assert seen.shape == (6, 8, 3)
    assert np.abs(seen.astype(int) - flat).max() <= 6


def test_raw_pixels_are_left_as_they_are() -> None:
    pixels = picture()
    assert cameras(layout='hwc_uint8').decode({'front': pixels})['front'] is pixels


def test_a_float_layout_is_channels_first_in_0_to_1() -> None:
    seen = cameras(layout='chw_float').decode({'front': picture()})['front']
    assert (seen.shape, seen.dtype) == ((3, 6, 8), np.float32)
    np.testing.assert_allclose(seen[0], picture()[..., 0] / 255, rtol=1e-6)


def test_a_grey_frame_becomes_rgb() -> None:
    out = io.BytesIO()
    Image.fromarray(picture()[..., 0]).save(out, 'PNG')
    assert cameras().decode({'front': out.getvalue()})['front'].shape == (6, 8, 3)


def test_an_observation_without_the_camera_is_left_alone() -> None:
    observation = {'state': 1}
    assert cameras().decode(observation) is observation


@pytest.mark.parametrize('frame', [picture(9, 6), encoded(picture(9, 6), 'PNG')])
def test_a_frame_of_another_size_is_refused_with_both_sizes(frame: Any) -> None:
    with pytest.raises(Rejected, match=r"'front' sent a frame of 9x6; the policy reads 8x6") as no:
        cameras(resize='pad', filter='bilinear').check({'front': frame})
    assert no.value.details['sizes'] == {'sent': [9, 6], 'declared': [8, 6]}
    assert no.value.details['view'] == 'front'
    assert no.value.hint is not None
    assert "resize='pad'" in no.value.hint


@pytest.mark.parametrize(
    'frame',
    [
        b'', b'no image', 7, 'aGk=', None, picture().astype(np.float32), picture()[..., 0],
        np.zeros((6, 8, 4), np.uint8), encoded(picture(), 'GIF'), encoded(picture(), 'PNG')[:20],
    ],
)  # fmt: skip
def test_what_is_no_frame_is_refused_by_the_name_of_its_camera(frame: Any) -> None:
    with pytest.raises(Rejected, match="camera 'front' sent"):
        cameras().check({'front': frame})


def test_a_huge_size_in_the_head_is_refused_before_any_pixel_is_decoded() -> None:
    png = bytearray(encoded(picture(), 'PNG'))
    png[16:24] = (60000).to_bytes(4, 'big') * 2
    with pytest.raises(Rejected):
        cameras().check({'front': bytes(png)})


def broken_png() -> bytes:
    noise = np.random.default_rng(1).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return encoded(noise, 'PNG')[:70]


def test_a_frame_that_ends_early_is_refused_when_it_is_decoded() -> None:
    frames = cameras()
    frames.check({'front': broken_png()})
    with pytest.raises(Rejected, match="camera 'front' cannot be decoded"):
        frames.decode({'front': broken_png()})


def depth_png(width: int = 8, height: int = 6) -> bytes:
    return base64.b64decode(encode_depth(np.full((height, width), 1.5)))


@pytest.mark.parametrize('layout', ['hwc_uint8', 'chw_float'])
@pytest.mark.parametrize('depth', [depth_png(), np.full((6, 8), 1500, np.uint16)])
def test_a_camera_with_depth_gives_both_frames(layout: str, depth: Any) -> None:
    with_depth = cameras(depth=True, layout=layout)
    observation = {'front': {'rgb': picture(), 'depth': depth}, 'state': 1}
    with_depth.check(observation)
    seen = with_depth.decode(observation)['front']
    assert seen['rgb'].shape == ((6, 8, 3) if layout == 'hwc_uint8' else (3, 6, 8))
    assert (seen['depth'].dtype, seen['depth'].shape) == (np.uint16, (6, 8))
    assert (seen['depth'] == 1500).all()


@pytest.mark.parametrize(
    'frame',
    [
        picture(), {'rgb': picture()}, {'depth': depth_png()}, None,
        {'rgb': picture(), 'depth': picture()}, {'rgb': picture(), 'depth': depth_png(9)},
        {'rgb': picture(9), 'depth': depth_png()}, {'rgb': picture(), 'depth': b'none'},
        {'rgb': picture(), 'depth': encoded(picture(), 'PNG')}, {'rgb': picture(), 'depth': None},
        {'rgb': depth_png(), 'depth': depth_png()},
    ],
)  # fmt: skip
def test_a_camera_with_depth_needs_both_frames_right(frame: Any) -> None:
    with pytest.raises(Rejected, match="'front'"):
        cameras(depth=True).check({'front': frame})


def test_a_depth_frame_that_ends_early_is_refused_when_it_is_decoded() -> None:
    noise = np.random.default_rng(1).integers(1, 9999, (6, 8))
    cut = base64.b64decode(encode_depth(noise, 'mm'))[:80]
    cameras(depth=True).check({'front': {'rgb': picture(), 'depth': cut}})
    with pytest.raises(Rejected, match="'front'"):
        cameras(depth=True).decode({'front': {'rgb': picture(), 'depth': cut}})


def test_a_depth_frame_is_no_frame_of_colours() -> None:
    with pytest.raises(Rejected, match='8 bits a channel'):
        cameras().check({'front': depth_png()})


class Shapes:
    observations = Observations(
        {'front': Stream(every=1, camera=Camera(width=8, height=6, layout='hwc_uint8'))}
    )

    def infer(self, inputs: Any) -> Any:
        return [list(observation['front'].shape) for observation in inputs['observations']]


def test_a_wrong_frame_is_refused_as_it_comes_and_nothing_of_its_post_is_stored() -> None:
    with served(Shapes()) as url, client_of(url) as client:
        client.connect()
        right, wrong = {'front': picture()}, {'front': picture(9, 6)}
        answer = client.observe('e', {0: right, 1: wrong})
        assert (answer.status, answer.code) == (400, 'invalid_request')
        assert answer.body['details']['sizes']['sent'] == [9, 6]
        assert client.observe('e', {}).body['through'] == -1
        assert client.act(wrong, episode_id='e', seq=0).status == 400
        assert client.act(right, episode_id='e', seq=0).outputs == [[6, 8, 3]]


def test_a_broken_frame_fails_one_act_and_is_read_no_more() -> None:
    with served(Shapes()) as url, client_of(url) as client:
        client.connect()
        client.observe('e', {0: {'front': broken_png()}})
        answer = client.act({'front': picture()}, episode_id='e', seq=1)
        assert (answer.status, answer.code) == (400, 'invalid_request')
        assert 'observation 0' in answer.body['detail']
        assert client.act({'front': picture()}, episode_id='e', seq=2).outputs == [[6, 8, 3]] * 2


def test_finding_24_no_frame_is_decoded_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    load, on_a_loop = ImageFile.ImageFile.load, []

    def watched(image: ImageFile.ImageFile) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            on_a_loop.append(False)
        else:
            on_a_loop.append(True)
        return load(image)

    monkeypatch.setattr(ImageFile.ImageFile, 'load', watched)
    with served(Shapes()) as url, client_of(url) as client:
        client.connect()
        frame = {'front': encoded(picture(), 'PNG')}
        client.observe('e', {0: frame})
        client.act(frame, episode_id='e', seq=1)
    assert on_a_loop
    assert not any(on_a_loop)
