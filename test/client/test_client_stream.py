"""The observation stream: what is sent, what is declared skipped, and when."""

from __future__ import annotations

from typing import Any

import pytest
from seq_harness.client.outbox import MAX_BATCH
from seq_harness.client.posts import Job, Post, Resend, StreamLimits, WhenBehind
from seq_harness.client.stream import ObservationStream
from seq_harness.contract import obs_schedule
from seq_harness.playback.uplink import Queued

EVERY = {'every': 1}
WINDOW = {'streams': {'cam': {'at': [-3, 0]}, 'state': {}}}


def stream_of(
    declaration: dict[str, Any] | None,
    limits: StreamLimits | None = None,
    when_behind: WhenBehind = WhenBehind.WAIT,
) -> ObservationStream:
    return ObservationStream(obs_schedule.of(declaration), 'ep', 'worker-a', limits, when_behind)


def observe(stream: ObservationStream, *numbers: int) -> list[Queued]:
    return [stream.observe(number, {'cam': number, 'state': number}) for number in numbers]


def encode(stream: ObservationStream, nbytes: int = 1) -> list[Job]:
    jobs = []
    while (job := stream.next_job()) is not None:
        jobs.append(job)
        stream.encoded(job, bytes([job.number % 256]) * nbytes)
    return jobs


def post(stream: ObservationStream) -> Post:
    encode(stream)
    taken = stream.next_post()
    assert taken is not None
    return taken


def act(stream: ObservationStream, number: int) -> None:
    """Ask about a step and have it answered."""
    stream.begin_act(number)
    stream.own(number, b'own')
    stream.served(stream.ask())


def opened(declaration: dict[str, Any] | None, **more: Any) -> ObservationStream:
    """Return a stream whose first act, at step 0, was answered."""
    stream = stream_of(declaration, **more)
    act(stream, 0)
    return stream


def seqs(taken: Post) -> list[int]:
    return [seq for seq, _ in taken.frames]


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


def test_what_a_served_act_left_unsent_is_still_sent_for_the_acts_after_it() -> None:
    stream = opened(WINDOW, limits=StreamLimits(post_bytes=1))
    observe(stream, 1, 2, 3, 4, 5)
    stream.begin_act(6)
    first = post(stream)
    assert seqs(first) == [3]
    stream.landed(first)
    stream.served(stream.ask())
    observe(stream, 7)
    stream.begin_act(8)
    left = []
    while (taken := stream.next_post()) is not None:
        left += seqs(taken)
        stream.landed(taken)
        encode(stream)
    assert left == [4, 5, 7]


def test_an_act_waits_for_the_skips_it_depends_on_and_not_for_frames() -> None:
    stream = opened(EVERY)
    observe(stream, 1)
    stream.skip(2)
    stream.begin_act(3)
    stream.own(3, b'own')
    assert not stream.clear()
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([1], (2,))
    stream.landed(taken)
    assert stream.clear()
    stream.unanswered(3)
    observe(stream, 4)
    stream.begin_act(5)
    assert stream.clear()


def test_a_number_that_nobody_gave_counts_as_skipped() -> None:
    stream = opened(EVERY)
    observe(stream, 2)
    stream.begin_act(4)
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([2], (1, 3))


def test_a_number_given_twice_is_refused() -> None:
    stream = opened(EVERY)
    observe(stream, 1)
    with pytest.raises(ValueError, match='step 1 was given before'):
        observe(stream, 1)
    with pytest.raises(ValueError, match='step 0 was given before'):
        stream.begin_act(0)


def test_no_post_overtakes_the_act_that_opens_the_episode() -> None:
    stream = stream_of(EVERY)
    stream.begin_act(0)
    stream.own(0, b'own')
    question = stream.ask()
    observe(stream, 1)
    encode(stream)
    assert stream.next_post() is None
    stream.served(question)
    assert seqs(post(stream)) == [1]


def test_an_act_waits_for_the_post_that_opens_the_episode_and_it_holds_the_first_number() -> None:
    stream = stream_of(WINDOW)
    stream.expect(9)
    observe(stream, *range(9))
    stream.begin_act(9)
    assert not stream.clear()
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([0, 6, 7, 8], (1, 2, 3, 4, 5))
    stream.landed(taken)
    assert stream.clear()


