"""Findings of reviewers on such code: each test fails on code that has the fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from seq_harness.playback.asking import Drain, Lead
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.handoff import ArriveAtStart, Continue
from seq_harness.playback.latency import Latency
from seq_harness.playback.layers import Layers, Misplaced, PlayerLayer
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.scope import stepped
from seq_harness.playback.session import Observation, POLL_NS
from seq_harness.playback.uplink import PolicyError, Step
from support.uplinks import HandUplink, MS, rows, S

ROOT = Path(__file__).parents[2]
SEEN: Observation = {'state': 1}


def drained(uplink: HandUplink) -> ChunkPlayer:
    return ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart())


PLAYER = PlayerLayer(lambda uplink: ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart()))


def test_r95_finding_01_no_folder_is_left_out_of_type_checking() -> None:
    tomllib = pytest.importorskip('tomllib')
    config = tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['mypy']
    assert config['strict']
    checked = {name.partition('/')[0] for name in config['files']}
    there = {
        path.relative_to(ROOT).parts[0]
        for path in ROOT.glob('*/**/*.py')
        if not path.relative_to(ROOT).parts[0].startswith('.')
        and path.relative_to(ROOT).parts[0] not in ('build', 'install', 'log')
    }
    assert there <= checked
    assert not any(item.get('ignore_errors') for item in config.get('overrides', ()))


def test_finding_03_rows_keep_their_instants_at_epoch_scale() -> None:
    t = 1_764_000_000_987_654_321
    player = drained(HandUplink([Chunk.at_rate(rows(0, 1, 2), 30)]))
    assert player(SEEN, t) == ({'arm': 0}, t + 33_333_333)
    assert player(SEEN, t + 33_333_333) == ({'arm': 1}, t + 66_666_667)


def test_finding_15_nothing_of_the_old_plan_is_merged_into_the_new_ones_first_commands() -> None:
    old = Chunk.at_rate([{'arm': i, 'grip': i} for i in range(10)], 10)
    uplink = HandUplink([old])
    lead = Lead(cap_ns=10 * S, margin_ns=0, fixed_ns=900 * MS)
    player = ChunkPlayer(uplink, asking=lead, handoff=Continue())
    player(SEEN, 0)
    player(SEEN, 100 * MS)
    uplink.answers[1].give(Chunk.at_rate(rows(*range(50, 60)), 10))
    # Rows 2 and 3 of the old plan are due as the new one is read.
    assert player(SEEN, 320 * MS)[0] == {'arm': 52}


def test_finding_17_not_now_and_nothing_new_are_two_things() -> None:
    full = HandUplink()
    full.full = True
    waiting = drained(full)
    assert waiting(SEEN, 0) == ({}, POLL_NS)
    assert (waiting.statistics.asked, waiting.statistics.answered) == (0, 0)
    nothing = HandUplink([None])
    asking = drained(nothing)
    asking(SEEN, 0)
    assert (asking.statistics.asked, asking.statistics.answered) == (1, 1)


def test_finding_17_one_call_is_in_flight_whatever_layers_and_cancels_there_are() -> None:
    uplink = HandUplink()
    session, _ = Layers(PLAYER).open_session(uplink)
    for t in range(0, S, 10 * MS):
        session(SEEN, t)
        session.cancel()
    assert len(uplink.asks) == 1


def test_r74_finding_20_a_latency_simulator_above_the_player_is_refused() -> None:
    with pytest.raises(Misplaced, match=r"'latency'.*put it below the player"):
        Layers(Latency(0.2, lambda seconds: None), PLAYER)


def test_r74_a_latency_simulator_waits_once_an_inference() -> None:
    waited: list[float] = []
    infer = Layers(PLAYER, Latency(0.2, waited.append)).wrap_infer(stepped(lambda seen: {'a': 1}))
    assert [infer(Step(i, i, SEEN)) for i in range(3)] == [{'a': 1}] * 3
    assert waited == [0.2] * 3
    with pytest.raises(ValueError, match='finite seconds from 0'):
        Latency(-1, waited.append)


@pytest.mark.parametrize('row', [{'arm': 1}, [{'arm': 1}]])
def test_finding_29_a_row_alone_has_its_whole_period(row: Any) -> None:
    chunk = Chunk.stamped([row] if isinstance(row, dict) else row, fps=10)
    uplink = HandUplink([chunk])
    player = drained(uplink)
    assert player(SEEN, 0) == ({'arm': 1}, 100 * MS)
    player(SEEN, 99 * MS)
    assert len(uplink.asks) == 1


def test_r37_an_orphan_mark_ends_with_its_call_even_a_failed_one() -> None:
    uplink = HandUplink()
    player = drained(uplink)
    player(SEEN, 0)
    player.cancel()
    uplink.answers[0].fail(PolicyError('late'))
    with pytest.raises(PolicyError):
        player(SEEN, 10 * MS)
    player(SEEN, 20 * MS)
    uplink.answers[1].give(Chunk.at_rate(rows(7), 10))
    assert player(SEEN, 30 * MS)[0] == {'arm': 7}


def test_r25_the_order_of_channels_says_nothing() -> None:
    one, other = {'arm': 1, 'grip': 2}, {'grip': 2, 'arm': 1}
    players = [drained(HandUplink([Chunk.at_rate([row], 10)])) for row in (one, other)]
    assert players[0](SEEN, 0) == players[1](SEEN, 0)
