"""Manual commands and takeover, on a clock moved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from seq_harness.harness import Hold, State
from seq_harness.harness.requests import Requests
from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.session import Commands, Observation
from support.robots import Bench, MS, S

T0 = 100 * S


def at(bench: Bench, instant: int) -> int:
    """Do a round at `instant` with fresh inputs."""
    bench.clock.now = instant
    bench.state()
    return bench.harness.round()


def state(bench: Bench) -> State:
    return bench.harness.report().state


class HandGuard:
    """A guard that lets values up to 1 pass, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Commands, Observation, int]] = []
        self.resets = 0

    def check(self, commands: Commands, observation: Observation, t: int) -> Commands:
        self.asked.append((commands, observation, t))
        if np.max(np.abs(commands['arm'])) > 1:
            raise ChunkRefused('too far')
        return commands

    def reset(self) -> None:
        self.resets += 1


BY_HAND: Commands = {'arm': np.array([0.5, 0.5])}


def manual() -> tuple[Bench, HandGuard]:
    guard = HandGuard()
    return Bench(options={'manual': guard}), guard


def test_r50_a_manual_command_passes_the_guard_while_idle() -> None:
    bench, guard = manual()
    bench.state()
    wakes = bench.wakes
    assert bench.harness.command(BY_HAND).accepted
    assert bench.wakes == wakes + 1
    bench.harness.round()
    assert bench.sent == [(T0, [0.5, 0.5])]
    assert [(commands, t) for commands, _, t in guard.asked] == [(BY_HAND, T0)]
    bench.harness.round()
    assert len(bench.sent) == 1, 'it goes out once'


def test_r50_a_manual_command_never_passes_a_guard_that_refuses_it() -> None:
    bench, _ = manual()
    bench.state()
    for _ in range(2):
        bench.harness.command({'arm': np.array([2.0, 0.0])})
        bench.harness.round()
    assert bench.sent == []
    assert bench.harness.manual is not None
    assert bench.harness.manual.counts == {'guard': 2}
    assert bench.harness.manual.last_refusal == 'ChunkRefused: too far'


def test_r50_without_a_guard_no_manual_command_passes() -> None:
    bench = Bench()
    assert 'need a guard' in bench.harness.command(BY_HAND).reason


def test_r50_no_manual_command_passes_while_an_episode_is_live() -> None:
    bench, _ = manual()
    bench.begin()
    bench.give(*([0.0] * 20))
    for hold in (lambda: None, bench.harness.pause):
        hold()
        at(bench, bench.clock.now + 10 * MS)
        assert 'stop it or take over' in bench.harness.command(BY_HAND).reason
    assert all(message == [0.0, 0.0] for _, message in bench.sent)


def test_r50_a_manual_command_that_waits_as_an_episode_starts_is_dropped() -> None:
    bench, guard = manual()
    bench.state()
    bench.harness.command(BY_HAND)
    bench.harness.start()
    bench.harness.round()
    assert guard.asked == []
    assert bench.sent == []


def test_r50_a_manual_command_is_refused_on_missing_or_stale_inputs() -> None:
    bench, _ = manual()
    bench.harness.command(BY_HAND)
    bench.harness.round()
    bench.state()
    bench.clock.now += 5 * S
    bench.harness.command(BY_HAND)
    bench.harness.round()
    assert bench.sent == []
    assert bench.harness.manual is not None
    assert bench.harness.manual.counts == {'stale_input': 2}


def test_a_takeover_lets_manual_commands_pass_until_the_policy_goes_on() -> None:
    bench, guard = manual()
    bench.begin()
    bench.give(*([0.0] * 20))
    bench.harness.round()
    assert bench.harness.take_over().accepted
    at(bench, T0 + 50 * MS)
    assert state(bench) is State.TAKEN_OVER
    resets = guard.resets
    assert resets == 2, 'at the start, and as the person takes over'
    assert bench.harness.command(BY_HAND).accepted
    at(bench, T0 + 60 * MS)
    assert bench.sent[1:] == [(T0 + 60 * MS, [0.5, 0.5])]
    bench.harness.resume()
    at(bench, T0 + 100 * MS)
    assert state(bench) is State.RUNNING
    assert not bench.harness.command(BY_HAND).accepted
    assert len(bench.answers) == 2


@pytest.mark.parametrize('then', ['pause', 'resume'])
def test_r50_a_manual_command_that_waits_as_a_takeover_ends_is_dropped(then: str) -> None:
    bench, guard = manual()
    bench.begin()
    bench.harness.take_over()
    at(bench, T0 + 10 * MS)
    bench.harness.command(BY_HAND)
    getattr(bench.harness, then)()
    at(bench, T0 + 20 * MS)
    assert guard.asked == []


def test_r50_a_manual_command_that_comes_as_a_takeover_has_just_ended_is_dropped() -> None:
    requests = Requests()
    requests.start()
    assert requests.command(BY_HAND, Hold.TAKEN_OVER).accepted
    assert requests.take_manual(None) is None
    assert requests.take_manual(Hold.TAKEN_OVER) is None, 'it is gone for good'


def test_a_pause_ends_a_takeover() -> None:
    bench, _ = manual()
    bench.begin()
    bench.harness.take_over()
    at(bench, T0 + 10 * MS)
    bench.harness.pause()
    assert not bench.harness.command(BY_HAND).accepted
    at(bench, T0 + 20 * MS)
    assert state(bench) is State.PAUSED
