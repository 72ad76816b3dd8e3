"""Layers, scopes and where each may stand, by the rules they pin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.answer import Answer
from seq_harness.playback.asking import Drain
from seq_harness.playback.chunk import Chunk, ChunkRefused, STAMP
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.layers import (
    ChunkLayer,
    Codec,
    Layers,
    Misplaced,
    PassedOn,
    PlayerLayer,
    SessionLayer,
)
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.scope import (
    Calls,
    chunk_of,
    INFER,
    Infer,
    infer_of,
    map_rows,
    NotInfer,
    stepped,
)
from seq_harness.playback.session import (
    Commands,
    NotASession,
    Observation,
    require_session,
    Session,
)
from seq_harness.playback.uplink import Step, Uplink
from support.uplinks import HandUplink, MS, rows, S

SEEN: Observation = {'state': 1}


def a_player(uplink: Uplink) -> ChunkPlayer:
    return ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart())


PLAYER = PlayerLayer(a_player)


class Marked(SessionLayer):
    """Notes the order in which sessions are called, cancelled and closed."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    def _over(self, inner: Session) -> Session:
        return _MarkedSession(inner, self)


class _MarkedSession(PassedOn):
    def __init__(self, inner: Session, layer: Marked) -> None:
        super().__init__(inner)
        self._layer = layer

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        self._layer.notes.append(f'{self._layer.name} call')
        return super().__call__(observation, t)

    def cancel(self) -> None:
        self._layer.notes.append(f'{self._layer.name} cancel')
        super().cancel()

    def close(self) -> None:
        self._layer.notes.append(f'{self._layer.name} close')
        super().close()


class Added(Codec):
    """Adds to every row on its way up, and takes away from what the policy sees."""

    def __init__(self, by: float, name: str = 'added', changes_frame: bool = False) -> None:
        self.by = by
        self.name = name
        self.changes_frame = changes_frame

    def encode(self, observation: Observation) -> Observation:
        return {key: value - self.by for key, value in observation.items()}

    def decode_row(self, commands: Commands) -> Commands:
        return {name: value + self.by for name, value in commands.items()}

    def encode_row(self, commands: Commands) -> Commands:
        return {name: value - self.by for name, value in commands.items()}


class InlineUplink:
    """Asks `INFER` at once, as a local policy does."""

    def __init__(self, infer: Infer) -> None:
        self._infer = infer
        self._number = 0

    def ask(self, observation: Observation, t: int, *_: Any, **__: Any) -> Answer[Chunk | None]:
        step = Step(self._number, t, observation)
        self._number += 1
        return _Now(chunk_of(self._infer(step), 10))

    def commit(self, at_ns: int) -> int:
        return at_ns


class _Now:
    def __init__(self, chunk: Chunk | None) -> None:
        self._chunk = chunk

    def done(self) -> bool:
        return True

    def result(self) -> Chunk | None:
        return self._chunk


def test_r6_cancel_and_close_go_inward_through_every_layer() -> None:
    notes: list[str] = []
    layers = Layers(Marked('outer', notes), Marked('inner', notes), PLAYER)
    session, player = layers.open_session(HandUplink([Chunk.at_rate(rows(1, 2), 10)]))
    session(SEEN, 0)
    assert player.held == 1
    session.cancel()
    assert player.held == 0
    session.close()
    assert notes == [
        f'{name} {what}' for what in ('call', 'cancel', 'close') for name in ('outer', 'inner')
    ]


def test_r4_an_empty_mapping_passes_through_as_nothing_to_emit() -> None:
    session, _ = Layers(Marked('outer', []), PLAYER).open_session(HandUplink())
    assert session(SEEN, 0)[0] == {}


def test_r7_an_observation_of_plain_data_reaches_the_policy_as_it_is() -> None:
    plain = {'list': [1, 2], 'array': np.arange(3), 'scalar': 1.5, 'dict': {'a': 1}}
    seen: list[Observation] = []

    def policy(observation: Observation) -> Any:
        seen.append(observation)
        return {'arm': 1}

    session, _ = Layers(PLAYER).open_session(InlineUplink(stepped(policy)))
    assert session(plain, 0)[0] == {'arm': 1}
    assert seen[0] is plain


def test_r9_a_pipeline_without_a_player_raises_and_says_what_to_put_above() -> None:
    layers = Layers(Added(1))
    with pytest.raises(NotASession, match=r"\['added'\].*put a player above"):
        layers.require_player()
    with pytest.raises(NotASession, match='put a player above'):
        layers.open_session(HandUplink())


def test_r9_finding_18_what_answers_chunks_is_no_session() -> None:
    class ChunkPolicy:
        def infer(self, observation: Observation) -> Any: ...

    with pytest.raises(NotASession, match='put a ChunkPlayer above it'):
        require_session(ChunkPolicy())


