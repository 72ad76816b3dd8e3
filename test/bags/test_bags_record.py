"""Exact records: what a run's record holds, and that it replays to the same setpoints."""

from __future__ import annotations

from dataclasses import replace
import json
from pathlib import Path
from typing import Any

from mcap.reader import make_reader
from mcap.writer import Writer
import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from seq_harness.bags import charged, replay, ReplayOptions, Run
from seq_harness.bags.exact import replay_exact
from seq_harness.bags.record_reading import read_record, RunRecord
from seq_harness.bags.records import BagError
from seq_harness.cli.exact import tell_exact
from seq_harness.contract import Actions
from support.recordings import (
    Follow,
    motion,
    MS,
    parameters,
    START_NS,
    write,
)

COST = charged(0.12)


class Failing(Follow):
    """Fails at its third question."""

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk, or fail."""
        if len(self.seen) == 2:
            raise ValueError('no gripper in sight')
        return super().infer(inputs)


class Ending(Follow):
    """Ends the episode with its third chunk."""

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer one chunk."""
        answer = super().infer(inputs)
        return {**answer, 'end': 'grasped'} if len(self.seen) == 3 else answer


class Windowed(Follow):
    """Reads past observations, so that the stream carries them."""

    actions = Actions(key='actions', hz=20.0, open_loop_horizon=8)

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer rows with noise that no other run has."""
        answer = super().infer(inputs)
        noise = np.random.default_rng().normal(0.0, 1e-4, (8, 2))
        return {'actions': answer['actions'] + noise.astype(np.float32)}


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp('bag') / 'motion', motion(camera_hz=20))


def _recorded(bag: Path, to: Path, policy: Any = None, **changes: Any) -> tuple[Run, RunRecord]:
    options = ReplayOptions(cost=COST, record=to / 'run.mcap')
    run = replay(bag, parameters(camera=True, **changes), policy or Follow(), options)
    return run, read_record(to / 'run.mcap')


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'asking': 'drain', 'handoff': 'arrival'},
        {'asking': 'threshold', 'handoff': 'observation'},
        {'interpolation': 'cubic', 'output_hz': 100.0},
        {'channels__arm__type': 'joint_state'},
        {'channels__arm__type': 'joint_trajectory', 'channels__arm__horizon': 'chunk'},
        {'channels__arm__kind': 'velocity', 'channels__arm__controller_timeout_s': 0.1,
         'channels__arm__type': 'joint_jog', 'channels__arm__state': ''},
        {'channels__arm__max_tracking_error': 0.0001},
        {'inputs__state__on_stale': 'hold', 'inputs__state__hold_s': 1.0},
        {'episode_s': 0.7},
        {'record_images': 'all'},
        {'record_images': 'none'},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_replays_to_the_same_setpoints_without_a_policy(
    bag: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    run, record = _recorded(bag, tmp_path, Windowed(), **changes)
    exact = replay_exact(record)
    assert exact.difference is None
    assert exact.setpoints == len(record.setpoints) > 3
    assert record.end is not None
    assert exact.hash == exact.recorded_hash == record.end.hash
    assert exact.reason == run.reason


@pytest.mark.parametrize(
    ('policy', 'reason'), [(Failing(), 'policy_error: '), (Ending(), 'policy:grasped')]
)
def test_what_ends_an_episode_ends_its_replay(
    bag: Path, tmp_path: Path, policy: Any, reason: str
) -> None:
    run, record = _recorded(bag, tmp_path, policy)
    assert run.reason.startswith(reason)
    exact = replay_exact(record)
    assert exact.difference is None
    assert exact.reason == run.reason
    assert [change.state for change in record.episodes][-1] == 'idle'
    assert record.episodes[-1].reason == run.reason
    assert record.episodes[-1].figures['rounds'] == run.figures['rounds']


def test_two_runs_with_different_answers_have_different_hashes(bag: Path, tmp_path: Path) -> None:
    hashes = set()
    for name in ('a', 'b'):
        _, record = _recorded(bag, tmp_path / name, Windowed())
        assert record.end is not None
        hashes.add(record.end.hash)
    assert len(hashes) == 2


def test_a_record_tells_what_was_observed_asked_answered_and_sent(
    bag: Path, tmp_path: Path
) -> None:
    policy = Follow()
    run, record = _recorded(bag, tmp_path, policy)
    assert record.broken == ''
    assert record.begin.images == 'acts'
    assert [request.name for request in record.requests] == ['start', 'stop']
    answers = {answer.act: answer for answer in record.answers}
    assert [ask.act for ask in record.asks] == list(range(len(run.acts)))
    for ask, act, seen in zip(record.asks, run.acts, policy.seen[1:], strict=True):
        assert ask.t_ns == act.asked_ns
        answer = answers[ask.act]
        assert answer.step is not None
        sent = {item.key: item for item in answer.sent}
        values = [np.float32(value) for value in sent['state'].value['values']]
        np.testing.assert_array_equal(values, seen['state'])
        assert answer.chunk is not None
        assert len(answer.chunk['rows']) == 8
    frames = [(act, key) for act, key, data in record.frames() if data[:2] == b'\xff\xd8']
    assert frames == [(act, 'front') for act in range(len(record.asks))]
    played = run.setpoints['arm']
    assert [item.sent_ns for item in record.setpoints] == list(played.t_ns)
    np.testing.assert_array_equal([item.values for item in record.setpoints], played.values)


def test_ros_messages_of_a_record_lie_on_topics_of_their_own(bag: Path, tmp_path: Path) -> None:
    """Any reader of MCAP decodes them by the definitions in the file."""
    _, record = _recorded(bag, tmp_path, record_images='all')
    kinds = {topic: held[0].type for topic, held in record.payloads.items()}
    assert kinds == {
        'input/state': 'sensor_msgs/msg/JointState',
        'input/front': 'sensor_msgs/msg/CompressedImage',
        'frame/front': 'sensor_msgs/msg/CompressedImage',
        'setpoint/arm': 'std_msgs/msg/Float64MultiArray',
    }
    store = get_typestore(Stores.EMPTY)
    values = []
    with record.path.open('rb') as stream:
        for schema, channel, message in make_reader(stream).iter_messages(['setpoint/arm']):
            assert schema is not None
            assert (schema.encoding, channel.message_encoding) == ('ros2msg', 'cdr')
            if schema.name not in store.fielddefs:
                store.register(get_types_from_msg(schema.data.decode(), schema.name))
            decoded: Any = store.deserialize_cdr(message.data, schema.name)
            values.append(list(decoded.data))
    assert values == [item.values for item in record.setpoints]


def test_json_of_a_record_carries_its_schema(bag: Path, tmp_path: Path) -> None:
    _, record = _recorded(bag, tmp_path)
    with record.path.open('rb') as stream:
        for schema, channel, message in make_reader(stream).iter_messages(['record/round']):
            assert schema is not None
            assert (schema.encoding, channel.message_encoding) == ('jsonschema', 'json')
            assert set(json.loads(message.data)) == set(json.loads(schema.data)['properties'])


def test_a_setpoint_of_another_value_is_the_first_difference(bag: Path, tmp_path: Path) -> None:
    _, record = _recorded(bag, tmp_path)
    changed = record.setpoints[5]
    payloads = record.payloads['setpoint/arm']
    last = payloads[5].data[-1] ^ 1
    payloads[5] = replace(payloads[5], data=payloads[5].data[:-1] + bytes([last]))
    difference = replay_exact(record).difference
    assert difference is not None
    assert (difference.round, difference.topic) == (changed.round, 'setpoint/arm')
    assert difference.expected != difference.came
    assert str(changed.due_ns) in difference.expected


def test_a_setpoint_at_another_instant_is_a_difference(bag: Path, tmp_path: Path) -> None:
    _, record = _recorded(bag, tmp_path)
    moved = record.setpoints[7]
    record.setpoints[7] = replace(moved, due_ns=(moved.due_ns or 0) + 1)
    difference = replay_exact(record).difference
    assert difference is not None
    assert (difference.round, difference.topic) == (moved.round, 'setpoint/arm')


def test_a_round_that_wants_to_come_back_at_another_instant_is_a_difference(
    bag: Path, tmp_path: Path
) -> None:
    _, record = _recorded(bag, tmp_path)
    held = record.rounds[20]
    record.rounds[20] = replace(held, resume_ns=(held.resume_ns or 0) + 1)
    difference = replay_exact(record).difference
    assert difference is not None
    assert (difference.round, difference.topic) == (20, 'record/round')


@pytest.mark.parametrize(
    ('change', 'topic'),
    [({'seam_rows': 0}, 'setpoint/arm'), ({'asking': 'drain'}, 'record/round')],
)
def test_code_that_plays_otherwise_is_told_where(
    bag: Path, tmp_path: Path, change: dict[str, Any], topic: str
) -> None:
    """Other parameters stand for other code."""
    _, record = _recorded(bag, tmp_path, Windowed())
    settings = record.begin.settings
    settings['general'] = {**settings['general'], **change}
    exact = replay_exact(record)
    assert exact.difference is not None
    assert exact.difference.topic == topic
    assert exact.rounds < len(record.rounds)


def test_a_file_that_breaks_off_is_replayed_up_to_there(tmp_path: Path) -> None:
    bag = write(tmp_path / 'long', motion(seconds=10.0, camera_hz=20))
    _, record = _recorded(bag, tmp_path, record_images='all')
    data = record.path.read_bytes()
    cut = tmp_path / 'cut.mcap'
    cut.write_bytes(data[: len(data) // 2])
    part = read_record(cut)
    assert part.end is None
    assert part.broken == f'the file ends after {len(data) // 2} bytes, before it was closed'
    assert not part.damaged
    exact = replay_exact(part)
    assert exact.difference is None
    assert exact.broken == part.broken
    assert exact.hash == exact.recorded_hash
    assert 10 < exact.setpoints < len(record.setpoints)


def test_a_damaged_record_is_told_from_one_that_ends_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = write(tmp_path / 'long', motion(seconds=10.0, camera_hz=20))
    _, record = _recorded(bag, tmp_path, record_images='all')
    data = bytearray(record.path.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 5000, 500):
        data[at] ^= 4  # some lie within chunks, and not in their indexes, which are not read
    (tmp_path / 'damaged.mcap').write_bytes(data)
    part = read_record(tmp_path / 'damaged.mcap')
    assert part.damaged
    assert 'damaged before byte' in part.broken
    assert 10 < len(part.rounds) < len(record.rounds)
    assert tell_exact(part.path, None) == 1
    assert 'damaged before byte' in capsys.readouterr().err


def test_a_record_without_a_whole_round_says_why(bag: Path, tmp_path: Path) -> None:
    _, record = _recorded(bag, tmp_path)
    record.rounds.clear()
    record.broken = 'damaged before byte 900'
    with pytest.raises(BagError, match=r'no round .*: damaged before byte 900'):
        replay_exact(record)


def test_a_record_with_a_gap_is_refused_by_its_place(bag: Path, tmp_path: Path) -> None:
    _, record = _recorded(bag, tmp_path)
    del record.rounds[9]
    with pytest.raises(BagError, match='lacks round 9'):
        replay_exact(record)


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'format': 99}, 'has the format 99; this version reads up to 1: update it'),
        ({'format': None}, 'holds what this version does not read: Begin: format: '),
    ],
)
def test_a_record_of_another_version_is_refused_in_one_line(
    bag: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    _, record = _recorded(bag, tmp_path)
    other = _begun_otherwise(record.path, tmp_path / 'other.mcap', change)
    with pytest.raises(BagError) as caught:
        read_record(other)
    assert said in str(caught.value)
    assert '\n' not in str(caught.value)


def _begun_otherwise(path: Path, to: Path, change: dict[str, Any]) -> Path:
    """Write the begin of a record with some fields changed."""
    with path.open('rb') as stream:
        schema, channel, message = next(make_reader(stream).iter_messages(['record/begin']))
    assert schema is not None
    begin = {**json.loads(message.data), **change}
    with to.open('wb') as file:
        writer = Writer(file)
        writer.start()
        named = writer.register_schema(schema.name, schema.encoding, schema.data)
        on = writer.register_channel(channel.topic, channel.message_encoding, named)
        writer.add_message(on, message.log_time, json.dumps(begin).encode(), message.log_time)
        writer.finish()  # type: ignore[no-untyped-call]
    return to


def test_what_is_no_record_is_refused(bag: Path, tmp_path: Path) -> None:
    for path in (bag, next(bag.glob('*.mcap')), tmp_path / 'absent.mcap'):
        with pytest.raises(BagError, match=path.name):
            read_record(path)


def test_a_record_taken_for_a_rosbag2_is_told_how_to_be_replayed(
    bag: Path, tmp_path: Path
) -> None:
    _, record = _recorded(bag, tmp_path)
    with pytest.raises(BagError, match=r'an exact record is replayed with --exact\.$'):
        replay(record.path, parameters(camera=True), Follow())


def test_a_record_never_replaces_another(bag: Path, tmp_path: Path) -> None:
    first, second = (_recorded(bag, tmp_path)[1] for _ in range(2))
    assert first.begin == second.begin
    assert sorted(path.name for path in tmp_path.iterdir()) == ['run-2.mcap', 'run.mcap']


def test_a_password_in_an_address_is_not_recorded(bag: Path, tmp_path: Path) -> None:
    url = 'ws://robot:secret@127.0.0.1:9'
    _, record = _recorded(bag, tmp_path, worker_url=url)
    assert record.begin.settings['general']['worker_url'] == 'ws://127.0.0.1:9'
    assert b'secret' not in record.path.read_bytes()
    assert 'secret' not in str(record.begin)


def test_the_same_setpoints_go_out_recorded_or_not(bag: Path, tmp_path: Path) -> None:
    plain = replay(bag, parameters(camera=True), Follow(), ReplayOptions(cost=COST))
    run, _ = _recorded(bag, tmp_path)
    assert run.hash == plain.hash
    assert run.start_ns == START_NS
    assert run.end_ns < START_NS + 2000 * MS
