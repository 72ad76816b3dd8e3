"""The time of a replay."""

from __future__ import annotations

from math import inf, nan

import pytest
from seq_harness.bags.timeline import Timeline

EPOCH_NS = 1_700_000_000_000_000_000


def test_time_stands_until_it_is_let_go() -> None:
    timeline = Timeline(EPOCH_NS)
    assert timeline.stands
    assert timeline.at(5) == timeline.at(10**12) == EPOCH_NS
    assert timeline.when(EPOCH_NS + 1) is None


@pytest.mark.parametrize('rate', [0.5, 1.0, 3.0])
def test_time_passes_at_its_rate(rate: float) -> None:
    timeline = Timeline(EPOCH_NS, rate)
    timeline.go(1_000)
    assert timeline.at(1_000) == EPOCH_NS
    assert timeline.at(1_000 + 60_000_000_000) == EPOCH_NS + round(rate * 60_000_000_000)
    assert timeline.when(EPOCH_NS + 3_000_000) == 1_000 + round(3_000_000 / rate)


def test_at_the_instant_of_a_message_its_time_has_come() -> None:
    timeline = Timeline(EPOCH_NS, 3.0)
    timeline.go(7)
    for offset_ns in range(100):
        instant = timeline.when(EPOCH_NS + offset_ns)
        assert instant is not None
        assert timeline.at(instant) >= EPOCH_NS + offset_ns


def test_a_pause_takes_no_time_of_the_recording() -> None:
    timeline = Timeline(0, 2.0)
    timeline.go(0)
    timeline.stand(100)
    assert timeline.at(5_000) == 200
    timeline.go(5_000)
    timeline.go(6_000)
    assert timeline.at(5_010) == 220
    assert timeline.when(240) == 5_020


@pytest.mark.parametrize('rate', [0.0, -1.0, nan, inf])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(ValueError, match='expected a rate above 0'):
        Timeline(0, rate)
