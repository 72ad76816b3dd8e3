"""Reports on plain recordings: whatever their topics tell, and what they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from seq_harness.bags.params import settings_from
from seq_harness.bags.records import BagError
from seq_harness.bags.report.data import EventKind, ReportData
from seq_harness.bags.report.page import page
from seq_harness.bags.report.sources import report_data
from support.recordings import frame, JOINTS, Message, motion, MS, parameters, START_NS, write
from support.reports import parsed
from support.telling import command, diagnosed, said, trajectory

ROWS = [[0.01 * number, -0.01 * number] for number in range(8)]
RECORDING = Path(__file__).parent / 'data' / 'handguided_wristcam'


def of_a_run() -> list[Message]:
    """Return what is recorded of a harness with one channel for two seconds."""
    made = motion(2.0, 100, camera_hz=10)
    made += [command(START_NS + (10 + 50 * i) * MS, ROWS[i % 8]) for i in range(36)]
    made += [
        trajectory(START_NS + 400 * i * MS, ROWS, frame_id=f'step-{8 * i}') for i in range(1, 5)
    ]
    running = {'state': 'running', 'episode': 3, 'reason': ''}
    stream = {'policy': {'stream': {'backlog': 2}}}
    refused = {'chunks': {'refused': {'limits': 1}, 'last_refusal': 'j1 is 5, outside [-1, 1]'}}
    ended = {'state': 'idle', 'episode': 3, 'reason': 'stop', 'starved_s': 0.5, **refused}
    made += [
        said(START_NS + 5 * MS, {'state': 'idle', 'episode': 2, 'reason': 'deadline'}),
        said(START_NS + 10 * MS, {**running, **stream}),
        said(START_NS + 900 * MS, 'pick <b>up</b> the cup', '/harness/instruction'),
        said(START_NS + 1_500 * MS, {**running, **refused}),
        said(START_NS + 1_900 * MS, ended),
        diagnosed(START_NS + 1_000 * MS, 0, 'connected'),
        diagnosed(START_NS + 1_200 * MS, 2, 'no worker is connected'),
        diagnosed(START_NS + 1_300 * MS, 0, 'connected'),
    ]
    return sorted(made, key=lambda message: message[2])


@pytest.fixture(params=[StoragePlugin.MCAP, StoragePlugin.SQLITE3], ids=['mcap', 'sqlite3'])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> ReportData:
    return report_data(write(tmp_path / 'run', of_a_run(), request.param))


def texts(data: ReportData, kind: EventKind) -> list[str]:
    return [event.text for event in data.events if event.kind is kind]


def test_the_chunks_name_the_joints_of_the_only_channel(run: ReportData) -> None:
    (channel,) = run.channels
    assert channel.name == '/arm/commands'
    assert channel.commanded.names == JOINTS
    assert len(channel.commanded) == 36
    assert channel.measured is not None
    assert channel.measured.names == JOINTS
    assert len(channel.measured) == 200


def test_times_count_from_the_begin_of_the_episode(run: ReportData) -> None:
    assert run.start_ns == START_NS + 10 * MS
    assert run.channels[0].commanded.t_s[0] == 0.0


def test_every_chunk_is_drawn_from_where_it_came(run: ReportData) -> None:
    assert [each.name for each in run.predictions] == [
        f'the chunk of step-{step}' for step in (8, 16, 24, 32)
    ]
    first = run.predictions[0]
    assert first.t_s == pytest.approx(0.39 + np.arange(8) / 20)
    assert first.values == pytest.approx(np.array(ROWS))
    assert texts(run, EventKind.JOIN)[0] == 'the chunk of step-8 came'


def test_what_the_harness_said_becomes_events(run: ReportData) -> None:
    assert run.reason == 'stop'
    assert texts(run, EventKind.STATE) == [
        'episode 2 ended: deadline',
        'episode 3: running',
        'episode 3 ended: stop',
    ]
    assert texts(run, EventKind.GUARD) == [
        'chunks refused (limits): 1 more: j1 is 5, outside [-1, 1]',
    ]
    assert texts(run, EventKind.STARVED) == ['without rows for 0.500 s since the last report']
    assert texts(run, EventKind.INSTRUCTION) == ['pick <b>up</b> the cup']
    assert texts(run, EventKind.FAULT) == [
        'harness: worker: ERROR: no worker is connected',
        'harness: worker: OK: connected',
    ]


def test_backlog_and_figures_are_those_that_it_told(run: ReportData) -> None:
    assert run.backlog is not None
    assert run.backlog.values.tolist() == [[2.0]]
    assert run.figures['starved_s'] == 0.5


def test_each_chunk_has_the_frame_that_was_newest_then(run: ReportData) -> None:
    assert [each.camera for each in run.frames] == ['/front/compressed'] * 4
    for shown, chunk in zip(run.frames, run.predictions, strict=True):
        assert 0.0 <= chunk.t_s[0] - shown.at_s < 0.1
        assert shown.data.startswith(b'\xff\xd8')


def test_what_a_plain_recording_cannot_tell_is_named(run: ReportData) -> None:
    assert any('neither when setpoints were due' in each for each in run.missing)
    assert run.acts == ()
    assert run.ages_ms is None


def test_it_becomes_a_page(run: ReportData) -> None:
    seen = parsed(page([run]))
    assert 'no worker is connected' in seen.text
    assert 'pick <b>up</b> the cup' in seen.text
    assert len(seen.traces('commanded')) == 2


def test_without_names_values_are_numbered_and_the_parameter_file_is_asked_for(
    tmp_path: Path,
) -> None:
    bare = [each for each in of_a_run() if each[0] != '/harness/chunk']
    bag = write(tmp_path / 'bare', bare)
    data = report_data(bag)
    assert data.channels[0].commanded.names == ('value 0', 'value 1')
    assert data.channels[0].measured is None
    assert any('name a parameter file' in each for each in data.missing)
    assert [lines.names for lines in data.states] == [JOINTS]


def test_parameters_name_the_joints_and_previews(tmp_path: Path) -> None:
    topic = '/harness/preview/commands'
    made = [command(START_NS + 50 * i * MS, ROWS[i % 8], topic) for i in range(20)]
    bag = write(tmp_path / 'preview', sorted([*motion(1.0), *made], key=lambda each: each[2]))
    data = report_data(bag, settings_from(parameters()))
    (channel,) = data.channels
    assert channel.name == 'arm (preview)'
    assert channel.commanded.names == JOINTS
    assert channel.measured is not None


def test_a_trajectory_rules_until_the_next_takes_its_place(tmp_path: Path) -> None:
    topic = '/joint_trajectory_controller/joint_trajectory'
    made = [
        trajectory(START_NS, ROWS, topic=topic, hz=10.0),
        trajectory(START_NS + 250 * MS, [[1.0, 2.0]], topic=topic, joints=JOINTS[::-1]),
    ]
    data = report_data(write(tmp_path / 'plan', [*motion(0.01), *made]))
    (channel,) = data.channels
    assert channel.commanded.t_s == pytest.approx([0.0, 0.1, 0.2, 0.25])
    assert channel.commanded.names == JOINTS
    assert channel.commanded.values[-1] == pytest.approx([2.0, 1.0])
    assert [len(each.t_s) for each in data.predictions] == [8]


def test_a_recording_of_an_arm_and_a_camera_alone_is_a_partial_report(tmp_path: Path) -> None:
    data = report_data(write(tmp_path / 'arm', motion(1.0, 100, camera_hz=5)))
    assert data.channels == []
    assert [lines.names for lines in data.states] == [JOINTS]
    assert 'No topic of commands was recorded: only what was measured is shown.' in data.missing
    assert len(data.frames) == 5
    assert 'j1' in str(parsed(page([data])).data['figure']['layout'])


def test_a_recording_that_breaks_off_is_shown_until_there(tmp_path: Path) -> None:
    whole = next(write(tmp_path / 'whole', of_a_run()).glob('*.mcap'))
    cut = tmp_path / 'cut.mcap'
    # The footer and the index are missing, as after a power cut.
    cut.write_bytes(whole.read_bytes()[:-300])
    data = report_data(cut)
    assert any('breaks off' in each for each in data.missing)
    assert len(data.channels[0].commanded) > 0


def test_an_empty_recording_says_that_it_is_empty(tmp_path: Path) -> None:
    data = report_data(write(tmp_path / 'empty', []))
    assert 'The recording is empty.' in data.missing
    assert 'The recording is empty.' in parsed(page([data])).text


@pytest.mark.parametrize('content', [b'', b'no bag at all'])
def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / 'odd.mcap'
    file.write_bytes(content)
    with pytest.raises(BagError, match=r'odd\.mcap'):
        report_data(file)


def test_what_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BagError, match='nothing is there'):
        report_data(tmp_path / 'nowhere')


def test_a_picture_that_cannot_be_read_costs_only_the_pictures(tmp_path: Path) -> None:
    odd = frame(START_NS + 200 * MS, 10)
    odd[3].data = np.frombuffer(b'no picture', np.uint8)
    data = report_data(write(tmp_path / 'odd', [*motion(0.1), odd]))
    assert any('Frames of /front/compressed are missing' in each for each in data.missing)
    assert data.states


def test_a_real_recording_has_its_chunks_and_pictures() -> None:
    data = report_data(RECORDING)
    assert data.states or data.channels
    assert data.length_s > 0
