"""The observation stream: what is sent, what is declared skipped, and when."""

from __future__ import annotations

from client.stream_steps import encode, EVERY, observe, opened, post, seqs, WINDOW
from seq_harness.client.outbox import MAX_BATCH
from seq_harness.client.posts import StreamLimits, WhenBehind
from seq_harness.playback.uplink import Queued


def test_observations_are_posted_in_order_with_their_numbers() -> None:
    stream = opened(EVERY)
    observe(stream, 1, 2, 3)
    taken = post(stream)
    assert taken.frames == ((1, b'\x01'), (2, b'\x02'), (3, b'\x03'))
    assert taken.episode_id == 'ep'
    assert taken.skipped == ()


def test_one_post_is_under_way_at_a_time_and_the_next_takes_what_accumulated() -> None:
    stream = opened(EVERY)
    observe(stream, 1)
    first = post(stream)
    observe(stream, 2, 3)
    encode(stream)
    assert stream.next_post() is None
    stream.landed(first)
    assert seqs(post(stream)) == [2, 3]


def test_a_post_holds_no_more_than_a_batch() -> None:
    stream = opened(EVERY)
    observe(stream, *range(1, 101))
    first = post(stream)
    assert seqs(first) == list(range(1, MAX_BATCH + 1))
    stream.landed(first)
    assert seqs(post(stream)) == list(range(MAX_BATCH + 1, 101))


def test_a_post_holds_no_more_bytes_than_its_limit_unless_one_frame_does() -> None:
    stream = opened(EVERY, limits=StreamLimits(post_bytes=25))
    observe(stream, 1, 2, 3)
    encode(stream, nbytes=10)
    first = stream.next_post()
    assert first is not None
    assert seqs(first) == [1, 2]
    stream.landed(first)
    observe(stream, 4)
    encode(stream, nbytes=100)
    second = stream.next_post()
    assert second is not None
    assert seqs(second) == [3]
    stream.landed(second)
    assert seqs(post(stream)) == [4]


def test_a_failed_post_keeps_everything_and_backs_off_twice_as_long_each_time() -> None:
    stream = opened(EVERY)
    observe(stream, 1, 2)
    waits = []
    for _ in range(8):
        taken = post(stream)
        assert seqs(taken) == [1, 2]
        waits.append(stream.failed(taken))
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    stream.landed(post(stream))
    observe(stream, 3)
    assert stream.failed(post(stream)) == 0.05


def test_the_frames_of_a_refused_post_become_skips_ahead_of_what_waits() -> None:
    stream = opened(EVERY)
    observe(stream, 1, 2)
    taken = post(stream)
    observe(stream, 3)
    stream.refused(taken)
    told = post(stream)
    assert told.skipped == (1, 2)
    assert seqs(told) == []
    stream.landed(told)
    assert seqs(post(stream)) == [3]
    assert stream.figures().refused == 2


def test_a_refused_post_of_skips_alone_is_dropped() -> None:
    stream = opened(EVERY)
    observe(stream, 1)
    stream.refused(post(stream))
    stream.refused(post(stream))
    encode(stream)
    assert stream.next_post() is None


def test_a_policy_that_reads_its_own_observation_alone_gets_no_frames() -> None:
    stream = opened(None)
    assert observe(stream, 1, 2) == [Queued.ACCEPTED] * 2
    assert stream.next_job() is None
    assert stream.next_post() is None  # nobody waits for a number that no act has passed
    stream.begin_act(3)
    assert stream.clear()
    stream.served(stream.ask())
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([], (1, 2))


def test_what_the_expected_ask_does_not_read_is_declared_skipped_when_the_act_passes_it() -> None:
    stream = opened(WINDOW)
    stream.expect(8)
    observe(stream, *range(1, 8))
    jobs = encode(stream)
    assert [job.number for job in jobs] == [5, 6, 7]
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([5, 6, 7], ())
    stream.landed(taken)
    assert stream.next_post() is None
    stream.begin_act(8)
    assert stream.clear()
    told = post(stream)
    assert (seqs(told), told.skipped) == ([], (1, 2, 3, 4))


def test_an_ask_that_comes_early_still_sends_what_it_reads() -> None:
    stream = opened(WINDOW)
    stream.expect(20)
    observe(stream, *range(1, 6))
    assert encode(stream) == []
    stream.begin_act(6)
    assert [job.number for job in encode(stream)] == [3, 4, 5]
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([3, 4, 5], (1, 2))


