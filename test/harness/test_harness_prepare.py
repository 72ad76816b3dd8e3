"""What the loop makes ready shortly before an instant, and when it does not go by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from seq_harness.playback.session import FLOOR_NS
from support.robots import Bench, MS, S

T0 = 100 * S


class Counted:
    """A bench whose encodings are counted, two rows into a chunk."""

    def __init__(self, max_age_s: float = 0.5, **options: Any) -> None:
        self.bench = Bench(options=options, inputs__state__max_age_s=max_age_s)
        self.encoded = 0
        self.bench.during_encode = self._count
        self.bench.begin()
        self.bench.clock.now += 1 * MS
        self.bench.give(0.0, 0.1, *[0.2] * 10)
        self.bench.harness.round()
        self.due = T0 + 101 * MS
        self.bench.clock.now = self.due - MS
        self.bench.state()
        self.encoded = 0

    def _count(self) -> None:
        self.encoded += 1


def test_what_is_due_is_encoded_before_its_instant_and_only_once() -> None:
    counted = Counted()
    assert counted.bench.harness.prepare(counted.due)
    assert (counted.encoded, len(counted.bench.sent)) == (1, 1)
    counted.bench.clock.now = counted.due
    counted.bench.harness.round()
    assert (counted.encoded, counted.bench.sent[-1]) == (1, (counted.due, [0.1, 0.1]))


def test_nothing_is_said_to_be_due_where_no_row_is() -> None:
    counted = Counted()
    assert not counted.bench.harness.prepare(counted.due - 50 * MS)


def test_a_round_goes_by_the_inputs_of_just_before_its_instant() -> None:
    counted = Counted()
    bench = counted.bench
    bench.harness.prepare(counted.due)
    bench.clock.now = counted.due
    bench.state((0.7, 0.7))
    bench.harness.round()
    bench.clock.now += 100 * MS
    bench.harness.round()
    # The two steps since: the first saw what was prepared, the second what had come since.
    seen = [step.observation['state'][0] for step in bench.scope.observed[-2:]]
    assert [round(float(value), 3) for value in seen] == [0.0, 0.7]


def test_a_round_that_is_woken_early_looks_at_the_inputs_anew() -> None:
    counted = Counted()
    bench = counted.bench
    bench.harness.prepare(counted.due)
    bench.clock.now = counted.due - 1
    bench.harness.round()
    assert len(bench.sent) == 1, 'nothing goes out before its instant'
    bench.clock.now = counted.due + FLOOR_NS
    bench.harness.round()
    assert counted.encoded == 2, 'what was prepared for another round is not used'


def test_an_input_that_grows_too_old_after_the_preparation_still_stops_play() -> None:
    counted = Counted(max_age_s=0.2)
    bench = counted.bench
    bench.clock.now += 199 * MS
    bench.harness.prepare(bench.clock.now)
    bench.clock.now += 2 * MS
    bench.harness.round()
    assert bench.reason == 'stale_input: state'
    assert len(bench.sent) == 1


def test_what_was_prepared_does_not_go_out_after_a_stop() -> None:
    counted = Counted()
    bench = counted.bench
    bench.harness.prepare(counted.due)
    bench.harness.stop('stop')
    bench.clock.now = counted.due
    bench.harness.round()
    assert bench.reason == 'stop'
    assert len(bench.sent) == 1


def test_an_encoding_that_fails_ahead_ends_the_episode_in_its_round_by_name() -> None:
    counted = Counted()
    bench = counted.bench

    def fail() -> None:
        raise OSError('no memory')

    bench.during_encode = fail
    bench.harness.prepare(counted.due)
    assert bench.live
    bench.clock.now = counted.due
    bench.harness.round()
    assert bench.reason == 'exception: OSError: no memory'


def test_a_new_instruction_is_seen_by_the_very_next_round() -> None:
    counted = Counted()
    bench = counted.bench
    bench.harness.prepare(counted.due)
    bench.harness.instruct('another')
    bench.clock.now = counted.due
    bench.harness.round()
    assert bench.scope.observed[-1].observation['prompt'] == 'another'


def test_nothing_is_prepared_while_nothing_runs() -> None:
    bench = Bench()
    bench.harness.prepare(T0)
    assert bench.sent == []


class Ahead(Counted):
    """The same, whose clock reads a row's instant before it has come."""

    def __init__(self, max_age_s: float = 0.5) -> None:
        self.meanwhile: Callable[[], object] = lambda: None
        self.awaited: list[tuple[int, int]] = []
        super().__init__(max_age_s, await_instant=self._await)

    def _await(self, instant_ns: int) -> None:
        self.awaited.append((instant_ns, len(self.bench.sent)))
        if len(self.awaited) == 2:
            self.meanwhile()

    def round(self) -> None:
        """Do the round of the row, ahead of its instant."""
        self.bench.harness.prepare(self.due)
        self.bench.clock.now = self.due
        self.bench.harness.round()


def test_a_setpoint_that_is_made_ahead_goes_out_once_its_instant_has_come() -> None:
    ahead = Ahead()
    ahead.meanwhile = lambda: setattr(ahead.bench.clock, 'now', ahead.due + 7_000)
    ahead.round()
    assert ahead.awaited[-1] == (ahead.due, 1), 'the first row went out, and this one had not'
    assert ahead.bench.sent[-1] == (ahead.due + 7_000, [0.1, 0.1])
    lateness = ahead.bench.harness.report().figures['lateness_ms']
    assert lateness['max'] == pytest.approx(0.007, rel=0.1)


def test_a_stop_while_the_instant_is_awaited_lets_nothing_out() -> None:
    ahead = Ahead()
    ahead.meanwhile = lambda: ahead.bench.harness.stop('stop')
    ahead.round()
    assert len(ahead.bench.sent) == 1
    ahead.bench.harness.round()
    assert ahead.bench.reason == 'stop'


def test_an_input_that_grows_too_old_while_the_instant_is_awaited_lets_nothing_out() -> None:
    """As after a freeze of the process that is too short to make the loop late."""
    ahead = Ahead(max_age_s=0.2)
    ahead.meanwhile = lambda: setattr(ahead.bench.clock, 'now', ahead.due + 250 * MS)
    ahead.round()
    assert len(ahead.bench.sent) == 1
    ahead.bench.harness.round()
    assert ahead.bench.reason == 'stale_input: state'
    assert len(ahead.bench.sent) == 1


def test_r44_a_deadline_that_passes_while_the_instant_is_awaited_lets_nothing_out() -> None:

    def late(instant_ns: int) -> None:
        limited.clock.now = instant_ns + (S if instant_ns > T0 + 100 * MS else 0)

    limited = Bench(episode_s=0.15, options={'await_instant': late})
    limited.begin()
    limited.clock.now += MS
    limited.give(0.0, 0.1, 0.2, 0.3)
    limited.harness.round()
    limited.clock.now = T0 + 101 * MS
    limited.state()
    limited.harness.round()
    assert len(limited.sent) == 1
    assert limited.harness.report().figures['withheld'] == 1
