"""Commands become messages, all of them before any is published."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from seq_harness.outputs import Output, Outputs
from seq_harness.playback.asking import Drain
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import NotASession, require_session
from support.uplinks import HandUplink


def broken(value: Any) -> Any:
    raise ValueError('cannot be encoded')


def test_nothing_is_published_when_one_channel_cannot_be_encoded() -> None:
    sent: list[Any] = []
    outputs = Outputs({'arm': Output(str, sent.append), 'grip': Output(broken, sent.append)})
    with pytest.raises(ValueError, match='cannot be encoded'):
        outputs.publish(outputs.encode({'arm': 1, 'grip': 2}))
    assert sent == []


def test_r45_a_command_for_a_channel_that_is_not_there_is_dropped_counted_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[Any] = []
    outputs = Outputs({'arm': Output(str, sent.append)})
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            outputs.publish(outputs.encode({'arm': 1, 'tail': 2}))
    assert sent == ['1', '1', '1']
    assert outputs.unknown == {'tail': 3}
    assert len(caplog.records) == 1


class OnlyChunks:
    def infer(self) -> None:
        """Answer chunks."""


def test_r9_what_answers_chunks_is_no_session_and_says_what_to_put_above() -> None:
    with pytest.raises(NotASession, match='put a ChunkPlayer above it'):
        require_session(OnlyChunks())
    with pytest.raises(NotASession, match='lacks __call__, cancel, close'):
        require_session(3)
    require_session(ChunkPlayer(HandUplink(), asking=Drain(), handoff=ArriveAtStart()))
