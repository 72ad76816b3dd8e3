"""What is wrong with a recording is named, with its place; the rest is used, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from seq_harness.bags import BagFault, Fault, FaultKind, OnFault, replay, ReplayOptions, Run
from seq_harness.bags.records import BagError
from support.recordings import (
    Follow,
    frame,
    JOINT_STATE,
    joint_state,
    Message,
    motion,
    MS,
    parameters,
    S,
    START_NS,
    STORE,
    write,
)

REFUSE = ReplayOptions(on_fault=OnFault.REFUSE)


class Away(Follow):
    """Lead away from the state that was seen, and back, whatever the arm does."""

    def infer(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Answer eight rows, 0.2 rad away at their end and then there."""
        super().infer(inputs)
        warming_up = 2
        rows = np.linspace(0.1 if len(self.seen) <= warming_up else 0.3, 0.3, 8)
        return {'actions': np.stack([rows, 0 * rows], axis=1).astype(np.float32)}


def _run(path: Path, messages: Sequence[Message], camera: bool = False) -> Run:
    return replay(write(path / 'bag', messages), parameters(camera), Follow())


def _only(run: Run) -> Fault:
    (fault,) = run.faults
    return fault


def test_a_sound_recording_has_none(tmp_path: Path) -> None:
    bag = write(tmp_path / 'bag', motion(camera_hz=30))
    assert replay(bag, parameters(camera=True), Follow(), REFUSE).faults == ()


def test_a_missing_topic_is_named_beside_those_that_are_there(tmp_path: Path) -> None:
    run = _run(tmp_path, motion(), camera=True)
    fault = _only(run)
    assert (fault.kind, fault.first.topic) == (FaultKind.MISSING_TOPIC, '/front/compressed')
    assert '/joint_states (sensor_msgs/msg/JointState)' in fault.text
    assert run.reason == 'inputs_missing: front'


def test_a_wrong_type_is_named(tmp_path: Path) -> None:
    text = STORE.types['std_msgs/msg/String'](data='no picture')
    wrong = [('/front/compressed', 'std_msgs/msg/String', START_NS + 7 * MS, text)]
    fault = _only(_run(tmp_path, motion() + wrong, camera=True))
    assert fault.kind is FaultKind.WRONG_TYPE
    assert fault.first.log_ns == START_NS + 7 * MS
    assert fault.text == 'sensor_msgs/msg/CompressedImage was expected, got std_msgs/msg/String'


def test_an_unknown_encoding_is_named_and_does_not_refresh_its_input(tmp_path: Path) -> None:
    messages = motion(camera_hz=30)
    topic, kind, log_ns, good = frame(START_NS + 900 * MS, 1)
    bad = STORE.types[kind](header=good.header, format='av1', data=good.data[:40])
    run = _run(tmp_path, sorted([*messages, (topic, kind, log_ns, bad)], key=_time), camera=True)
    fault = _only(run)
    assert (fault.kind, fault.first.log_ns) == (FaultKind.REFUSED, log_ns)
    assert fault.first.number == 27
    assert run.reason == 'bag_ended'


def test_stamps_of_zero_are_named_once_and_counted(tmp_path: Path) -> None:
    messages = [joint_state(START_NS + i * 10 * MS, stamp_ns=0) for i in range(50)]
    run = _run(tmp_path, messages)
    fault = _only(run)
    assert (fault.kind, fault.count) == (FaultKind.RESTAMPED, 50)
    assert 'header stamp is zero' in fault.text
    assert '(50 times)' in str(fault)
    assert len(run.setpoints['arm'])


def test_stamps_that_go_back_are_named(tmp_path: Path) -> None:
    messages = motion(1.0)
    back = joint_state(START_NS + 505 * MS, stamp_ns=START_NS + 300 * MS)
    fault = _only(_run(tmp_path, sorted([*messages, back], key=_time)))
    assert (fault.kind, fault.first.number) == (FaultKind.STAMP_WENT_BACK, 51)
    assert fault.first.log_ns == START_NS + 505 * MS


def test_stamps_that_stand_are_named_and_end_the_episode_as_on_a_robot(tmp_path: Path) -> None:
    last = START_NS + 990 * MS
    hung = [joint_state(START_NS + S + i * 10 * MS, stamp_ns=last) for i in range(100)]
    run = _run(tmp_path, motion(1.0) + hung)
    fault = _only(run)
    assert (fault.kind, fault.first.topic) == (FaultKind.STAMP_STANDS, '/joint_states')
    assert run.reason.startswith('stale_input: state (the header stamp has been the same for 0.')


