"""The frame store, by its public names and a clock that only the test moves."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
from seq_harness.contract.obs_schedule import needed, of, picks, Schedule
from seq_harness.worker.frames import Frame
from seq_harness.worker.limits import Limits
from seq_harness.worker.store import FrameStore, OverLimit, TooManyEpisodes

EVERY_STEP = {'every': 1}
TWO_BACK = {'streams': {'cam': {'at': [-2, 0]}, 'state': {}}}
S = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def store_of(declared: Any = None, clock: Clock | None = None, **limits: Any) -> FrameStore:
    schedule: Schedule | None = of(declared)
    return FrameStore(schedule, Limits(**limits), clock or Clock())


def frames(*numbers: int, nbytes: int = 10) -> list[Frame]:
    return [Frame(n, {'cam': f'c{n}', 'state': f's{n}'}, nbytes) for n in numbers]


def act(store: FrameStore, number: int, episode: str = 'e', refills: bool = True) -> Any:
    """Take, read and serve one act; return what it read."""
    own = frames(number)[0]
    store.begin_act(episode)
    store.take(episode, own)
    assert store.first_missing(episode, number, refills, every=False) is None
    read = store.read(episode, number, own.inputs)
    store.serve(episode, number)
    store.end_act(episode)
    return read


def test_through_is_the_highest_number_without_a_gap_before_it() -> None:
    store = store_of(EVERY_STEP)
    assert store.observe('e', [], []) == -1
    assert store.observe('e', frames(0, 1), []) == 1
    assert store.observe('e', frames(4), []) == 1
    assert store.observe('e', frames(2), [3]) == 4
    assert store.observe('e', [], []) == 4


def test_a_number_that_comes_again_is_answered_the_same_and_stored_once() -> None:
    store = store_of(EVERY_STEP)
    assert store.observe('e', frames(0, 1, 1), []) == 1
    held = store.nbytes
    assert store.observe('e', frames(0, 1), []) == 1
    assert store.nbytes == held == 20


def test_an_episode_is_counted_from_the_first_number_it_is_sent() -> None:
    store = store_of(EVERY_STEP)
    assert store.observe('e', frames(7, 8), []) == 8


def test_an_earlier_number_lets_the_episode_begin_earlier() -> None:
    store = store_of(EVERY_STEP)
    store.observe('e', frames(7), [])
    assert store.observe('e', frames(5, 6), []) == 7


def test_skipped_numbers_below_zero_are_ignored() -> None:
    assert store_of().observe('e', frames(0), [-5, -1, 1]) == 1


def test_an_act_reads_everything_since_the_last_one_that_was_answered() -> None:
    store = store_of(EVERY_STEP)
    assert act(store, 0)['steps'] == [0]
    store.observe('e', frames(1, 2), [])
    read = act(store, 3)
    assert read['steps'] == [1, 2, 3]
    assert read['observations'][0] == {'cam': 'c1', 'state': 's1'}


def test_an_act_misses_what_it_reads_and_nobody_sent() -> None:
    store = store_of(EVERY_STEP)
    act(store, 0)
    store.observe('e', frames(1, 4), [3])
    store.take('e', frames(5)[0])
    assert store.first_missing('e', 5, refills=True, every=False) == 2


def test_skipped_numbers_are_neither_missed_nor_read() -> None:
    store = store_of(EVERY_STEP)
    store.observe('e', frames(0, 2), [1])
    assert act(store, 3)['steps'] == [0, 2, 3]


def test_an_act_that_was_not_answered_is_read_by_the_next_one() -> None:
    store = store_of(EVERY_STEP)
    act(store, 0)
    store.take('e', frames(1)[0])
    assert act(store, 2)['steps'] == [1, 2]


@pytest.mark.parametrize('posted_first', [True, False])
def test_the_frame_of_an_act_is_read_whatever_was_posted_meanwhile(posted_first: bool) -> None:
    store = store_of(EVERY_STEP)
    if posted_first:
        store.observe('e', frames(1), [])
    store.take('e', frames(0)[0])
    store.observe('e', frames(1), [])
    assert act(store, 2)['steps'] == [0, 1, 2]


def test_a_window_is_kept_across_acts_and_no_longer() -> None:
    store = store_of(TWO_BACK)
    assert act(store, 0)['steps'] == [0, 0]
    store.observe('e', frames(1), [])
    assert act(store, 2)['steps'] == [0, 2]
    store.observe('e', frames(3), [])
    read = act(store, 4)
    assert read['observations'] == [{'cam': 'c2'}, {'cam': 'c4', 'state': 's4'}]
    assert store.nbytes == 20


def test_only_the_client_that_can_refill_is_asked_for_what_came_before() -> None:
    store = store_of(TWO_BACK)
    store.observe('e', frames(5), [])
    store.take('e', frames(6)[0])
    assert store.first_missing('e', 6, refills=True, every=False) == 4
    assert store.first_missing('e', 6, refills=False, every=False) is None
    assert store.read('e', 6, 'own')['steps'] == [6]


def test_a_client_that_cannot_refill_is_asked_once_and_then_served() -> None:
    store = store_of(TWO_BACK)
    store.take('e', frames(20)[0])
    assert store.first_missing('e', 20, refills=False, every=False) == 18
    store.ask_again('e', refills=False)
    assert store.first_missing('e', 20, refills=False, every=False) is None


def test_a_client_that_can_refill_is_asked_until_it_does() -> None:
    store = store_of(TWO_BACK)
    store.take('e', frames(20)[0])
    store.ask_again('e', refills=True)
    assert store.first_missing('e', 20, refills=True, every=False) == 18
    store.observe('e', frames(18, 19), [])
    assert store.read('e', 20, frames(20)[0].inputs)['steps'] == [18, 20]


def test_an_act_far_ahead_costs_nothing() -> None:
    store = store_of(EVERY_STEP)
    store.take('e', Frame(10**15, None, 0))
    assert store.first_missing('e', 10**15, refills=True, every=False) == 0


def test_a_late_copy_of_what_acts_have_passed_is_not_stored() -> None:
    store = store_of(EVERY_STEP)
    store.observe('e', [], [0, 1, 2])
    act(store, 3)
    assert store.observe('e', frames(1, 2), []) == 3
    assert store.nbytes == 0


def test_a_frame_that_comes_for_a_skipped_number_is_kept_until_an_act_passes_it() -> None:
    store = store_of(TWO_BACK)
    store.observe('e', frames(0), [1, 2])
    store.observe('e', frames(1), [])
    assert act(store, 3)['steps'] == [1, 3]
    held = store.nbytes
    store.observe('e', frames(2), [])
    assert store.nbytes == held


def test_an_unreadable_observation_is_read_no_more() -> None:
    store = store_of(EVERY_STEP)
    store.observe('e', frames(0, 1), [])
    store.drop('e', 1)
    assert act(store, 2)['steps'] == [0, 2]


def test_a_post_over_the_frame_limit_is_refused_whole() -> None:
    store = store_of(EVERY_STEP, stream_frames=3)
    store.observe('e', frames(0, 1), [])
    with pytest.raises(OverLimit, match='holds 2 observations and 2 came; a worker keeps 3'):
        store.observe('e', frames(2, 3), [])
    assert store.observe('e', frames(2), []) == 2


def test_a_post_over_the_byte_limit_is_refused_whole() -> None:
    store = store_of(EVERY_STEP, stream_bytes=100)
    store.observe('e', frames(0, nbytes=60), [])
    with pytest.raises(OverLimit, match='holds 60 bytes of observations and 41 came'):
        store.observe('e', frames(1, nbytes=41), [])
    assert store.observe('e', frames(1, nbytes=40), []) == 1


def test_a_refused_post_opens_no_episode() -> None:
    store = store_of(EVERY_STEP, stream_bytes=100)
    with pytest.raises(OverLimit):
        store.observe('e', frames(0, nbytes=101), [])
    assert store.episode_ids == []


def test_skips_are_bounded_too() -> None:
    store = store_of(EVERY_STEP, skipped=3)
    store.observe('e', [], [1, 2, 3])
    with pytest.raises(OverLimit, match='3 skipped numbers and 1 came'):
        store.observe('e', [], [4])


def test_the_frame_of_an_act_counts_as_any_other() -> None:
    store = store_of(EVERY_STEP, stream_bytes=15)
    store.take('e', frames(0)[0])
    with pytest.raises(OverLimit):
        store.take('e', frames(1)[0])


def test_over_the_limit_of_the_worker_the_longest_idle_episode_is_ended() -> None:
    clock = Clock()
    lost: list[str] = []
    limits = Limits(worker_bytes=100, episode_idle_s=10)
    store = FrameStore(of(EVERY_STEP), limits, clock, lost.append)
    store.observe('old', frames(0, nbytes=60), [])
    clock.ns = 5 * S
    store.observe('new', frames(0, nbytes=30), [])
    with pytest.raises(OverLimit, match='the worker holds 90 bytes'):
        store.observe('new', frames(1, nbytes=30), [])
    clock.ns = 10 * S
    assert store.observe('new', frames(1, nbytes=30), []) == 1
    assert lost == ['old']


def test_an_episode_without_an_act_for_its_idle_time_is_ended() -> None:
    clock = Clock()
    store = store_of(EVERY_STEP, clock, episode_idle_s=10)
    act(store, 0)
    clock.ns = 9 * S
    store.observe('e', frames(1), [])
    assert store.expire() == []
    clock.ns = 10 * S
    assert store.expire() == ['e']
    assert store.nbytes == 0


def test_an_episode_is_not_idle_while_an_act_is_under_way() -> None:
    clock = Clock()
    store = store_of(EVERY_STEP, clock, episode_idle_s=10)
    store.begin_act('e')
    clock.ns = 60 * S
    assert store.expire() == []
    store.end_act('e')
    clock.ns = 69 * S
    assert store.expire() == []
    clock.ns = 70 * S
    assert store.expire() == ['e']


def test_no_more_episodes_are_open_than_allowed() -> None:
    store = store_of(EVERY_STEP, episodes=1)
    act(store, 0, 'a')
    with pytest.raises(TooManyEpisodes):
        act(store, 0, 'b')
    store.end('a')
    act(store, 0, 'b')


def test_an_ended_episode_is_forgotten() -> None:
    store = store_of(EVERY_STEP)
    store.observe('e', frames(0, 1), [])
    assert store.end('e')
    assert not store.end('e')
    assert store.observe('e', frames(1), []) == 1
    assert store.last_act('e') == -1


numbers = st.integers(0, 12)
posts = st.tuples(st.lists(numbers, max_size=4), st.lists(numbers, max_size=3))


@settings(max_examples=300, deadline=None)
@given(st.lists(posts, max_size=12), st.booleans())
def test_through_and_bytes_agree_with_a_plain_record(
    sent: list[tuple[list[int], list[int]]], limited: bool
) -> None:
    store = store_of(EVERY_STEP, stream_frames=5 if limited else 1024)
    held: set[int] = set()
    skipped: set[int] = set()
    for held_now, skipped_now in sent:
        try:
            through = store.observe('e', frames(*held_now), skipped_now)
        except OverLimit:
            assert len(held | set(held_now)) > 5
            continue
        held |= set(held_now)
        skipped |= set(skipped_now)
        known = held | skipped
        expected = min(known, default=0)
        while expected in known:
            expected += 1
        assert through == (expected - 1 if known else -1)
        assert store.nbytes == 10 * len(held)


offsets = st.lists(st.integers(-6, 0), min_size=1, max_size=3, unique=True)
streams = st.one_of(
    st.builds(lambda at: {'at': sorted(at)}, offsets),
    st.builds(lambda every: {'every': every}, st.integers(1, 4)),
    st.just({}),
)
declarations = st.one_of(
    st.builds(lambda every: {'every': every}, st.integers(1, 4)),
    st.builds(
        lambda keys, pad: {'streams': keys, 'pad': pad},
        st.dictionaries(st.sampled_from('abc'), streams, max_size=3),
        st.sampled_from(['repeat_first', 'drop']),
    ),
)


@settings(max_examples=500, deadline=None)
@given(declarations, st.lists(st.tuples(st.integers(1, 6), st.sets(numbers)), max_size=6))
def test_what_an_act_misses_is_what_the_schedule_needs_and_nobody_sent(
    declared: Any, turns: list[tuple[int, set[int]]]
) -> None:
    schedule = of(declared)
    store = store_of(declared)
    t_prev, sent, skipped = -1, set[int](), set[int]()
    for gap, lost in turns:
        t = t_prev + gap
        between = set(range(t_prev + 1, t)) - lost
        store.observe('e', frames(*between), [])
        sent |= between | {t}
        store.begin_act('e')
        store.take('e', frames(t)[0])
        missing = needed(schedule, t, t_prev) - sent - skipped
        assert store.first_missing('e', t, True, every=False) == min(missing, default=None)
        store.observe('e', [], missing)
        skipped |= missing
        assert store.first_missing('e', t, True, every=False) is None
        read = store.read('e', t, frames(t)[0].inputs)
        picked = [step for step, _ in picks(schedule, t, t_prev) if step in sent]
        assert read['steps'] == picked
        store.serve('e', t)
        store.end_act('e')
        t_prev = t
