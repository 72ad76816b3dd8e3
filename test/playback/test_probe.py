"""Probing an endpoint: one question, one walk along its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.asking import Asking, Drain, Lead
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.codecs import Units
from seq_harness.playback.faults import StopOnFault
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.layers import Layers, PassedOn, PlayerLayer, SessionLayer
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.probe import probe, Probed
from seq_harness.playback.scope import Calls, INFER, stepped
from seq_harness.playback.session import NotASession, Observation, Session
from support.uplinks import MS, rows


def player(asking: Asking | None = None, **parts: Any) -> PlayerLayer:
    return PlayerLayer(
        lambda uplink: ChunkPlayer(
            uplink, asking=asking or Drain(), handoff=ArriveAtStart(), **parts
        )
    )


class Endpoint:
    """A recorded policy behind a steady clock that its inference moves."""

    def __init__(self, answer: Any, takes_ns: int = 30 * MS) -> None:
        self.answer = answer
        self.takes_ns = takes_ns
        self.now = 1000
        self.seen: list[Observation] = []
        self.events: list[str] = []

    @contextmanager
    def open(self) -> Iterator[Calls]:
        self.events.append('open')
        try:
            yield {INFER: stepped(self.infer)}
        finally:
            self.events.append('endpoint closed')

    def infer(self, observation: Observation) -> Any:
        self.seen.append(observation)
        self.now += self.takes_ns
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def probed(
        self,
        layers: Layers | None = None,
        observation: Observation | None = None,
        log: Callable[[Observation], None] | None = None,
    ) -> Probed:
        return probe(
            self.open(),
            layers or Layers(player()),
            observation or {'state': 1},
            fps=10,
            elapsed_ns=lambda: self.now,
            log=log or (lambda seen: None),
        )


def drawn(probed: Probed) -> list[tuple[int, Any]]:
    return [(item.t_ns // MS, item.commands['arm']) for item in probed.commanded]


def test_r89_it_asks_once_waits_the_round_trip_and_walks_along_the_instants() -> None:
    endpoint = Endpoint(rows(1, 2, 3))
    probed = endpoint.probed()
    assert len(endpoint.seen) == 1
    assert probed.round_trip_ns == 30 * MS
    assert drawn(probed) == [(30, 1), (130, 2), (230, 3)]
    assert probed.finding == ''


def test_r89_finding_23_the_last_row_is_drawn_also_where_it_would_ask_before_it() -> None:
    lead = Lead(cap_ns=10**10, margin_ns=0, fixed_ns=250 * MS)
    assert drawn(Endpoint(rows(1, 2, 3)).probed(Layers(player(lead)))) == [
        (30, 1),
        (130, 2),
        (230, 3),
    ]


def test_r89_the_policys_end_ends_the_walk() -> None:
    probed = Endpoint(Chunk.at_rate(rows(1, 2), 10, 'done')).probed()
    assert drawn(probed) == [(30, 1), (130, 2)]


class _Greeting(SessionLayer):
    """Commands something in the first call."""

    name = 'greeting'

    def _over(self, inner: Session) -> Session:
        class Greeting(PassedOn):
            def __call__(self, observation: Observation, t: int) -> Any:
                commands, resume = super().__call__(observation, t)
                return ({'arm': 'hello'} if t == 0 else commands), resume

        return Greeting(inner)


def test_r90_finding_25_what_the_first_call_commanded_counts() -> None:
    probed = Endpoint(rows(1)).probed(Layers(_Greeting(), player()))
    assert drawn(probed) == [(0, 'hello'), (30, 1)]


def test_r91_finding_11_the_endpoints_own_time_out_is_the_only_one() -> None:
    endpoint = Endpoint(TimeoutError('no answer came within 90 s'), takes_ns=90_000 * MS)
    with pytest.raises(TimeoutError, match='within 90 s'):
        endpoint.probed()
    slow = Endpoint(rows(1), takes_ns=3_600_000 * MS)
    assert drawn(slow.probed()) == [(3_600_000, 1)]


LIMITS = Limits(('j',), *(np.array([x]) for x in (-1.0, 1.0, 1.0, 1.0)))


@pytest.mark.parametrize(
    ('answer', 'layers', 'finding'),
    [
        (None, Layers(player()), 'the endpoint answered nothing new'),
        ([], Layers(player()), 'the endpoint answered a chunk without rows'),
        (
            rows(np.array([7.0])),
            Layers(player(guard=Guard({'arm': LIMITS}, 100 * MS))),
            'no row of the chunk was played: row 0 (from 0)',
        ),
    ],
)
def test_r92_an_endpoint_that_commands_nothing_is_reported(
    answer: Any, layers: Layers, finding: str
) -> None:
    probed = Endpoint(answer).probed(layers)
    assert probed.commanded == ()
    assert probed.series() == {}
    assert probed.finding.startswith(finding)


def test_r92_an_endpoint_that_is_never_asked_is_reported() -> None:
    layers = Layers(StopOnFault(), player())
    probed = Endpoint(rows(1)).probed(layers, {'status': 'error'})
    assert probed.finding.startswith('the endpoint was not asked')


def test_r93_the_observation_is_frozen_and_logged_once() -> None:
    observation: Mapping[str, Any] = {'state': 1}
    logged: list[Observation] = []
    Endpoint(rows(*range(50))).probed(observation=observation, log=logged.append)
    assert len(logged) == 1
    assert logged[0] is observation


class _Closing(SessionLayer):
    """Notes when the session closes."""

    name = 'closing'

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def _over(self, inner: Session) -> Session:
        events = self.events

        class Closing(PassedOn):
            def close(self) -> None:
                events.append('session closed')
                super().close()

        return Closing(inner)


def test_r60_r94_everything_is_closed_in_order_before_it_is_reported() -> None:
    endpoint = Endpoint(rows(1))
    endpoint.probed(Layers(_Closing(endpoint.events), player()))
    assert endpoint.events == ['open', 'session closed', 'endpoint closed']


def test_r94_everything_is_closed_also_where_the_endpoint_fails() -> None:
    endpoint = Endpoint(ConnectionError('gone'))
    with pytest.raises(ConnectionError):
        endpoint.probed(Layers(_Closing(endpoint.events), player()))
    assert endpoint.events == ['open', 'session closed', 'endpoint closed']


def test_r9_finding_13_a_pipeline_without_a_player_opens_nothing() -> None:
    endpoint = Endpoint(rows(1))
    units = Units(['arm'], policy='deg', robot='rad')
    with pytest.raises(NotASession, match='put a player above'):
        endpoint.probed(Layers(units))
    assert endpoint.events == []


def test_what_it_found_is_data_to_draw_by_channel() -> None:
    answer = [{'arm': [1, 2]}, {'arm': [3, 4], 'grip': 0.5}]
    series = Endpoint(answer).probed().series()
    assert sorted(series) == ['arm', 'grip']
    times, values = series['arm']
    assert times.tolist() == pytest.approx([0.03, 0.13])
    assert values.tolist() == [[1, 2], [3, 4]]
    assert series['grip'][1].shape == (1, 1)