def test_an_act_that_reads_nothing_else_lets_the_first_number_go_ahead_too() -> None:
    stream = stream_of(None)
    observe(stream, 0, 1)
    stream.begin_act(2)
    assert not stream.clear()
    stream.landed(post(stream))
    assert stream.clear()


def test_an_act_without_an_answer_becomes_a_frame() -> None:
    stream = opened(EVERY)
    stream.begin_act(1)
    stream.own(1, b'one')
    stream.ask()
    stream.unanswered(1)
    assert post(stream).frames == ((1, b'one'),)


def test_an_act_without_an_answer_or_an_observation_is_skipped() -> None:
    stream = opened(EVERY)
    stream.begin_act(1)
    stream.unanswered(1)
    stream.begin_act(2)
    assert post(stream).skipped == (1,)


def test_the_acts_own_observation_is_kept_for_a_resend() -> None:
    stream = opened(WINDOW)
    act(stream, 2)
    stream.begin_act(3)
    assert stream.resend(0) is Resend.QUEUED
    assert not stream.clear()
    taken = post(stream)
    assert taken.frames == ((0, b'own'), (2, b'own'))
    assert taken.skipped == (1,)
    stream.landed(taken)
    assert stream.clear()


def test_a_resend_starts_where_the_worker_says() -> None:
    stream = opened(EVERY)
    observe(stream, 1, 2, 3)
    stream.landed(post(stream))
    stream.begin_act(4)
    stream.resend(2)
    assert seqs(post(stream)) == [2, 3]
    assert stream.figures().resent == 2


def test_frames_that_no_act_can_read_are_forgotten() -> None:
    stream = opened(EVERY)
    observe(stream, 1, 2)
    stream.landed(post(stream))
    act(stream, 3)
    assert stream.resend(1) is Resend.BEGUN_ANEW


def test_another_worker_begins_the_episode_anew_from_what_is_kept() -> None:
    stream = opened(WINDOW)
    stream.expect(10)
    observe(stream, *range(1, 10))
    stream.landed(post(stream))
    act(stream, 10)
    observe(stream, 11)
    assert not stream.meet('worker-a')
    assert stream.meet('worker-b')
    stream.begin_act(12)
    assert not stream.clear()
    taken = post(stream)
    assert taken.episode_id == 'ep.1'
    assert taken.frames[0] == (0, bytes([8]))
    assert [seq + 8 for seq in seqs(taken)] == [8, 9, 10, 11]
    stream.landed(taken)
    question = stream.ask()
    assert (question.seq, question.number, question.episode_id) == (4, 12, 'ep.1')


def test_a_post_to_the_worker_before_says_nothing_of_the_one_after() -> None:
    stream = opened(EVERY)
    observe(stream, 1)
    old = post(stream)
    stream.meet('worker-b')
    stream.landed(old)
    assert not stream.opened
    assert seqs(post(stream)) == [0]


def test_an_answer_of_the_worker_before_leaves_the_observation_to_the_one_after() -> None:
    stream = opened(EVERY)
    stream.begin_act(1)
    stream.own(1, b'one')
    question = stream.ask()
    stream.meet('worker-b')
    stream.served(question)
    assert post(stream).frames == ((0, b'one'),)


def test_an_act_that_was_given_up_cannot_end_the_one_after_it() -> None:
    stream = opened(EVERY)
    stream.begin_act(1)
    stream.own(1, b'one')
    stream.begin_act(2)
    stream.own(2, b'two')
    stream.unanswered(1)
    assert post(stream).frames == ((1, b'one'),)
    stream.served(stream.ask())
    assert stream.figures().restarts == 0


def test_what_is_kept_for_a_refill_is_bounded() -> None:
    stream = opened(EVERY, limits=StreamLimits(kept_frames=2))
    observe(stream, 1, 2, 3, 4)
    stream.landed(post(stream))
    stream.begin_act(5)
    stream.resend(1)
    taken = post(stream)
    assert (seqs(taken), taken.skipped) == ([3, 4], (1, 2))
