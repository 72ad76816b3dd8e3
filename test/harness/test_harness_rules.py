"""The loop's rules, each named after the rule it pins, on a clock moved by hand."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from seq_harness.episode import Episode
from seq_harness.harness import Opened, State
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import CEILING_NS, Commands, FLOOR_NS, Observation
from seq_harness.playback.uplink import PolicyError
from support.robots import Bench, joint_state, MS, S
from support.uplinks import HandAnswer

T0 = 100 * S


class Scripted:
    """A session that answers by a script of (commands, rest of the sleep in ns)."""

    def __init__(self, *answers: tuple[Commands, int]) -> None:
        self.answers = list(answers)
        self.calls: list[int] = []

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        self.calls.append(t)
        commands, rest = self.answers.pop(0)
        return commands, t + rest

    def cancel(self) -> None:
        """Hold nothing."""

    def close(self) -> None:
        """Hold nothing."""


def scripted(*answers: tuple[Commands, int], episode_s: float | None = None) -> Bench:
    """Return a bench whose session follows a script; its steps are far apart."""
    bench = Bench(episode_s, inputs__state__max_age_s=60.0)
    session = Scripted(*answers)

    def on_open(opened: Opened) -> None:
        opened.session = session
        opened.episode = Episode(bench.scope, lambda work: HandAnswer(), lambda _: None, 100 * S)

    bench.on_open = on_open
    bench.state()
    bench.harness.start()
    return bench


STILL: Commands = {'arm': np.zeros(2)}


@pytest.mark.parametrize('rest', [0, -5])
def test_r2_an_instant_that_is_not_later_fails_the_episode_with_both_numbers(rest: int) -> None:
    bench = scripted(({}, rest))
    bench.harness.round()
    assert bench.reason == (
        f'exception: ValueError: the session wants to resume at {T0 + rest}, not after {T0}'
    )


@pytest.mark.parametrize(
    ('asked', 'slept'),
    [(2 * MS, 2 * MS), (MS // 5, FLOOR_NS), (1, FLOOR_NS), (300 * MS, 300 * MS)],
)
def test_r39_the_sleep_is_what_was_asked_from_floor_to_ceiling(asked: int, slept: int) -> None:
    bench = scripted(({}, asked))
    assert bench.harness.round() == T0 + slept


def test_r39_five_seconds_are_cut_to_one() -> None:
    assert scripted(({}, 5 * S)).harness.round() == T0 + CEILING_NS


def test_r40_the_deadline_bounds_the_sleep() -> None:
    bench = Bench(0.02)
    bench.begin()
    bench.give(0.0, 0.0, 0.0)
    assert bench.harness.round() == T0 + 20 * MS


def test_r41_r42_finding_16_the_loop_never_polls_and_every_instant_is_of_the_time_source() -> None:
    bench = Bench(lead_s=0.25, inputs__state__max_age_s=60.0)
    bench.begin()
    bench.give(*([0.0] * 50))
    bench.harness.round()
    rounds = bench.harness.report().figures['rounds']
    bench.until(T0 + 4 * S)
    calls = bench.harness.report().figures['rounds'] - rounds
    assert calls <= 2 + 40, 'one round for each row and step, and none between'


def test_r42_each_of_start_stop_and_answers_wakes_the_loop_once() -> None:
    bench = Bench()
    bench.state()
    assert bench.wakes == 0
    bench.harness.start()
    assert bench.wakes == 1
    bench.harness.start()
    assert bench.wakes == 1, 'a refused start is no news'
    bench.harness.round()
    bench.harness.stop('stop')
    assert bench.wakes == 2
    bench.harness.round()
    bench.harness.stop('stop')
    assert bench.wakes == 2


def test_r42_an_inputs_expiry_is_an_instant_of_the_loop() -> None:
    bench = Bench(inputs__state__max_age_s=0.05)
    bench.begin()
    bench.give(0.0, 0.0)
    assert bench.harness.round() == T0 + 50 * MS + 1


def test_r43_finding_14_the_deadline_is_armed_by_the_first_call_and_kept_in_one_place() -> None:
    bench = Bench(0.5, lead_s=0.1)
    bench.harness.start()
    bench.harness.round()
    bench.clock.now += 700 * MS
    bench.state()
    first = bench.clock.now
    bench.until(first + 100 * MS)
    bench.give(0.0, 0.0, 0.0)
    bench.until(first + 390 * MS)
    bench.give(0.0, 0.0, 0.0, 0.0)
    bench.until(first + 2 * S)
    assert bench.reason == 'deadline', 'a chunk moves it no further'
    assert bench.sent[-1][0] == first + 400 * MS
    figures = bench.harness.report().figures
    assert (figures['waited_s'], figures['episode_s']) == (0.7, 1.2)


def test_r43_an_episode_whose_policy_never_answers_ends_at_its_deadline() -> None:
    bench = Bench(0.5)
    first = bench.clock.now
    bench.begin()
    bench.until(first + 499 * MS)
    assert bench.live
    bench.until(first + 500 * MS)
    assert bench.reason == 'deadline'
    assert bench.sent == []


@pytest.mark.parametrize(('late', 'sent'), [(-1, 1), (0, 0), (1, 0)])
def test_r44_finding_12_a_command_at_the_deadline_is_withheld(late: int, sent: int) -> None:
    bench = Bench(0.25)
    bench.begin()
    bench.give(0.0, 0.0, 0.0)
    bench.harness.round()
    bench.clock.now = T0 + 200 * MS
    bench.state()
    already = len(bench.sent)

    def slow() -> None:
        bench.clock.now = T0 + 250 * MS + late

    bench.during_encode = slow
    bench.harness.round()
    assert len(bench.sent) - already == sent
    bench.clock.now = T0 + 250 * MS
    bench.harness.round()
    assert bench.reason == 'deadline'


def test_r45_a_command_for_a_channel_that_is_not_there_is_dropped_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = scripted(({**STILL, 'base': 1}, 10 * MS), ({**STILL, 'base': 2}, 10 * MS))
    with caplog.at_level(logging.WARNING):
        for instant in (T0, T0 + 10 * MS):
            bench.clock.now = instant
            bench.harness.round()
    assert len(bench.sent) == 2
    said = [r.getMessage() for r in caplog.records if 'base' in r.getMessage()]
    assert said == ["commands for 'base' are dropped: no such channel here"]


def test_r46_rounds_count_also_where_nothing_was_commanded_or_it_was_withheld() -> None:
    bench = scripted((STILL, 10 * MS), ({}, 10 * MS), (STILL, 10 * MS))
    for instant in (T0, T0 + 10 * MS):
        bench.clock.now = instant
        bench.harness.round()
    bench.during_encode = lambda: bench.harness.withhold('loop_stalled')
    bench.clock.now = T0 + 20 * MS
    bench.harness.round()
    figures = bench.harness.report().figures
    assert (figures['rounds'], figures['withheld'], len(bench.sent)) == (3, 1, 1)


def test_r49_a_stop_answers_a_start_that_waits_for_time_to_begin() -> None:
    bench = Bench()
    bench.clock.now = 0
    assert bench.harness.start().accepted
    bench.harness.round()
    assert bench.answers == []
    bench.harness.stop('signal: SIGINT')
    bench.harness.round()
    assert bench.reason == 'signal: SIGINT'
    assert bench.harness.report().number == 1
    assert bench.scope.calls == [], 'nothing was opened for it'
    assert bench.harness.start().accepted


def test_r49_a_driver_that_ends_answers_a_start_that_no_round_met() -> None:
    bench = Bench()
    bench.harness.start()
    bench.harness.close('node_closed')
    assert (bench.reason, bench.harness.report().number) == ('node_closed', 1)
    bench.harness.close('again')
    assert bench.reason == 'node_closed'


def test_r49_a_driver_that_ends_closes_the_live_episode() -> None:
    bench = Bench()
    bench.begin()
    bench.harness.stop('stop')
    bench.harness.close('node_closed')
    assert bench.reason == 'stop', 'the first reason holds'
    assert bench.scope.calls == ['retire', 'close']
    assert bench.harness.report().state is State.IDLE


def test_r51_an_answer_that_is_not_visible_yet_is_an_instant_of_the_loop() -> None:
    bench = Bench()
    visible = T0 + 3 * MS

    def on_open(opened: Opened) -> None:
        opened.visible_ns = lambda: visible

    bench.on_open = on_open
    assert bench.begin() == visible


def test_r58_an_answer_that_lands_after_the_end_reaches_no_device() -> None:
    bench = Bench()
    bench.begin()
    bench.harness.stop('stop')
    bench.harness.round()
    bench.give(0.0, 0.0)
    bench.begin()
    bench.until(T0 + 500 * MS)
    assert bench.sent == []
    bench.answers[0].fail(PolicyError('late'))
    bench.until(T0 + 600 * MS)
    assert bench.live


def test_r97_finding_28_a_schedule_faster_than_the_floor_is_said_once_with_both_numbers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()

    def on_open(opened: Opened) -> None:
        opened.episode.period_ns = 400_000

    bench.on_open = on_open
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            bench.begin()
            bench.answers[-1].give(Chunk.at_rate([STILL] * 50, 2500))
            bench.until(bench.clock.now + 10 * MS)
            assert bench.harness.report().figures['rows']['merged'] > 10
            bench.harness.stop('stop')
            bench.harness.round()
    said = [r.getMessage() for r in caplog.records if 'rows come every' in r.getMessage()]
    assert said == [
        'rows come every 0.4000 ms and rounds at most every 1.0000 ms: rows will be merged'
    ]


def test_r8_the_observation_still_shows_what_was_seen_after_the_source_moved_on() -> None:
    bench = Bench()
    seen: list[Any] = []

    def on_open(opened: Opened) -> None:
        def session(observation: Observation, t: int) -> tuple[Commands, int]:
            seen.append(observation)
            return {}, t + 10 * MS

        session.cancel = session.close = lambda: None  # type: ignore[attr-defined]
        opened.session = session  # type: ignore[assignment]

    bench.on_open = on_open
    position = [0.1, 0.2]
    bench.inputs.put('state', joint_state(position, T0), now_ns=T0, ros_now_ns=T0)
    bench.harness.start()
    bench.harness.round()
    position[:] = [9.0, 9.0]
    bench.clock.now += 10 * MS
    bench.state((0.5, 0.5))
    bench.harness.round()
    assert seen[0]['state'].tolist() == pytest.approx([0.1, 0.2])
    with pytest.raises(ValueError, match='read-only'):
        seen[0]['state'][0] = 1
