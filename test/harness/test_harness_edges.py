"""What the loop does at its edges, round by round."""

from __future__ import annotations

from support.robots import Bench, MS


def test_a_round_that_meets_an_old_input_plays_nothing_more() -> None:
    bench = Bench(inputs__state__max_age_s=0.45)
    bench.begin()
    bench.give(*([0.0] * 20))
    bench.harness.round()
    sent = len(bench.sent)
    bench.clock.now += 460 * MS
    bench.clock.now = bench.harness.round()
    bench.harness.round()
    assert not bench.live
    assert bench.reason == 'stale_input: state'
    assert len(bench.sent) == sent
