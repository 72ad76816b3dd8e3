"""Reports on exact records: acts, chunks, joins, lateness, ages, and what was amiss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seq_harness.bags import charged, replay, ReplayOptions, Run
from seq_harness.bags.record_reading import read_record
from seq_harness.bags.report.data import EventKind, ReportData
from seq_harness.bags.report.figures import figures
from seq_harness.bags.report.from_record import data_of
from seq_harness.bags.report.moments import moments
from seq_harness.bags.report.page import page
from seq_harness.bags.report.sources import is_record, report_data
from support.recordings import Follow, JOINTS, motion, parameters, write
from support.reports import parsed

COST_S = 0.08


class Wild(Follow):
    """Follow, but for one chunk beyond all limits, and one with a step in it."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = -1  # the first is the warm-up

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        answer = super().infer(inputs)
        if self._asked == 4:
            answer['actions'] = answer['actions'] + 5.0
        if self._asked == 8:
            answer['actions'][4:] += 0.1
        self._asked += 1
        return answer


class Recorded:
    """A replay of four seconds, and the record of it."""

    def __init__(self, folder: Path) -> None:
        bag = write(folder / 'bag', motion(4.0, 100, camera_hz=20))
        self.file = folder / 'run.mcap'
        self.run: Run = replay(
            bag,
            parameters(camera=True, instruction='pick it up'),
            Wild(),
            ReplayOptions(record=self.file, cost=charged(COST_S)),
        )
        self.data = report_data(self.file)


@pytest.fixture(scope='module')
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp('recorded'))


@pytest.fixture
def data(recorded: Recorded) -> ReportData:
    return recorded.data


def texts(data: ReportData, kind: EventKind) -> list[str]:
    return [event.text for event in data.events if event.kind is kind]


def test_a_record_is_told_from_a_recording(recorded: Recorded) -> None:
    assert is_record(recorded.file)
    assert not is_record(next((recorded.file.parent / 'bag').glob('*.mcap')))


def test_every_setpoint_is_there_with_its_lateness(recorded: Recorded) -> None:
    (channel,) = recorded.data.channels
    sent = recorded.run.setpoints['arm']
    assert channel.name == 'arm'
    assert channel.commanded.names == JOINTS
    assert channel.commanded.values == pytest.approx(sent.values)
    assert np.abs(channel.late_ms).max() < 60.0
    assert len(channel.late_ms) == len(sent)


def test_what_was_measured_stands_beside_it(data: ReportData) -> None:
    measured = data.channels[0].measured
    assert measured is not None
    assert measured.names == JOINTS
    assert measured.values[:, 0] == pytest.approx(0.1 * np.sin(measured.t_s + 0.003), abs=0.002)


def test_every_act_is_there_and_how_long_its_answer_waited_to_play(data: ReportData) -> None:
    assert [act.name.split(',')[0] for act in data.acts[:3]] == ['act 0', 'act 1', 'act 2']
    waited = [act.parts_ms.get('until its first setpoint') for act in data.acts]
    assert max(each for each in waited if each is not None) >= 1e3 * COST_S
    assert not [act for act in data.acts if act.outcome]


def test_network_and_inference_are_apart_where_the_worker_says_its_part(
    recorded: Recorded,
) -> None:
    whole = read_record(recorded.file)
    answer = whole.answers[0]
    ask = next(each for each in whole.asks if each.act == answer.act)
    told = replace(
        answer,
        began_ns=ask.t_ns + 2_000_000,
        ended_ns=ask.t_ns + 52_000_000,
        handler_ms=40.0,
    )
    (act, *_) = data_of(replace(whole, answers=[told])).acts
    parts = {name: act.parts_ms[name] for name in ('queue', 'network', 'inference')}
    assert parts == pytest.approx({'queue': 2.0, 'network': 10.0, 'inference': 40.0})
    assert act.answered_s == pytest.approx(act.asked_s + 0.052)


def test_an_act_that_a_round_ahead_of_its_instant_asked_waited_for_nothing(
    recorded: Recorded,
) -> None:
    whole = read_record(recorded.file)
    ask = whole.asks[0]
    answer = next(each for each in whole.answers if each.act == ask.act)
    early = replace(answer, began_ns=ask.t_ns - 200_000)
    (act, *_) = data_of(replace(whole, answers=[early])).acts
    assert act.parts_ms['queue'] == 0.0


def test_every_chunk_is_drawn_from_the_instant_of_its_observation(data: ReportData) -> None:
    asked_s = {act.name.split(',')[0]: act.asked_s for act in data.acts}
    assert len(data.predictions) == len(data.acts)
    for each in data.predictions:
        assert each.t_s[0] == pytest.approx(asked_s[each.name])
        assert each.values.shape == (8, len(JOINTS))