@contextmanager
def counted_scope(log: list[str], infer: Callable[..., Any]) -> Iterator[Calls]:
    log.append('open')
    try:
        yield {INFER: infer, 'reset': lambda: None}
    finally:
        log.append('release')


def test_a_scope_gives_callables_by_name_and_releases_the_connection_on_exit() -> None:
    log: list[str] = []
    with counted_scope(log, stepped(lambda seen: {'arm': 1})) as calls:
        assert sorted(calls) == [INFER, 'reset']
        assert infer_of(calls)(Step(0, 0, SEEN)) == {'arm': 1}
        assert log == ['open']
    assert log == ['open', 'release']


def test_a_scope_without_infer_is_refused_by_what_it_gives() -> None:
    with pytest.raises(NotInfer, match=r"must give 'infer'; it gives \['predict'\]"):
        infer_of({'predict': lambda: None})


def test_finding_13_a_refused_pipeline_releases_its_connection() -> None:
    log: list[str] = []
    scope = counted_scope(log, stepped(lambda seen: None))
    with pytest.raises(NotASession), scope as calls:  # noqa: PT012
        uplink = InlineUplink(Layers(Added(1)).wrap_infer(infer_of(calls)))
        Layers(Added(1)).open_session(uplink)
    assert log == ['open', 'release']


def test_r10_rows_without_stamps_play_at_the_rate_and_with_stamps_as_stamped() -> None:
    at_rate = chunk_of([{'arm': 1}, {'arm': 2}], 10)
    stamped = chunk_of([{'arm': 1}, {STAMP: 0.03, 'arm': 2}, {STAMP: 0.05}], 10)
    assert at_rate is not None
    assert stamped is not None
    assert [row.offset_ns for row in at_rate.rows] == [0, 100 * MS]
    assert [row.offset_ns for row in stamped.rows] == [0, 30 * MS]
    assert (at_rate.end_ns, stamped.end_ns) == (200 * MS, 50 * MS)


@pytest.mark.parametrize('pair', [[{'arm': 1}, {'arm': 2}], ({'arm': 1}, {'arm': 2})])
def test_r11_finding_09_two_rows_are_two_rows_and_never_a_pair(pair: Any) -> None:
    chunk = chunk_of(pair, 10)
    assert chunk is not None
    assert [dict(row.commands) for row in chunk.rows] == [{'arm': 1}, {'arm': 2}]


def test_r11_a_bare_mapping_is_one_row() -> None:
    chunk = chunk_of({'arm': 1}, 10)
    assert chunk is not None
    assert (len(chunk.rows), chunk.end_ns) == (1, 100 * MS)


@pytest.mark.parametrize('empty', [[], (), Chunk((), 0)])
def test_r13_finding_10_an_empty_answer_is_never_indexed(empty: Any) -> None:
    chunk = chunk_of(map_rows(empty, lambda row: row), 10)
    assert chunk is not None
    assert (chunk.rows, chunk.end_ns) == ((), 0)


def test_r13_none_is_nothing_new_through_every_chunk_layer() -> None:
    infer = Layers(PLAYER, Added(1)).wrap_infer(stepped(lambda seen: None))
    assert infer(Step(0, 0, SEEN)) is None


@pytest.mark.parametrize('answer', ['open', 3, np.zeros((2, 3)), [1, 2]])
def test_an_answer_that_is_no_chunk_is_refused_by_its_type(answer: Any) -> None:
    with pytest.raises(ChunkRefused, match='sequence of rows was expected; got'):
        chunk_of(answer, 10)


def test_r69_session_layers_wrap_the_session_and_chunk_layers_wrap_infer() -> None:
    notes: list[str] = []
    layers = Layers(Marked('guard', notes), PLAYER, Added(10), Added(100))
    seen: list[Any] = []

    def policy(observation: Observation) -> Any:
        seen.append(observation['state'])
        return [{'arm': 1.0}]

    uplink = InlineUplink(layers.wrap_infer(stepped(policy)))
    session, _ = layers.open_session(uplink)
    assert session(SEEN, 0)[0] == {'arm': 111.0}
    assert seen == [1 - 110], 'the upper chunk layer converts the observation first'
    assert notes == ['guard call']
    assert layers.encode(SEEN) == {'state': -109}, 'streamed steps are encoded like acts'


def test_r69_chunk_layers_are_made_once_an_episode() -> None:
    class Counting(ChunkLayer):
        name = 'counting'

        def _under(self, infer: Infer) -> Infer:
            calls = iter(range(100))
            return stepped(lambda seen: {'n': next(calls)})

    layers = Layers(PLAYER, Counting())
    for _ in range(2):
        infer = layers.wrap_infer(stepped(lambda seen: None))
        assert [infer(Step(0, 0, SEEN)), infer(Step(1, 1, SEEN))] == [{'n': 0}, {'n': 1}]