def test_joints_that_freeze_while_they_are_commanded_are_named_and_end_nothing(
    tmp_path: Path,
) -> None:
    frozen = [joint_state(START_NS + i * 10 * MS, position=[0.1, 0.0]) for i in range(400)]
    bag = write(tmp_path / 'bag', frozen)
    run = replay(bag, parameters(), Away())
    fault = _only(run)
    assert run.reason == 'bag_ended'
    assert (fault.kind, fault.first.topic) == (FaultKind.FROZEN_STATE, '/joint_states')
    assert START_NS + S < fault.first.log_ns < START_NS + 2 * S
    assert fault.first.number == (fault.first.log_ns - START_NS) // (10 * MS)
    assert 'joint_states has been the same for 1.' in fault.text
    with pytest.raises(BagFault, match='frozen_state'):
        replay(bag, parameters(), Away(), REFUSE)
    assert _run(tmp_path / 'at_rest', frozen).faults == ()


def test_a_gap_is_named_and_ends_the_episode_as_on_a_robot(tmp_path: Path) -> None:
    later = [joint_state(START_NS + 3 * S + i * 10 * MS) for i in range(20)]
    run = _run(tmp_path, motion(1.0) + later)
    assert run.reason == 'stale_input: state'
    assert run.end_ns == START_NS + 990 * MS + 499 * MS + 1
    with pytest.raises(BagFault, match=r'gap: message 100 on /joint_states, at \d+ ns: 2\.010'):
        replay(tmp_path / 'bag', parameters(), Follow(), REFUSE)


def test_a_message_whose_bytes_are_not_of_its_type_is_named(tmp_path: Path) -> None:
    bag = write(tmp_path / 'bag', motion(1.0))
    broken = _with_raw(tmp_path / 'broken', motion(1.0), START_NS + 500 * MS + 1)
    assert replay(bag, parameters(), Follow(), REFUSE).faults == ()
    fault = _only(replay(broken, parameters(), Follow()))
    assert (fault.kind, fault.first.log_ns) == (FaultKind.UNREADABLE, START_NS + 500 * MS + 1)
    assert f'is no {JOINT_STATE}' in fault.text


def test_where_a_file_breaks_off_is_named_and_what_is_before_is_used(tmp_path: Path) -> None:
    filler = STORE.types['std_msgs/msg/String'](data='x' * 20_000)
    between = [
        ('/filler', 'std_msgs/msg/String', START_NS + i * 10 * MS + MS, filler) for i in range(200)
    ]
    bag = write(tmp_path / 'bag', sorted(motion() + between, key=_time))
    file = bag / 'bag.mcap'
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    run = replay(bag, parameters(), Follow())
    fault = _only(run)
    assert fault.kind is FaultKind.BROKEN_OFF
    assert START_NS < fault.first.log_ns < START_NS + 2 * S
    assert len(run.setpoints['arm']) > 10
    with pytest.raises(BagError, match='breaks off'):
        replay(bag, parameters(), Follow(), REFUSE)


def _time(message: Message) -> int:
    return message[2]


def _with_raw(path: Path, messages: Sequence[Message], at_ns: int) -> Path:
    """Write a recording with one message that is cut short."""
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection('/joint_states', JOINT_STATE, typestore=STORE)
        for _, kind, log_ns, message in messages:
            data = bytes(STORE.serialize_cdr(message, kind))
            writer.write(topic, log_ns, data)
            if log_ns < at_ns < log_ns + 10 * MS:
                writer.write(topic, at_ns, data[:20])
    return path


@pytest.mark.parametrize('size', [8, 100])
def test_a_file_of_which_nothing_is_whole_is_refused_under_its_own_name(
    tmp_path: Path, size: int
) -> None:
    file = next(write(tmp_path / 'bag', motion()).glob('*.mcap'))
    (tmp_path / 'cut.mcap').write_bytes(file.read_bytes()[:size])
    with pytest.raises(BagError) as caught:
        replay(tmp_path / 'cut.mcap', parameters(), Follow())
    assert str(caught.value).startswith(f'{tmp_path}/cut.mcap breaks off')