def test_a_join_is_where_rows_begin_to_answer_another_act(data: ReportData) -> None:
    joins = texts(data, EventKind.JOIN)
    assert joins[0] == 'the chunk of act 0 takes over'
    assert 'the chunk of act 4 takes over' not in joins, 'it was refused'
    assert len(joins) == len(set(joins))


def test_a_chunk_beyond_limits_is_told_with_row_joint_and_limit(data: ReportData) -> None:
    told = texts(data, EventKind.GUARD)
    assert any('act 4: 8 rows outside limits, the first is row 0: j1 =' in each for each in told)
    assert any('allowed -1 to 1 (guard_limits: refuse)' in each for each in told)
    assert any('no row of act 4 was played' in each for each in told)


def test_the_jump_of_a_chunk_comes_first(data: ReportData) -> None:
    first = moments(data)[0]
    wild = next(each for each in data.predictions if each.name == 'act 8')
    assert wild.t_s[0] < first.at_s < wild.t_s[-1] + 2 * COST_S


def test_ages_of_each_input_are_those_that_rounds_saw(data: ReportData) -> None:
    assert data.ages_ms is not None
    assert set(data.ages_ms.names) == {'state', 'front'}
    front = data.ages_ms.values[:, data.ages_ms.names.index('front')]
    assert 4.0 < np.nanmedian(front) < 56.0


def test_the_frames_are_those_that_acts_sent(data: ReportData) -> None:
    assert {frame.camera for frame in data.frames} == {'front'}
    assert len(data.frames) == len(data.acts)
    assert data.frames[0].data.startswith(b'\xff\xd8')


def test_the_end_its_reason_and_the_figures_are_told(recorded: Recorded) -> None:
    data = recorded.data
    assert data.reason == 'bag_ended'
    assert data.figures['rows']['emitted'] == recorded.run.figures['rows']['emitted']
    assert data.facts['instruction'] == 'pick it up'
    assert data.facts['hash of all setpoints'] == recorded.run.hash
    found = {each.name: each.value for each in figures(data)}
    assert found['arm: setpoints'] == len(recorded.run.setpoints['arm'])


def test_a_record_that_breaks_off_is_shown_until_there(recorded: Recorded, tmp_path: Path) -> None:
    held = recorded.file.read_bytes()
    cut = tmp_path / 'cut.mcap'
    cut.write_bytes(held[: len(held) * 6 // 10])
    data = report_data(cut)
    assert 'The record breaks off after' in data.missing[0]
    assert 0 < len(data.channels[0].commanded) <= len(recorded.data.channels[0].commanded)
    assert data.missing[0] in parsed(page([data])).text


def test_a_record_of_a_node_that_never_ran_says_so(recorded: Recorded) -> None:
    whole = read_record(recorded.file)
    nothing: dict[str, Any] = {
        name: [] for name in ('episodes', 'samples', 'rounds', 'asks', 'answers', 'setpoints')
    }
    data = data_of(replace(whole, payloads={}, requests=[], end=None, broken='cut', **nothing))
    text = parsed(page([data])).text
    assert 'No setpoint was sent.' in text
    assert 'The policy was not asked.' in text
    assert 'breaks off' in text
    assert moments(data) == ()


def test_a_new_instruction_and_a_full_stream_are_events(recorded: Recorded) -> None:
    whole = read_record(recorded.file)
    rounds = list(whole.rounds)
    rounds[40] = replace(rounds[40], reads={'instruction': [(0, 'put it down')]})
    rounds[60] = replace(rounds[60], reads={'observe': [(0, 'full')]})
    rounds[61] = replace(rounds[61], reads={'observe': [(0, 'full')]})
    data = data_of(replace(whole, rounds=rounds))
    assert texts(data, EventKind.INSTRUCTION) == ['pick it up', 'put it down']
    assert texts(data, EventKind.FAULT) == ['the observation stream is full: steps wait']


def test_what_the_disk_could_not_take_is_named(recorded: Recorded) -> None:
    whole = read_record(recorded.file)
    assert whole.end is not None
    lossy = replace(whole, end=replace(whole.end, dropped={'frame/front': 7}))
    assert 'The disk was too slow: 7 of frame/front were not written.' in data_of(lossy).missing


def test_two_records_stand_side_by_side(recorded: Recorded) -> None:
    seen = parsed(page([recorded.data, recorded.data]))
    assert len(seen.traces('A: commanded')) == len(seen.traces('B: commanded')) == len(JOINTS)
