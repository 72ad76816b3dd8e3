"""The camera's picture and its pixels."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from seq_harness.sim.camera import (
    Camera,
    HEIGHT,
    project,
    table_point,
    TARGET_COLOUR,
    WIDTH,
)
from seq_harness.sim.kinematics import forward, HOME, inverse


@pytest.fixture(scope='module')
def camera() -> Camera:
    """Load the photograph once."""
    pytest.importorskip('matplotlib')
    return Camera()


def _target_pixels(picture: np.ndarray) -> np.ndarray:
    return np.argwhere((picture == TARGET_COLOUR).all(axis=2))


@pytest.mark.parametrize('place', itertools.product([0.1, 0.35, 0.6], [-0.3, 0.0, 0.25]))
def test_a_point_of_the_table_and_its_pixel_are_one(place: tuple[float, float]) -> None:
    assert table_point(*project((*place, 0.0))) == pytest.approx(place)


def test_what_is_higher_is_seen_further_from_the_middle() -> None:
    low, high = project((0.5, 0.2, 0.0)), project((0.5, 0.2, 0.3))
    assert high[0] < low[0] < WIDTH / 2
    assert high[1] < low[1] < HEIGHT / 2


@pytest.mark.parametrize('target', [(0.3, -0.2), (0.42, 0.15)])
def test_the_target_is_seen_where_it_lies(camera: Camera, target: tuple[float, float]) -> None:
    picture = camera.picture(HOME, target)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert picture.dtype == np.uint8
    v, u = _target_pixels(picture).mean(axis=0) + 0.5
    assert table_point(u, v) == pytest.approx(target, abs=0.001)


def test_nothing_else_in_the_picture_is_as_green(camera: Camera) -> None:
    picture = camera.picture(HOME, (5.0, 5.0)).astype(int)
    green = picture[..., 1] - np.maximum(picture[..., 0], picture[..., 2])
    assert green.max() < 20


def test_the_arm_never_hides_the_target(camera: Camera) -> None:
    alone = len(_target_pixels(camera.picture(inverse(0.3, -0.3), (0.35, 0.1))))
    below = len(_target_pixels(camera.picture(inverse(0.35, 0.1), (0.35, 0.1))))
    assert below == alone


def test_the_arm_moves_in_the_picture_and_the_picture_before_stays(camera: Camera) -> None:
    first = camera.picture(inverse(0.4, 0.2), (5.0, 5.0))
    kept = first.copy()
    second = camera.picture(inverse(0.4, -0.2), (5.0, 5.0))
    np.testing.assert_array_equal(first, kept)
    u, v = (round(value) for value in project(forward(inverse(0.4, 0.2)).tip))
    assert not np.array_equal(first[v, u], second[v, u])


def test_a_picture_is_made_within_the_time_of_a_frame(camera: Camera) -> None:
    def made() -> float:
        begin = time.process_time()
        camera.picture(HOME, (0.3, 0.1))
        return time.process_time() - begin

    assert min(made() for _ in range(20)) < 1 / 30
