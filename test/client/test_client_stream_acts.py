"""The observation stream around an act: what it waits for, and what it leaves."""

from __future__ import annotations

from client.stream_steps import act, encode, EVERY, observe, opened, post, seqs, stream_of, WINDOW
import pytest
from seq_harness.client.posts import Resend, StreamLimits


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
