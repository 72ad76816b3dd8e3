"""Stopping while an arm is unavailable, and what follows its recovery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.playback.asking import Drain
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.faults import OnRecovery, StopOnFault, UnknownStatus
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.layers import Layers, Misplaced, PassedOn, PlayerLayer
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.scope import stepped
from seq_harness.playback.session import Commands, NotASession, Observation, POLL_NS, Session
from support.uplinks import HandUplink, MS, rows, S

PLAYER = PlayerLayer(lambda uplink: ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart()))
WELL: Observation = {'status': 'ok'}
FAULTY: Observation = {'status': 'protective_stop'}


def opened(
    on_recovery: OnRecovery = OnRecovery.REPLAN, keys: tuple[str, ...] = ('status',)
) -> tuple[Session, ChunkPlayer, HandUplink]:
    uplink = HandUplink([Chunk.at_rate(rows(*range(10)), 10)])
    layers = Layers(StopOnFault(keys, on_recovery=on_recovery), PLAYER)
    session, player = layers.open_session(uplink)
    return session, player, uplink


def test_r84_a_fault_cancels_the_inner_session_and_answers_its_own_poll() -> None:
    session, player, _ = opened()
    session(WELL, 0)
    assert player.held == 9
    assert session(FAULTY, 100 * MS) == ({}, 100 * MS + POLL_NS)
    assert player.held == 0
    assert player.statistics.dropped == {'cancelled': 9}


def test_r84_any_arm_is_enough() -> None:
    session, player, _ = opened(keys=('left', 'arms'))
    session({'left': 'ok', 'arms': {'a': 'ok', 'b': 'ok'}}, 0)
    assert session({'left': 'ok', 'arms': {'a': 'ok', 'b': 'error'}}, 100 * MS)[0] == {}
    assert player.held == 0


def test_r85_without_a_status_everything_passes_through() -> None:
    session, _, _ = opened()
    assert session({'state': 1}, 0) == ({'arm': 0}, 100 * MS)


@pytest.mark.parametrize('status', ['dancing', '', None, 3, ['ok']])
def test_r85_an_unknown_status_raises_with_what_is_known(status: Any) -> None:
    session, _, _ = opened()
    with pytest.raises(UnknownStatus, match='expected one of'):
        session({'status': status}, 0)


def test_r86_the_old_chunk_never_resumes() -> None:
    session, _, uplink = opened()
    session(WELL, 0)
    session(FAULTY, 100 * MS)
    assert session(WELL, 200 * MS)[0] == {}, 'rows 1 and 2 of the old chunk are gone'
    assert [t for t, _ in uplink.asks] == [0, 200 * MS]
    uplink.answers[1].give(Chunk.at_rate(rows(50), 10))
    assert session(WELL, 300 * MS)[0] == {'arm': 50}


def test_r86_an_answer_to_an_ask_from_before_the_fault_is_thrown_away() -> None:
    uplink = HandUplink()
    session, _ = Layers(StopOnFault(), PLAYER).open_session(uplink)
    session(WELL, 0)
    session(FAULTY, 10 * MS)
    uplink.answers[0].give(Chunk.at_rate(rows(7), 10))
    commands, resume = session(WELL, 20 * MS)
    assert commands == {}
    assert session(WELL, resume)[0] == {}
    assert len(uplink.asks) == 2


def test_r86_hold_waits_after_recovery_until_it_is_cancelled() -> None:
    session, _, uplink = opened(OnRecovery.HOLD)
    session(WELL, 0)
    session(FAULTY, 100 * MS)
    assert session(WELL, 10 * S) == ({}, 10 * S + POLL_NS)
    assert len(uplink.asks) == 1
    session.cancel()
    session(WELL, 11 * S)
    assert [t for t, _ in uplink.asks] == [0, 11 * S]


class _Held(PassedOn):
    def __init__(self, inner: Session) -> None:
        super().__init__(inner)
        self.postponed: list[tuple[int, Observation, int]] = []

    def postpone(self, by_ns: int, observation: Observation, t: int) -> None:
        self.postponed.append((by_ns, observation, t))


def test_r86_resume_tells_what_is_below_to_move_the_held_rows_by_the_time_that_was_lost() -> None:
    player = ChunkPlayer(HandUplink(), asking=Drain(), handoff=ArriveAtStart())
    held = _Held(player)
    session = StopOnFault(on_recovery=OnRecovery.RESUME).wrap_session(held)
    session(WELL, 0)
    session(FAULTY, 50 * MS)
    session(FAULTY, 60 * MS)
    session(WELL, 3 * S)
    assert held.postponed == [(3 * S - 50 * MS, WELL, 3 * S)]


def test_r86_resume_plays_the_held_rows_on_where_they_stopped() -> None:
    session, player, uplink = opened(OnRecovery.RESUME)
    session(WELL, 0)
    session(WELL, 100 * MS)
    session(FAULTY, 150 * MS)
    assert session(WELL, 5 * S) == ({}, 5 * S + 50 * MS)
    sent, t = [], 5 * S + 50 * MS
    for _ in range(8):
        commands, resume = session(WELL, t)
        sent.append((t, commands['arm']))
        t = resume
    assert sent == [(5 * S + 50 * MS + i * 100 * MS, 2 + i) for i in range(8)]
    assert player.statistics.merged == 0
    assert len(uplink.asks) == 1


@pytest.mark.parametrize(('measured', 'plays'), [(0.1, True), (0.9, False)])
def test_r86_rows_that_no_longer_fit_the_measured_state_do_not_resume(
    measured: float, plays: bool
) -> None:
    place = [0.0]
    one = np.ones(1)
    guard = Guard({'arm': Limits(('j',), -one, one, 10 * one, 0.2 * one)}, period_ns=100 * MS)
    uplink = HandUplink([Chunk.at_rate(rows(*([np.zeros(1)] * 5)), 10)])
    player = ChunkPlayer(
        uplink,
        asking=Drain(),
        handoff=ArriveAtStart(),
        guard=guard,
        measured=lambda observation: {'arm': np.array(place)},
    )
    session = StopOnFault(on_recovery=OnRecovery.RESUME).wrap_session(player)
    session(WELL, 0)
    session(FAULTY, 50 * MS)
    place[0] = measured
    _, resume = session(WELL, 1 * S)
    assert bool(session(WELL, resume)[0]) is plays
    assert len(uplink.asks) == (1 if plays else 2)


def test_a_fault_sends_what_stops_a_rate_and_then_nothing() -> None:
    class Rolling(PassedOn):
        def stop_commands(self, t: int) -> Commands:
            return {'wheels': 0}

    player = ChunkPlayer(HandUplink(), asking=Drain(), handoff=ArriveAtStart())
    session = StopOnFault().wrap_session(PassedOn(Rolling(player)))
    assert session(FAULTY, 0) == ({'wheels': 0}, POLL_NS)
    assert session(FAULTY, POLL_NS) == ({}, 2 * POLL_NS)


def test_resume_above_what_cannot_postpone_is_refused_when_it_is_made() -> None:
    player = ChunkPlayer(HandUplink(), asking=Drain(), handoff=ArriveAtStart())
    with pytest.raises(TypeError, match='must stand right above the player'):
        StopOnFault(on_recovery=OnRecovery.RESUME).wrap_session(PassedOn(player))


def test_r87_no_command_comes_later_than_three_periods_after_the_fault() -> None:
    session, _, _ = opened()
    fault_at, sent, t = 250 * MS, [], 0
    while t < 2 * S:
        commands, resume = session(FAULTY if t >= fault_at else WELL, t)
        if commands:
            sent.append(t)
        t = resume
    assert sent == [0, 100 * MS, 200 * MS]


def test_r74_a_fault_guard_below_the_player_is_refused() -> None:
    with pytest.raises(Misplaced, match=r"'stop_on_fault'.*above the player"):
        Layers(PLAYER, StopOnFault())
    with pytest.raises(NotASession, match=r"'stop_on_fault'"):
        StopOnFault().wrap_session(stepped(lambda seen: None))  # type: ignore[arg-type]
