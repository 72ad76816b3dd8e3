"""When a watchdog takes silence for the end of its harness, on a clock moved by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from seq_harness.ros.beats import Beat, BeatRefused, Standing, Watched, zeros
from seq_harness.ros.vigil import silence_s, Vigil, Watch
from support.robots import MS

LOOK_MS = 10
ARM = Watched('/commands', 'float64_multi_array', ('a', 'b'), 'velocity', 'base_link')
MOVING = Beat('one', 1, True, 0.05, (ARM,))
IDLE = replace(MOVING, moving=False)


class Rig:
    """A vigil that is looked at every 10 ms, and not while its process is frozen."""

    def __init__(self, timeout_s: float = 0.0) -> None:
        self.vigil = Vigil(LOOK_MS * MS, timeout_s)
        self.now_ns = 0
        self.vigil.look(0)

    def beat(self, beat: Beat) -> None:
        self.vigil.heard(beat.text(), self.now_ns)

    def silent_ms(self, passed_ms: int) -> Watch:
        for _ in range(passed_ms // LOOK_MS):
            self.now_ns += LOOK_MS * MS
            self.vigil.look(self.now_ns)
        return self.vigil.state

    def frozen_ms(self, passed_ms: int) -> Watch:
        self.now_ns += passed_ms * MS
        return self.vigil.look(self.now_ns)


def test_nothing_is_held_before_a_harness_was_heard() -> None:
    assert Rig().silent_ms(10_000) is Watch.WAITING


@pytest.mark.parametrize(
    ('period_s', 'timeout_s', 'bound_ms'),
    [(0.05, 0.0, 150), (0.01, 0.0, 100), (1.0, 0.0, 3000), (0.05, 0.4, 400)],
)
def test_zero_goes_out_within_3_periods_or_as_long_as_is_set(
    period_s: float, timeout_s: float, bound_ms: int
) -> None:
    rig = Rig(timeout_s)
    rig.beat(replace(MOVING, period_s=period_s))
    assert rig.silent_ms(bound_ms - 10) is Watch.WATCHING
    assert rig.silent_ms(10) is Watch.HOLDING
    assert timeout_s or silence_s(period_s) * 1000 == pytest.approx(bound_ms)


def test_beats_in_time_keep_it_watching() -> None:
    rig = Rig()
    for _ in range(100):
        rig.beat(MOVING)
        assert rig.silent_ms(100) is Watch.WATCHING


def test_a_harness_that_moves_nothing_may_go() -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.beat(IDLE)
    assert rig.silent_ms(10_000) is Watch.GONE
    rig.beat(IDLE)
    assert rig.vigil.state is Watch.WATCHING


def test_it_holds_through_beats_of_the_same_episode_and_of_a_harness_that_idles() -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.silent_ms(150)
    for beat in (MOVING, IDLE, MOVING, replace(IDLE, instance='two')):
        rig.beat(beat)
        assert rig.vigil.state is Watch.HOLDING
        assert rig.silent_ms(1000) is Watch.HOLDING


@pytest.mark.parametrize('change', [{'episode': 2}, {'instance': 'two'}])
def test_another_episode_ends_it_and_is_watched_like_the_first(change: dict[str, object]) -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.silent_ms(150)
    rig.beat(replace(MOVING, **change))  # type: ignore[arg-type]
    assert rig.vigil.state is Watch.WATCHING
    assert rig.silent_ms(150) is Watch.HOLDING


def test_a_watchdog_that_was_frozen_itself_accuses_nobody() -> None:
    rig = Rig()
    rig.beat(MOVING)
    assert rig.frozen_ms(60_000) is Watch.WATCHING
    assert rig.silent_ms(150) is Watch.HOLDING, 'but it counts on from there'


@pytest.mark.parametrize(('timeout_s', 'bound_ms'), [(0.0, 150), (0.4, 400)])
def test_few_looks_find_silence_in_time(timeout_s: float, bound_ms: int) -> None:
    rig = Rig(timeout_s)
    rig.beat(MOVING)
    looks = 0
    while rig.vigil.state is not Watch.HOLDING:
        rig.frozen_ms(rig.vigil.next_look_ns // MS)
        looks += 1
    assert rig.now_ns <= bound_ms * MS
    assert looks <= 3
    assert rig.vigil.next_look_ns == LOOK_MS * MS, 'zeros go out as often as they should'


def test_a_harness_that_moves_nothing_is_looked_at_seldom() -> None:
    rig = Rig()
    rig.beat(IDLE)
    for _ in range(20):
        rig.frozen_ms(rig.vigil.next_look_ns // MS)
    assert rig.vigil.state is Watch.GONE
    assert rig.now_ns == 2_000 * MS


def test_what_is_let_go_by_hand_is_not_taken_again() -> None:
    rig = Rig()
    assert not rig.vigil.release()
    rig.beat(MOVING)
    rig.silent_ms(150)
    assert rig.vigil.release()
    assert rig.silent_ms(10_000) is Watch.WAITING


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"channels": 3}', MOVING.text()[:-9]])
def test_what_is_no_beat_is_refused_and_counts_for_nothing(text: str) -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.silent_ms(140)
    with pytest.raises(BeatRefused, match='expected a beat of a harness'):
        rig.vigil.heard(text, rig.now_ns)
    assert rig.silent_ms(10) is Watch.HOLDING


def test_what_crosses_the_topics_comes_back_as_it_was() -> None:
    standing = Standing('/watchdog', 'one', '', 0, 0.15, ('00ff', '01ff'))
    assert Beat.read(MOVING.text()) == MOVING
    assert Standing.read(standing.text()) == standing
    with pytest.raises(BeatRefused, match='expected a watchdog'):
        Standing.read('{}')
    assert list(zeros(ARM)) == [0.0, 0.0]