def test_r70_finding_19_a_chunk_layer_above_the_player_is_refused_by_name_and_place() -> None:
    with pytest.raises(Misplaced, match=r"'metres'.*above the player.*put it below the player"):
        Layers(Added(1, 'metres'), PLAYER)


def test_r70_a_chunk_layer_refuses_to_wrap_a_session() -> None:
    with pytest.raises(NotInfer, match='put this layer below the player'):
        Added(1).wrap_infer(a_player(HandUplink()))  # type: ignore[arg-type]


def test_r71_finding_26_a_session_layer_below_the_player_is_refused() -> None:
    with pytest.raises(Misplaced, match=r"'fault guard'.*skipped.*put it above the player"):
        Layers(PLAYER, Marked('fault guard', []))
    with pytest.raises(Misplaced, match="'fault guard'"):
        Layers(PLAYER, Added(1), Marked('fault guard', []))
    with pytest.raises(Misplaced, match="'fault guard'"):
        Layers(Added(1), Marked('fault guard', []))


def test_r71_a_session_layer_refuses_to_wrap_what_answers_chunks() -> None:
    with pytest.raises(NotASession, match=r"'guard'.*above the player"):
        Marked('guard', []).wrap_session(stepped(lambda seen: None))  # type: ignore[arg-type]


def test_r72_finding_27_two_players_are_refused() -> None:
    with pytest.raises(Misplaced, match=r"two players \(\['player', 'second'\]\)"):
        Layers(PLAYER, PlayerLayer(a_player, 'second'))


Composer = Callable[[], Layers]
COMPOSERS: Mapping[str, Composer] = {
    'one list': lambda: Layers(Added(1), PLAYER),
    'operator': lambda: Added(1) | Layers(PLAYER),
    'parts': lambda: Layers(Layers(Added(1)), Layers(PLAYER)),
    'parts by operator': lambda: Layers(Added(1)) | Layers(Marked('top', []), PLAYER),
    'player alone below': lambda: Layers(Added(1)) | PLAYER,
    'nested': lambda: Layers(Layers(Layers(Marked('top', [])), Added(1)), PLAYER),
}


@pytest.mark.parametrize('way', COMPOSERS)
def test_r73_placement_is_checked_however_the_pipeline_is_composed(way: str) -> None:
    with pytest.raises(Misplaced, match="'added'"):
        COMPOSERS[way]()


def test_r73_what_is_no_layer_is_refused() -> None:
    with pytest.raises(Misplaced, match='was expected, got int'):
        Layers(PLAYER, 3)  # type: ignore[arg-type]


def test_r75_two_frame_changes_are_refused_on_one_side_or_both() -> None:
    one, two = (Added(1, name, changes_frame=True) for name in ('base', 'world'))
    Layers(PLAYER, one)
    with pytest.raises(Misplaced, match=r"more than once, by \['base', 'world'\]"):
        Layers(PLAYER, one, two)
    with pytest.raises(Misplaced, match=r"'server transform \(on the far side"):
        Layers(PLAYER, one, frames_elsewhere=['server transform'])
    with pytest.raises(Misplaced, match='more than once'):
        Layers(PLAYER, frames_elsewhere=['server transform']) | one


def test_a_plan_goes_down_through_the_codecs_in_the_policys_own_terms() -> None:
    plans: list[Any] = []

    def infer(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        plans.append(plan)

    wrapped = Layers(PLAYER, Added(10), Added(100)).wrap_infer(infer)
    wrapped(Step(0, 0, SEEN), {'prefix': rows(111.0, 112.0), 'delay_rows': 2})
    assert plans == [{'prefix': rows(1.0, 2.0), 'delay_rows': 2}]


def test_r95_rows_from_a_scope_play_through_the_real_player() -> None:
    layers = Layers(Marked('top', []), PLAYER, Added(10))
    log: list[str] = []
    with counted_scope(log, stepped(lambda seen: rows(1.0, 2.0))) as calls:
        session, _ = layers.open_session(InlineUplink(layers.wrap_infer(infer_of(calls))))
        sent, t = [], 1 * S
        for _ in range(4):
            commands, resume = session(SEEN, t)
            sent.append((t - S, commands))
            t = resume
    assert sent == [
        (0, {'arm': 11.0}), (100 * MS, {'arm': 12.0}),
        (200 * MS, {'arm': 11.0}), (300 * MS, {'arm': 12.0}),
    ]  # fmt: skip
