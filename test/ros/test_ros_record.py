"""The record of a node as a process: topics through DDS, the worker another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import os
from pathlib import Path
import re
import resource
import signal
import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
from seq_harness.bags.exact import replay_exact
from seq_harness.bags.record_reading import read_record, RunRecord
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray, String
from support.driving import PATIENT
from support.waiting import PATIENCE_S, wait_for

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'
REACH = 'seq_harness.worker.policies.reach'
TOPIC = 'forward_position_controller/commands'


class Rig:
    """A worker, an arm and a harness that records; and a watcher of what goes out."""

    def __init__(self, children: Children, watcher: Watcher, folder: Path) -> None:
        self.children = children
        self.watcher = watcher
        self.path = folder / 'run.mcap'
        self.seen: list[list[float]] = []
        watcher.node.create_subscription(Float64MultiArray, TOPIC, self._keep, 100)
        self.levels: dict[str, bytes] = {}
        watcher.node.create_subscription(DiagnosticArray, '/diagnostics', self._note, 10)
        self._manual = watcher.node.create_publisher(Float64MultiArray, '/harness/manual/arm', 1)
        self._instruction = watcher.node.create_publisher(String, '/harness/instruction', 1)

    def _keep(self, message: Float64MultiArray) -> None:
        self.seen.append(list(message.data))

    def _note(self, message: DiagnosticArray) -> None:
        self.levels.update((status.name, status.level) for status in message.status)

    def start(self, policy: str = 'Reach', *parameters: str) -> None:
        """Start a worker, and a harness with it."""
        self.children.start('worker', ['worker', f'{REACH}:{policy}', '--port', '0'])
        log, pattern = self.children.log('worker'), re.compile(r'serving \S+ on (ws://\S+)')
        wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
        found = pattern.search(log.read_text())
        url = found.group(1) if found else ''
        command = ['harness', '--ros-args', '--params-file', str(CONFIG)]
        for parameter in (f'worker_url:={url}', *PATIENT, f'record:={self.path}', *parameters):
            command += ['-p', parameter]
        self.children.start('harness', command)

    def begin(self, policy: str = 'Reach', *parameters: str) -> None:
        """Start all, and an episode."""
        self.start(policy, *parameters)
        self.until(lambda: self.watcher.ready, PATIENCE_S, 'a ready harness')
        self.until(lambda: not self.watcher.figures['missing_inputs'], PATIENCE_S, 'all inputs')
        assert self.watcher.call('start') == ''

    def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        """Spin until a condition holds."""
        self.watcher.wait(condition, within_s, what, lambda: None)

    def more_setpoints(self, count: int = 3) -> None:
        """Wait for so many."""
        wanted = len(self.seen) + count
        self.until(lambda: len(self.seen) >= wanted, PATIENCE_S, f'{count} more setpoints')

    def standing(self, state: str) -> None:
        """Wait for a state."""
        self.until(lambda: self.watcher.figures['state'] == state, 5.0, state)

    def instruct(self, text: str) -> None:
        """Publish an instruction."""
        self._instruction.publish(String(data=text))

    def by_hand(self, values: list[float]) -> None:
        """Publish a manual command."""
        self._manual.publish(Float64MultiArray(data=values))

    def closed(self) -> RunRecord:
        """End the node as Ctrl-C does, and read what it left."""
        os.kill(self.children.pid('harness'), signal.SIGINT)
        wait_for(
            lambda: self.children.ended('harness') is not None, PATIENCE_S, 'the end of the node'
        )
        return read_record(self.path)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Children(tmp_path) as children:
        children.start('sim_arm', ['sim-arm'])
        with Watcher() as watcher:
            yield Rig(children, watcher, tmp_path)


def _same(record: RunRecord) -> None:
    exact = replay_exact(record)
    assert exact.difference is None
    assert exact.hash == exact.recorded_hash
    assert exact.setpoints == len(record.setpoints)


def test_g53_a_full_disk_ends_the_record_in_the_log_and_play_goes_on(rig: Rig) -> None:
    rig.begin('Reach', 'record_images:=all')
    rig.more_setpoints()
    pid, log = rig.children.pid('harness'), rig.children.log('harness')
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    wait_for(
        lambda: f'nothing is recorded to {rig.path} any more' in log.read_text(),
        PATIENCE_S,
        'a word in the log',
    )
    rig.more_setpoints(20)
    rig.closed()
    assert re.search(rf'the record {rig.path} breaks off: .*File too large', log.read_text())
    assert rig.children.ended('harness') == 0


def test_a_killed_node_leaves_all_but_what_came_last(rig: Rig) -> None:
    """It is written every half second; a busy machine may take ten times that."""
    rig.begin()
    rig.more_setpoints(140)
    # Both processes read the same steady clock.
    killed_ns = time.monotonic_ns()
    os.kill(rig.children.pid('harness'), signal.SIGKILL)
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the end of the node')
    record = read_record(rig.path)
    assert record.end is None
    assert record.broken
    assert killed_ns - 5_000_000_000 < record.rounds[-1].start_ns < killed_ns
    assert killed_ns - 5_000_000_000 < record.setpoints[-1].sent_ns < killed_ns
    assert [item.values for item in record.setpoints][: len(rig.seen)] == rig.seen[
        : len(record.setpoints)
    ]
    exact = replay_exact(record)
    assert exact.difference is None
    assert exact.setpoints > 30


def test_a_closed_record_holds_what_was_asked_and_answered_and_replays_exactly(rig: Rig) -> None:
    rig.begin()
    rig.more_setpoints(20)
    for name in ('pause', 'resume'):
        assert rig.watcher.call(name) == ''
        rig.standing({'pause': 'paused', 'resume': 'running'}[name])
    rig.more_setpoints()
    rig.instruct('reach on')
    assert rig.watcher.call('replan') == ''
    rig.more_setpoints(20)
    assert rig.watcher.figures['record']['dropped'] == {}
    rig.until(lambda: 'harness: record' in rig.levels, PATIENCE_S, 'the diagnostics of the record')
    assert rig.levels['harness: record'] == DiagnosticStatus.OK
    assert rig.watcher.call('stop') == ''
    rig.until(lambda: rig.watcher.reason == 'stop', PATIENCE_S, 'the stop')
    assert rig.watcher.call('start') == ''
    rig.more_setpoints()
    record = rig.closed()
    _same(record)
    assert record.end is not None
    assert record.end.dropped == {}
    asked = [item.name for item in record.requests if item.accepted]
    assert asked[:6] == ['start', 'hold', 'resume', 'replan', 'stop', 'start']
    assert next(item.reason for item in record.episodes if item.state == 'idle') == 'stop'
    assert rig.seen == [item.values for item in record.setpoints][: len(rig.seen)]
    said = [read for item in record.rounds for read in item.reads.get('instruction', [])]
    assert [text for _, text in said][-1] == 'reach on'
    assert all(answer.request_id.startswith('r-') for answer in record.answers)
    causes = {cause for item in record.rounds for cause in item.woken}
    assert {'answer', 'request'} <= causes
    assert all(data[:3] == b'\xff\xd8\xff' for _, _, data in record.frames())


def test_manual_commands_are_replayed_too(rig: Rig) -> None:
    rig.begin('Reach', 'manual_commands:=true')
    rig.more_setpoints(10)
    assert rig.watcher.call('take_over') == ''
    rig.standing('taken_over')
    count = len(rig.seen)
    by_hand = [value + 0.001 for value in rig.seen[-1]]
    rig.by_hand(by_hand)
    rig.until(lambda: len(rig.seen) > count, PATIENCE_S, 'the manual command')
    assert rig.watcher.call('resume') == ''
    rig.more_setpoints(3)
    record = rig.closed()
    _same(record)
    sent = next(item for item in record.setpoints if item.values == by_hand)
    assert sent.due_ns is None
    assert 'command' in {item.name for item in record.requests if item.accepted}


@pytest.mark.parametrize(
    ('policy', 'parameters'),
    [
        ('ReachChunked', ['asking:=rtc']),
        ('ReachWindow', ['asking:=drain', 'handoff:=arrival', 'record_images:=all']),
        (
            'Reach',
            [
                'channels.arm.type:=joint_trajectory',
                'channels.arm.topic:=joint_trajectory_controller/joint_trajectory',
                'channels.arm.horizon:=chunk',
            ],
        ),
        (
            'Reach',
            ['channels.arm.type:=joint_state', 'channels.arm.topic:=told', 'output_hz:=100.0'],
        ),
    ],
    ids=['rtc', 'drain', 'trajectory', 'joint_state'],
)
def test_whatever_is_played_is_replayed_exactly(
    rig: Rig, policy: str, parameters: list[str]
) -> None:
    rig.begin(policy, *parameters)
    enough = 8 if 'channels.arm.horizon:=chunk' in parameters else 40
    rig.until(
        lambda: rig.watcher.figures.get('record', {}).get('setpoints', 0) >= enough,
        PATIENCE_S,
        f'{enough} setpoints',
    )
    record = rig.closed()
    _same(record)


def test_an_episode_whose_worker_died_is_replayed_up_to_its_end(rig: Rig) -> None:
    rig.begin('Reach', 'reconnect_s:=0.5')
    rig.more_setpoints(10)
    os.kill(rig.children.pid('worker'), signal.SIGKILL)
    rig.until(lambda: bool(rig.watcher.reason), PATIENCE_S, 'the end of the episode')
    record = rig.closed()
    _same(record)
    ended = [item for item in record.episodes if item.state == 'idle']
    assert ended[0].reason == rig.watcher.reason
    assert ended[0].reason.startswith('worker_lost')
    assert any(answer.error is not None for answer in record.answers)


def test_where_nothing_can_be_recorded_the_node_says_so_and_ends(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / 'file').touch()
    rig.path = tmp_path / 'file' / 'run.mcap'
    rig.start()
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the refusal')
    assert rig.children.ended('harness') == 1
    assert 'cannot be recorded to' in rig.children.log('harness').read_text()
