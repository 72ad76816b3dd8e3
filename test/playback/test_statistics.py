"""Distributions and counts."""

from hypothesis import given, strategies
from seq_harness.playback.statistics import Distribution


@given(strategies.lists(strategies.integers(0, 10**11), min_size=1), strategies.floats(0, 100))
def test_a_percentile_is_the_nearest_rank_within_two_percent(
    values: list[int], percent: float
) -> None:
    distribution = Distribution()
    for value in values:
        distribution.add(value)
    rank = max(1, -int(-len(values) * percent // 100))
    exact = sorted(values)[min(rank, len(values)) - 1]
    found = distribution.percentile(percent)
    assert found is not None
    assert exact <= found <= exact * 1.016 + 1
    assert distribution.largest == max(values)


def test_an_empty_distribution_has_no_percentile() -> None:
    figures = Distribution().figures_ms()
    assert figures == {'p50': None, 'p90': None, 'p99': None, 'max': None, 'count': 0}


def test_a_negative_value_counts_as_zero() -> None:
    distribution = Distribution()
    distribution.add(-5)
    assert distribution.percentile(50) == 0
    assert distribution.largest == 0
