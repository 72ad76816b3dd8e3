"""Pause, resume, takeover, replan, instructions and manual commands, on a clock moved by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.harness import Opened, State
from seq_harness.harness.requests import OnInstruction
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.session import CEILING_NS, Commands, Observation
from seq_harness.playback.uplink import Step
from support.robots import Bench, MS, S

T0 = 100 * S


def running(episode_s: float | None = None, **options: Any) -> Bench:
    """Return a bench in an episode that has played its first row, at T0."""
    bench = Bench(episode_s, options, lead_s=0.25)
    bench.begin()
    bench.give(*([0.0] * 20))
    bench.harness.round()
    return bench


def at(bench: Bench, instant: int, **position: Any) -> int:
    """Do a round at `instant` with fresh inputs."""
    bench.clock.now = instant
    bench.state(**position)
    return bench.harness.round()


def ready(bench: Bench) -> Bench:
    """Let fresh inputs arrive."""
    bench.state()
    return bench


def state(bench: Bench) -> State:
    return bench.harness.report().state


def test_a_pause_drops_the_plan_and_nothing_plays_until_resume() -> None:
    bench = running()
    wakes = bench.wakes
    assert bench.harness.pause().accepted
    assert bench.wakes == wakes + 1
    at(bench, T0 + 100 * MS)
    assert state(bench) is State.PAUSED
    bench.until(T0 + 3 * S)
    assert [instant for instant, _ in bench.sent] == [T0]
    assert len(bench.answers) == 1
    assert bench.harness.report().figures['rows']['dropped'] == {'cancelled': 19}
    assert bench.changes[-1] == 'paused'


def test_no_numbers_are_spent_on_a_pause() -> None:
    bench = running()
    bench.harness.pause()
    bench.until(T0 + 1 * S)
    numbers = bench.harness.report().figures['steps']
    ready(bench).harness.resume()
    at(bench, T0 + 1 * S)
    assert bench.harness.report().figures['steps'] == numbers + 1
    assert bench.scope.skipped == []
    assert len(bench.answers) == 2, 'it asks afresh at once'


def test_the_deadline_goes_on_during_a_pause() -> None:
    bench = running(episode_s=1.5)
    bench.harness.pause()
    assert at(bench, T0 + 100 * MS) == T0 + 100 * MS + CEILING_NS
    assert at(bench, T0 + 1100 * MS) == T0 + 1500 * MS
    at(bench, T0 + 1500 * MS)
    assert bench.reason == 'deadline'


def test_a_stop_ends_a_pause() -> None:
    bench = running()
    bench.harness.pause()
    at(bench, T0 + 100 * MS)
    bench.harness.stop('stop')
    at(bench, T0 + 200 * MS)
    assert bench.reason == 'stop'


def test_a_pause_during_the_session_call_withholds_its_commands() -> None:
    bench = running()

    def pausing() -> None:
        bench.harness.pause()

    bench.during_encode = pausing
    at(bench, T0 + 100 * MS)
    assert [instant for instant, _ in bench.sent] == [T0]
    assert bench.harness.report().figures['withheld'] == 1


def test_a_stale_input_does_not_end_a_pause_but_resume_is_refused_by_its_name() -> None:
    bench = running()
    bench.harness.pause()
    bench.until(T0 + 300 * MS)
    bench.clock.now = T0 + 5 * S
    bench.harness.round()
    assert state(bench) is State.PAUSED
    answer = bench.harness.resume()
    assert not answer.accepted
    assert answer.reason.startswith('stale_input: state')
    assert ready(bench).harness.resume().accepted


def test_resume_is_refused_while_the_arm_is_unavailable() -> None:
    fault: list[str | None] = ['in protective stop']
    bench = running(unavailable=lambda snapshot: fault[0])
    bench.harness.pause()
    at(bench, T0 + 100 * MS)
    answer = bench.harness.resume()
    assert not answer.accepted
    assert answer.reason.startswith('arm_unavailable: in protective stop')
    fault[0] = None
    assert bench.harness.resume().accepted
    fault[0] = 'in protective stop'
    at(bench, T0 + 200 * MS)
    assert state(bench) is State.PAUSED, 'what is true in the round counts'


def test_g43_the_first_step_after_resume_is_bounded_from_the_measured_state() -> None:
    bench = running()
    bench.harness.pause()
    at(bench, T0 + 100 * MS, position=(0.8, 0.8))
    bench.harness.resume()
    at(bench, T0 + 200 * MS, position=(0.8, 0.8))
    assert len(bench.answers) == 2
    bench.give(0.0)
    at(bench, T0 + 210 * MS, position=(0.8, 0.8))
    assert len(bench.sent) == 1, 'a row near the old place is too far from the new one'
    bench.until(T0 + 220 * MS)


def test_an_answer_to_an_ask_from_before_the_pause_never_plays() -> None:
    bench = Bench(lead_s=0.25)
    bench.begin()
    bench.harness.pause()
    at(bench, T0 + 50 * MS)
    bench.give(0.0, 0.1)
    bench.harness.resume()
    wake = at(bench, T0 + 100 * MS)
    at(bench, wake)
    assert bench.sent == []
    assert len(bench.answers) == 2


@pytest.mark.parametrize('request_of', ['pause', 'resume', 'take_over', 'replan'])
def test_requests_without_an_episode_are_refused(request_of: str) -> None:
    answer = getattr(Bench().harness, request_of)()
    assert (answer.accepted, answer.reason) == (False, 'no episode is running: start one first')


def test_resume_without_a_pause_is_refused() -> None:
    bench = running()
    assert bench.harness.resume().reason == 'the episode is not paused'


def test_a_start_while_paused_is_refused() -> None:
    bench = running()
    bench.harness.pause()
    at(bench, T0 + 100 * MS)
    assert not bench.harness.start().accepted


def test_a_pause_and_its_end_are_counted_in_time() -> None:
    bench = running()
    bench.harness.pause()
    at(bench, T0 + 100 * MS)
    at(bench, T0 + 600 * MS)
    assert bench.harness.report().figures['held_s'] == 0.5
    bench.harness.resume()
    at(bench, T0 + 700 * MS)
    at(bench, T0 + 800 * MS)
    assert bench.harness.report().figures['held_s'] == 0.6


def halting(bench: Bench) -> Bench:
    def stop_commands(t: int) -> Commands:
        return {'arm': np.zeros(2)}

    def opened(parts: Opened) -> None:
        parts.player.stop_commands = stop_commands  # type: ignore[method-assign]

    bench.on_open = opened
    return bench


@pytest.mark.parametrize('end', ['pause', 'take_over', 'stop'])
def test_what_ends_a_motion_stops_rates_and_plans_within_the_round(end: str) -> None:
    bench = halting(Bench())
    bench.begin()
    bench.give(0.1, 0.2)
    bench.harness.round()
    if end == 'stop':
        bench.harness.stop('stop')
    else:
        getattr(bench.harness, end)()
    at(bench, T0 + 50 * MS)
    assert bench.sent == [(T0, [0.1, 0.1]), (T0 + 50 * MS, [0.0, 0.0])]


def test_nothing_goes_out_once_it_is_withheld_not_even_a_stop() -> None:
    bench = halting(Bench())
    bench.begin()
    bench.harness.withhold('loop_stalled')
    bench.harness.round()
    assert bench.sent == []
    assert bench.reason == 'loop_stalled'


def test_replan_asks_at_once_and_what_is_held_plays_on_meanwhile() -> None:
    bench = running()
    assert bench.harness.replan().accepted
    at(bench, T0 + 30 * MS)
    assert len(bench.answers) == 2
    bench.until(T0 + 300 * MS)
    assert [instant - T0 for instant, _ in bench.sent] == [i * 100 * MS for i in range(4)]
    assert bench.harness.report().figures['replans'] == 1


def test_replan_throws_the_answer_away_that_was_asked_for_before_it() -> None:
    bench = Bench()
    bench.begin()
    bench.harness.replan()
    at(bench, T0 + 10 * MS)
    bench.give(0.1)
    wake = at(bench, T0 + 20 * MS)
    at(bench, wake)
    assert len(bench.answers) == 2
    assert bench.sent == []


def asked_about(bench: Bench) -> Observation:
    """Return the observation of the newest ask."""
    seen: list[Observation] = []

    def infer(step: Step, plan: Any = None) -> Any:
        seen.append(step.observation)

    bench.scope.infer = infer  # type: ignore[method-assign]
    bench.works[-1]()
    return seen[0]


def test_a_new_instruction_is_carried_by_the_next_act() -> None:
    bench = running()
    bench.harness.instruct('left')
    at(bench, T0 + 30 * MS)
    assert len(bench.answers) == 1
    assert bench.harness.report().figures['rows']['held'] == 19
    bench.until(T0 + 1800 * MS)
    assert asked_about(bench)['prompt'] == 'left'


def test_a_new_instruction_replans_at_once_where_it_is_so_configured() -> None:
    bench = running(on_instruction=OnInstruction.REPLAN)
    bench.harness.instruct('go')
    at(bench, T0 + 20 * MS)
    assert len(bench.answers) == 1, 'the same text is no news'
    bench.harness.instruct('left')
    at(bench, T0 + 30 * MS)
    assert len(bench.answers) == 2
    assert asked_about(bench)['prompt'] == 'left'


@pytest.mark.parametrize('wish', ['pause', 'take_over'])
def test_an_episode_may_be_held_before_its_first_inputs(wish: str) -> None:
    bench = Bench()
    bench.harness.start()
    bench.harness.round()
    getattr(bench.harness, wish)()
    bench.clock.now += 10 * S
    bench.harness.round()
    assert state(bench).value in ('paused', 'taken_over')
    bench.harness.resume()
    assert not bench.harness.resume().accepted
    ready(bench).harness.resume()
    bench.harness.round()
    assert len(bench.answers) == 1


def test_the_policys_end_comes_after_its_rows_and_no_more_is_asked() -> None:
    bench = Bench()
    bench.begin()
    bench.answers[-1].give(Chunk.at_rate([{'arm': np.zeros(2)}] * 2, 10, 'done'))
    bench.until(T0 + 1 * S)
    assert len(bench.sent) == 2
    assert len(bench.answers) == 1
    assert bench.reason == 'policy:done'
