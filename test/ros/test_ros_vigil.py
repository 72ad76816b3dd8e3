"""When a watchdog takes silence for the end of its harness, on a clock moved by hand."""

from __future__ import annotations

from dataclasses import replace
import json

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
        self.vigil.heard(beat, self.now_ns)

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


def test_a_watchdog_is_needed_for_5_s_after_an_orderly_end_of_its_harness() -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.beat(replace(IDLE, ends=True))
    rig.silent_ms(4_990)
    assert rig.vigil.over == ''
    rig.silent_ms(10)
    assert rig.vigil.over == 'its harness ended 5 s ago'
    rig.beat(replace(IDLE, instance='two'))
    assert rig.vigil.over == '', 'another harness needs it'


def test_5_s_are_5_s_at_every_rate_and_however_seldom_it_looks() -> None:
    rig = Rig()
    rig.beat(replace(IDLE, period_s=0.01, ends=True))
    while not rig.vigil.over:
        rig.frozen_ms(rig.vigil.next_look_ns // MS)
    assert rig.now_ns == 5_000 * MS


def test_a_harness_that_only_fell_silent_may_come_back() -> None:
    rig = Rig()
    rig.beat(IDLE)
    rig.silent_ms(100_000)
    assert rig.vigil.state is Watch.GONE
    assert rig.vigil.over == ''


def test_a_watchdog_is_needed_until_the_channels_have_been_zero_for_60_s() -> None:
    rig = Rig()
    rig.beat(MOVING)
    assert rig.silent_ms(150) is Watch.HOLDING
    rig.silent_ms(59_990)
    assert rig.vigil.over == ''
    rig.silent_ms(10)
    assert rig.vigil.over == 'the channels have been zero for 60 s'


def test_a_second_hold_has_60_s_of_its_own() -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.silent_ms(50_000)
    rig.beat(replace(MOVING, episode=2))
    rig.silent_ms(50_000)
    assert rig.vigil.state is Watch.HOLDING
    assert rig.vigil.over == ''


def test_a_freeze_of_its_own_counts_for_no_end() -> None:
    rig = Rig()
    rig.beat(replace(IDLE, ends=True))
    rig.frozen_ms(60_000)
    assert rig.vigil.over == ''


def test_a_harness_that_ends_well_while_it_is_held_ends_the_need_too() -> None:
    rig = Rig()
    rig.beat(MOVING)
    rig.silent_ms(1_000)
    rig.beat(replace(IDLE, ends=True))
    assert rig.silent_ms(4_990) is Watch.HOLDING
    rig.silent_ms(10)
    assert rig.vigil.over == 'its harness ended 5 s ago'


def changed(**fields: object) -> str:
    """Return a beat with other fields, as it crosses the topic."""
    return json.dumps({**json.loads(MOVING.text()), **fields})


def channel(**fields: object) -> str:
    """Return a beat with another channel."""
    (known,) = json.loads(MOVING.text())['channels']
    return changed(channels=[{**known, **fields}])


@pytest.mark.parametrize(
    'text',
    [
        '',
        '[]',
        '{}',
        '{"channels": 3}',
        MOVING.text()[:-9],
        'null',
        '[' * 100_000,
        '{"a":' * 100_000,
        '"' + 'x' * 1_000_000 + '"',
        changed(instance=3),
        changed(episode='1'),
        changed(episode=1.5),
        changed(episode=[1]),
        changed(moving='false'),
        changed(moving=None),
        changed(period_s=float('nan')),
        changed(period_s=float('inf')),
        changed(period_s=0.0),
        changed(period_s=-1.0),
        changed(period_s=1e300),
        changed(period_s='0.05'),
        changed(channels={}),
        changed(channels=[3]),
        changed(ends=2),
        channel(topic='no full name'),
        channel(topic=''),
        channel(topic=['/commands']),
        channel(type='of_another_version'),
        channel(type={}),
        channel(joints='ab'),
        channel(joints=[]),
        channel(joints=[1, 2]),
        channel(kind='position'),
        channel(frame=7),
        channel(max_effort=float('nan')),
        channel(time_from_start_s=-1.0),
    ],
    ids=lambda text: text[:60],
)
def test_g42_what_is_no_beat_is_refused(text: str) -> None:
    with pytest.raises(BeatRefused, match='expected a beat of a harness, got ') as refused:
        Beat.read(text)
    assert len(str(refused.value)) < 500


def test_what_a_later_version_says_besides_is_left() -> None:
    assert Beat.read(changed(mood='good')) == MOVING


@pytest.mark.parametrize(
    'fields',
    [
        {'timeout_s': float('nan')},
        {'timeout_s': 0.0},
        {'timeout_s': 1e300},
        {'timeout_s': '1'},
        {'endpoints': 'ab'},
        {'endpoints': [3]},
        {'name': None},
        {'watches': 3},
        {'episode': '1'},
    ],
    ids=str,
)
def test_what_is_no_standing_is_refused(fields: dict[str, object]) -> None:
    standing = Standing('/watchdog', 'one', '', 0, 0.15, ('00ff', '01ff'))
    text = json.dumps({**json.loads(standing.text()), **fields})
    with pytest.raises(BeatRefused, match='expected a watchdog, got '):
        Standing.read(text)


def test_what_crosses_the_topics_comes_back_as_it_was() -> None:
    standing = Standing('/watchdog', 'one', '', 0, 0.15, ('00ff', '01ff'))
    assert Beat.read(MOVING.text()) == MOVING
    assert Standing.read(standing.text()) == standing
    with pytest.raises(BeatRefused, match='expected a watchdog'):
        Standing.read('{}')
    assert list(zeros(ARM)) == [0.0, 0.0]
