"""What an inference costs in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from seq_harness.playback.answer import Answer, NotAnswered
from seq_harness.playback.asking import Drain
from seq_harness.playback.charging import ChargedStart, Charging
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Observation
from support.uplinks import HandUplink, MS, rows, S


class Later:
    """Runs what was started once it is told to."""

    def __init__(self) -> None:
        self.work: Callable[[], Any] = lambda: None
        self.outcome: list[Any] = []
        self.asked_done = 0

    def __call__(self, work: Callable[[], Any]) -> Answer[Any]:
        self.work = work
        self.outcome = []
        return self

    def run(self) -> None:
        try:
            self.outcome = [self.work()]
        except Exception as error:
            self.outcome = [error]

    def done(self) -> bool:
        self.asked_done += 1
        return bool(self.outcome)

    def result(self) -> Any:
        if isinstance(self.outcome[0], Exception):
            raise self.outcome[0]
        return self.outcome[0]


class World:
    """A simulated clock beside a real one, both moved by hand."""

    def __init__(self, charging: Charging) -> None:
        self.now = 50 * S
        self.real = 7 * S
        self.later = Later()
        self.start = ChargedStart(
            self.later, charging, world_ns=lambda: self.now, real_ns=lambda: self.real
        )

    def work(self, real_ns: int) -> Callable[[], str]:
        def work() -> str:
            self.real += real_ns
            return 'answer'

        return work


def test_r51_a_charged_answer_is_visible_at_its_ask_plus_its_real_duration() -> None:
    world = World(Charging.CHARGED)
    answer = world.start(world.work(200 * MS))
    world.later.run()
    for world.now in (50 * S, 50 * S + 200 * MS - 1):
        assert not answer.done()
        assert world.start.visible_ns() == 50 * S + 200 * MS
        with pytest.raises(NotAnswered):
            answer.result()
    world.now = 50 * S + 200 * MS
    assert answer.done()
    assert answer.result() == 'answer'
    assert world.start.visible_ns() is None


def test_r51_an_uncharged_answer_is_visible_at_its_ask() -> None:
    world = World(Charging.UNCHARGED)
    answer = world.start(world.work(200 * MS))
    assert not answer.done()
    assert world.start.limit_ns() == 50 * S, 'the world pauses'
    world.later.run()
    assert world.start.limit_ns() is None
    assert answer.done()


def test_r51_while_a_charged_call_runs_the_world_advances_no_faster_than_real_time() -> None:
    world = World(Charging.CHARGED)
    assert world.start.limit_ns() is None
    world.start(world.work(0))
    world.real += 30 * MS
    assert world.start.limit_ns() == 50 * S + 30 * MS
    world.later.run()
    assert world.start.limit_ns() is None


@pytest.mark.parametrize('charging', Charging)
def test_r51_a_failure_costs_and_raises_like_an_answer(charging: Charging) -> None:
    world = World(charging)

    def fail() -> None:
        world.real += 100 * MS
        raise ValueError('no image')

    answer = world.start(fail)
    world.later.run()
    assert answer.done() is (charging is Charging.UNCHARGED)
    world.now += 100 * MS
    with pytest.raises(ValueError, match='no image'):
        answer.result()


def test_finding_04_asking_whether_it_is_done_changes_nothing() -> None:
    world = World(Charging.CHARGED)
    answer = world.start(world.work(10 * MS))
    assert [answer.done() for _ in range(5)] == [False] * 5
    world.later.run()
    world.now += 10 * MS
    assert [answer.done() for _ in range(5)] == [True] * 5
    assert answer.result() == answer.result() == 'answer'


class ChargedUplink(HandUplink):
    """Starts every ask in a world."""

    def __init__(self, world: World, chunk: Chunk) -> None:
        super().__init__()
        self.world = world
        self.chunk = chunk

    def ask(self, observation: Observation, t: int, *_: Any) -> Any:
        self.asks.append((t, observation))
        started = self.world.start(lambda: self._infer())
        self.world.later.run()
        return started

    def _infer(self) -> Chunk:
        self.world.real += 250 * MS
        return self.chunk


@pytest.mark.parametrize(('charging', 'first'), [('charged', 250 * MS), ('uncharged', 0)])
def test_r51_the_player_sees_rows_after_what_the_inference_cost(charging: str, first: int) -> None:
    world = World(Charging(charging))
    uplink = ChargedUplink(world, Chunk.at_rate(rows(1, 2), 10))
    player = ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart())
    begin = world.now
    sent: list[int] = []
    while len(sent) < 2:
        commands, resume = player({}, world.now)
        if commands:
            sent.append(world.now - begin)
        visible = world.start.visible_ns()
        world.now = min(resume, visible or resume)
    assert sent == [first, first + 100 * MS]
