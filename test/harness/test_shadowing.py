"""A preview tells how far its commands are from what the robot did."""

from __future__ import annotations

import pytest
from support.robots import Bench, MS


def test_a_preview_tells_the_distance_to_where_the_robot_is() -> None:
    bench = Bench(preview=True, asking='drain', handoff='arrival')
    bench.begin()
    bench.give(0.05, 0.1, 0.15)
    bench.until(bench.clock.now + 350 * MS)
    shadow = bench.pipeline.shadow
    assert shadow is not None
    assert shadow.figures()['arm']['max'] == pytest.approx(0.15)
    assert shadow.figures()['arm']['mean'] == pytest.approx(0.1)
    assert shadow.figures()['arm']['joint'] in ('j1', 'j2')


def test_an_episode_begins_without_the_distances_of_the_one_before() -> None:
    bench = Bench(preview=True)
    bench.begin()
    bench.give(0.1)
    bench.until(bench.clock.now + 50 * MS)
    bench.harness.stop('stop')
    bench.harness.round()
    bench.begin()
    shadow = bench.pipeline.shadow
    assert shadow is not None
    assert shadow.figures() == {}


def test_what_plays_has_no_distance_to_show() -> None:
    assert Bench().pipeline.shadow is None