def test_an_expected_ask_takes_back_what_was_queued_before_it_was_known() -> None:
    stream = opened(WINDOW)
    observe(stream, 1, 2)
    encode(stream)
    stream.expect(8)
    assert stream.next_post() is None
    stream.begin_act(5)
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([2], (1, 3, 4))


def test_only_the_keys_that_the_expected_ask_reads_are_sent() -> None:
    declaration = {'streams': {'cam': {'every': 4}, 'imu': {'every': 1}, 'state': {}}}
    stream = opened(declaration)
    stream.expect(6)
    observe(stream, 1, 2, 3)
    assert [(job.number, job.keys) for job in encode(stream)] == [
        (1, ('imu',)),
        (2, ('cam', 'imu')),
        (3, ('imu',)),
    ]


def test_before_the_next_ask_is_known_every_key_that_may_be_read_is_sent() -> None:
    declaration = {'streams': {'cam': {'every': 4}, 'imu': {'every': 1}, 'state': {}}}
    stream = opened(declaration)
    observe(stream, 1)
    assert [(job.number, job.keys) for job in encode(stream)] == [(1, ('cam', 'imu'))]


def test_an_early_ask_counts_the_frames_that_went_without_a_key_it_reads() -> None:
    declaration = {'streams': {'cam': {'every': 4}, 'imu': {'every': 1}}}
    stream = opened(declaration)
    stream.expect(6)
    observe(stream, 1)
    stream.landed(post(stream))
    stream.begin_act(5)
    assert stream.figures().short_of_keys == 1


def test_references_are_bounded_and_the_oldest_is_given_up() -> None:
    stream = opened(WINDOW, limits=StreamLimits(references=2))
    stream.expect(50)
    observe(stream, 1, 2, 3, 4)
    assert encode(stream) == []
    stream.begin_act(5)
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([3, 4], (1, 2))


def test_a_full_stream_that_waits_takes_nothing_and_loses_nothing() -> None:
    stream = opened(EVERY, limits=StreamLimits(unsent_frames=2))
    assert observe(stream, 1, 2, 3) == [Queued.ACCEPTED, Queued.ACCEPTED, Queued.FULL]
    stream.landed(post(stream))
    assert observe(stream, 3) == [Queued.ACCEPTED]
    stream.begin_act(4)
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([3], ())
    assert stream.figures().full == 1


def test_the_stream_is_bounded_in_bytes_too_counting_what_is_not_packed_as_the_last() -> None:
    stream = opened(EVERY, limits=StreamLimits(unsent_bytes=100))
    observe(stream, 1)
    encode(stream, nbytes=60)
    assert observe(stream, 2) == [Queued.ACCEPTED]
    assert observe(stream, 3) == [Queued.FULL]


def test_a_frame_larger_than_the_bound_is_taken_when_nothing_waits() -> None:
    stream = opened(EVERY, limits=StreamLimits(unsent_bytes=100))
    observe(stream, 1)
    encode(stream, nbytes=500)
    taken = stream.next_post()
    assert taken is not None
    stream.landed(taken)
    assert observe(stream, 2) == [Queued.ACCEPTED]


def test_a_full_stream_that_drops_declares_its_oldest_skipped() -> None:
    stream = opened(
        EVERY, limits=StreamLimits(unsent_frames=2), when_behind=WhenBehind.DROP_OLDEST
    )
    assert observe(stream, 1, 2, 3) == [Queued.ACCEPTED] * 3
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([2, 3], (1,))
    assert stream.figures().dropped == 1


def test_what_is_under_way_is_never_dropped() -> None:
    stream = opened(
        EVERY, limits=StreamLimits(unsent_frames=1), when_behind=WhenBehind.DROP_OLDEST
    )
    observe(stream, 1)
    taken = post(stream)
    observe(stream, 2, 3)
    stream.landed(taken)
    later = post(stream)
    assert (seqs(later), later.skipped) == ([3], (2,))


def test_a_stream_that_waits_drops_while_nothing_gets_through() -> None:
    stream = opened(EVERY, limits=StreamLimits(unsent_frames=1))
    observe(stream, 1)
    stream.drains(False)
    assert observe(stream, 2) == [Queued.ACCEPTED]
    stream.landed(post(stream))
    observe(stream, 3)
    assert observe(stream, 4) == [Queued.FULL]


def test_an_observation_that_cannot_be_packed_is_skipped() -> None:
    stream = opened(EVERY, limits=StreamLimits(frame_bytes=50))
    observe(stream, 1, 2)
    job = stream.next_job()
    assert job is not None
    stream.unencodable(job)
    encode(stream, nbytes=51)
    stream.begin_act(3)
    assert not stream.clear()
    assert post(stream).skipped == (1, 2)
