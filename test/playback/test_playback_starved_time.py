"""How long an episode may be without rows, whose time counts, and what is said of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.asking import Drain
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.expiry import Expiry
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.starvation import Starvation
from seq_harness.playback.uplink import ActAbandoned, Standing
from support.uplinks import HandUplink, MS, S

SEEN: dict[str, Any] = {}
LIMIT, ACT = 10 * S, 30 * S


class Far(HandUplink):
    """An uplink whose server stands as the test says."""

    stands = Standing.THERE

    def standing(self) -> Standing:
        return self.stands


class Starved:
    """A player without rows, called every 10 ms at the latest."""

    def __init__(self, **others: Any) -> None:
        self.uplink = Far()
        self.player = ChunkPlayer(
            self.uplink,
            asking=Drain(),
            handoff=ArriveAtStart(),
            starvation=Starvation(limit_ns=LIMIT, act_ns=ACT),
            **others,
        )
        self.t = 0
        self.called = 0

    def run(self, seconds: float, gap_ns: int = 10 * MS) -> str | None:
        """Call until then, or the end; return the reason of the end."""
        until = self.t + round(seconds * S)
        while self.player.finished is None and self.t < until:
            _, resume = self.player(SEEN, self.t)
            self.t = min(max(resume, self.t + MS), self.t + gap_ns, until)
        return self.player.finished

    def give(self, answer: Any) -> None:
        self.uplink.answers[-1].give(answer)

    def fail(self) -> None:
        self.uplink.answers[-1].fail(ActAbandoned('it took too long'))


def rows(count: int = 1) -> Chunk:
    return Chunk.at_rate([{'arm': np.zeros(1)}] * count, 10)


def test_the_time_of_a_young_act_does_not_count() -> None:
    starved = Starved()
    assert starved.run(29.9) is None


def test_an_act_older_than_any_may_be_counts() -> None:
    starved = Starved()
    assert starved.run(39.9) is None
    assert starved.run(1) == 'starved: no rows for 10 s: an act takes longer than act_timeout_s'
    assert starved.t == pytest.approx(40 * S, abs=20 * MS)


def test_a_server_that_answers_no_ping_counts_at_once() -> None:
    starved = Starved()
    starved.run(5)
    starved.uplink.stands = Standing.SILENT
    assert starved.run(9.9) is None
    assert starved.run(0.2) == 'starved: no rows for 10 s: the server does not answer its ping'


def test_the_time_of_making_the_connection_again_does_not_count() -> None:
    starved = Starved()
    starved.run(1)
    starved.uplink.stands = Standing.AWAY
    assert starved.run(100) is None


def test_answers_without_rows_count_with_the_time_of_their_acts_and_are_told() -> None:
    starved = Starved()
    for _ in range(4):
        starved.run(2.6)
        starved.give(Chunk((), 0))
    assert starved.run(0.02) is None, 'the first of them only begins the count'
    starved.run(2.6)
    starved.give(None)
    assert starved.run(0.02) == 'starved: no rows for 10.4 s: 5 answers without rows'


def test_the_time_between_asks_counts() -> None:
    starved = Starved()
    while starved.player.finished is None and starved.t < 20 * S:
        starved.run(0.01)
        if not starved.uplink.answers[-1].done():
            starved.give(None)
    assert starved.t == pytest.approx(LIMIT, abs=50 * MS)


def test_one_act_that_is_given_up_ends_nothing_and_a_second_does() -> None:
    starved = Starved()
    starved.run(29)
    starved.fail()
    assert starved.run(29) is None
    starved.fail()
    said = starved.run(0.1) or ''
    assert re.fullmatch(r'starved: no rows for (29|28\.9\d?) s: 2 acts given up', said)


def test_rows_begin_the_count_anew() -> None:
    starved = Starved()
    for _ in range(4):
        starved.run(3)
        starved.fail()
        starved.run(3)
        starved.give(rows())
        assert starved.run(0.5) is None


def test_a_player_that_is_not_called_is_held_and_its_time_does_not_count() -> None:
    starved = Starved()
    starved.run(1)
    starved.give(None)
    starved.run(0.02)
    for _ in range(5):
        starved.t += 60 * S
        assert starved.run(0.02) is None


def test_a_cancel_begins_the_count_anew() -> None:
    starved = Starved()
    starved.run(29)
    starved.fail()
    starved.run(29)
    starved.player.cancel()
    starved.fail()
    assert starved.run(5) is None


def test_without_asking_no_time_counts() -> None:
    starved = Starved()
    starved.uplink.full = True
    assert starved.run(60) is None
    old = Starved(expiry=Expiry(request_ns=1, age_of=lambda seen, t: 2))
    assert old.run(60) is None
    assert old.player.statistics.expired_observations > 1000


def test_each_cause_is_told_with_its_number() -> None:
    starved = Starved(expiry=Expiry(arrival_ns=S))
    starved.run(6)
    starved.give(rows())
    starved.run(6)
    starved.fail()
    starved.run(6)
    starved.give(None)
    said = starved.run(6) or ''
    assert said.partition(' s: ')[2] == (
        '1 answer older than max_answer_age_s, 1 act given up, 1 answer without rows'
    )
