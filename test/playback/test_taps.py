"""Taps on both sides of the player."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from seq_harness.playback.asking import Drain
from seq_harness.playback.chunk import Chunk, STAMP
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.layers import Layers, Misplaced, PlayerLayer
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.scope import Infer, stepped
from seq_harness.playback.session import Commands, Observation
from seq_harness.playback.taps import ChunkTap, RoundTap
from seq_harness.playback.uplink import Step
from support.uplinks import HandUplink, rows

PLAYER = PlayerLayer(lambda uplink: ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart()))


class Fixed:
    """A session that answers one and the same object."""

    def __init__(self) -> None:
        self.answer: tuple[Commands, int] = ({'arm': 1}, 10)

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        return self.answer

    def cancel(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def tapped(infer: Infer) -> tuple[Infer, list[tuple[Step, Any]]]:
    recorded: list[tuple[Step, Any]] = []
    return ChunkTap(lambda *what: recorded.append(what)).wrap_infer(infer), recorded


def test_r77_a_tap_above_records_one_command_set_a_round_and_one_below_one_an_inference() -> None:
    above: list[Any] = []
    below: list[Any] = []
    layers = Layers(
        RoundTap(lambda *what: above.append(what)), PLAYER, ChunkTap(lambda *w: below.append(w))
    )
    infer = layers.wrap_infer(stepped(lambda seen: rows(1, 2)))
    uplink = HandUplink([Chunk.at_rate(infer(Step(0, 0, {'state': 0})), 10)])
    session, _ = layers.open_session(uplink)
    session({'state': 1}, 0)
    session({'state': 2}, 5)
    assert above == [({'state': 1}, 0, {'arm': 1}), ({'state': 2}, 5, {})]
    assert below == [(Step(0, 0, {'state': 0}), rows(1, 2))]


def test_r77_finding_02_a_taps_side_is_said_when_it_is_made_and_held_to() -> None:
    with pytest.raises(Misplaced, match=r"'chunk_tap'.*below the player"):
        Layers(ChunkTap(print), PLAYER)
    with pytest.raises(Misplaced, match=r"'round_tap'.*above the player"):
        Layers(PLAYER, RoundTap(print))


@pytest.mark.parametrize(
    'answer',
    [
        None,
        [],
        {'arm': 1},
        [{'arm': 1}, {STAMP: 0.1}],
        ({'arm': 1}, {'arm': 2}),
        Chunk.at_rate(rows(1), 10),
    ],
)
def test_r78_r80_the_identical_chunk_is_forwarded_whatever_its_form(answer: Any) -> None:
    infer, recorded = tapped(stepped(lambda seen: answer))
    step = Step(3, 30, {'state': 1})
    assert infer(step) is answer
    assert recorded[0][0] is step
    assert recorded[0][1] is answer


def test_r78_the_identical_commands_are_forwarded() -> None:
    inner = Fixed()
    seen: list[Any] = []
    session = RoundTap(lambda *what: seen.append(what)).wrap_session(inner)
    observation = {'state': 1}
    assert session(observation, 0) is inner.answer
    assert seen[0][0] is observation
    assert seen[0][2] is inner.answer[0]


def test_r79_finding_22_a_chunk_is_recorded_against_the_step_that_started_the_work() -> None:
    newest = [1]

    def slow(observation: Observation) -> Any:
        newest[0] = 2  # rounds go on meanwhile
        return {'arm': observation['state']}

    infer, recorded = tapped(stepped(slow))
    infer(Step(7, 70, {'state': newest[0]}))
    assert [(step.number, step.t_ns, step.observation['state']) for step, _ in recorded] == [
        (7, 70, 1)
    ]


def test_a_failing_recorder_changes_nothing_and_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*what: Any) -> None:
        raise OSError('disk full')

    with caplog.at_level(logging.ERROR):
        infer = ChunkTap(full).wrap_infer(stepped(lambda seen: {'arm': 1}))
        assert [infer(Step(i, i, {})) for i in range(3)] == [{'arm': 1}] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "the recorder of 'chunk_tap' failed; what plays goes on"
    ]
