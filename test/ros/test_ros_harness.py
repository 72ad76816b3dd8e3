"""The node as a process, over DDS, with a worker and a simulated arm as other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import os
from pathlib import Path
import re
import signal
import time
from typing import Any

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from seq_harness.cli.children import Children
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray, String
from support.driving import PATIENT
from support.ports import free_port
from support.waiting import PATIENCE_S, socket_inodes, wait_for

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'
REACH = 'seq_harness.worker.policies.reach'
PERIOD_S = 0.05
HOLD = 'seq_harness.worker.policies.hold:Hold'


class Rig:
    """A worker, an arm and a harness; and a watcher of what goes out."""

    def __init__(self, children: Children, watcher: Watcher) -> None:
        self.children = children
        self.watcher = watcher
        self.setpoints: list[float] = []
        topic = 'forward_position_controller/commands'
        watcher.node.create_subscription(
            Float64MultiArray, topic, lambda _: self.setpoints.append(time.monotonic()), 10
        )

    def worker(self, policy: str = f'{REACH}:Reach', port: int = 0) -> str:
        self.children.start('worker', ['worker', policy, '--port', str(port)])
        log = self.children.log('worker')
        pattern = re.compile(r'serving \S+ on (ws://\S+)')
        wait_for(lambda: bool(pattern.search(log.read_text())), PATIENCE_S, 'the worker')
        found = pattern.search(log.read_text())
        return found.group(1) if found else ''

    def harness(self, url: str, *parameters: str) -> None:
        command = ['harness', '--ros-args', '--params-file', str(CONFIG)]
        for parameter in (f'worker_url:={url}', *PATIENT, *parameters):
            command += ['-p', parameter]
        self.children.start('harness', command)

    def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        self.watcher.wait(condition, within_s, what, lambda: None)

    def begin(self) -> None:
        self.until(lambda: self.watcher.ready, PATIENCE_S, 'a ready harness')
        assert self.watcher.call('start') == ''
        count = len(self.setpoints)
        self.until(lambda: len(self.setpoints) > count + 2, PATIENCE_S, 'setpoints')

    def ended(self) -> str:
        self.until(lambda: bool(self.watcher.reason), PATIENCE_S, 'the end of the episode')
        return self.watcher.reason

    def quiet_after(self, instant: float) -> bool:
        """Whether no setpoint came later than ten periods after `instant`, for half a second."""
        until = instant + 10 * PERIOD_S + 0.5
        self.until(lambda: time.monotonic() > until, PATIENCE_S, 'half a second')
        late = [at for at in self.setpoints if at >= instant + 10 * PERIOD_S]
        return not late


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with Children(tmp_path) as children:
        children.start('sim_arm', ['sim-arm'])
        with Watcher() as watcher:
            yield Rig(children, watcher)


@pytest.mark.parametrize('policy', ['Reach', 'ReachEvery', 'ReachWindow'])
def test_the_arm_reaches_three_targets_whatever_the_policy_reads(rig: Rig, policy: str) -> None:
    """Observations beyond the act's own go ahead over the stream."""
    rig.harness(rig.worker(f'{REACH}:{policy}'))
    rig.begin()
    assert rig.ended() == 'policy:targets_reached'
    figures = rig.watcher.figures
    rows = figures['rows']
    lost = sum(rows['dropped'].values())
    assert rows['scheduled'] == rows['emitted'] + rows['merged'] + lost + rows['held']
    posted = figures['policy']['stream']['posted']
    assert (posted > 0) is (policy != 'Reach')


def test_real_time_chunking_goes_on_from_the_rows_that_are_still_executed(rig: Rig) -> None:
    rig.harness(rig.worker(f'{REACH}:ReachChunked'), 'asking:=rtc')
    rig.begin()
    assert rig.ended() == 'policy:targets_reached'


def test_real_time_chunking_is_refused_with_a_policy_that_takes_no_plan(rig: Rig) -> None:
    rig.harness(rig.worker(), 'asking:=rtc')
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the refusal')
    assert rig.children.ended('harness') == 1
    assert 'plan' in rig.children.log('harness').read_text()


def test_the_plain_mode_drains_each_chunk(rig: Rig) -> None:
    rig.harness(rig.worker(), 'asking:=drain', 'handoff:=arrival')
    rig.begin()
    assert rig.ended() == 'policy:targets_reached'
    assert rig.watcher.figures['rows']['dropped'] == {}


def test_a_trajectory_controller_is_driven_too(rig: Rig) -> None:
    topic = 'joint_trajectory_controller/joint_trajectory'
    rig.harness(
        rig.worker(),
        'channels.arm.type:=joint_trajectory',
        f'channels.arm.topic:={topic}',
    )
    rig.until(lambda: rig.watcher.ready, PATIENCE_S, 'a ready harness')
    assert rig.watcher.call('start') == ''
    assert rig.ended() == 'policy:targets_reached'


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_g21_a_signal_ends_play_at_once_and_the_process_with_0(rig: Rig, number: int) -> None:
    rig.harness(rig.worker())
    rig.begin()
    at = time.monotonic()
    os.kill(rig.children.pid('harness'), number)
    rig.until(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the end of the node')
    assert rig.children.ended('harness') == 0
    assert rig.quiet_after(at)
    assert 'Traceback' not in rig.children.log('harness').read_text()


def test_stop_ends_play_and_another_start_begins_afresh(rig: Rig) -> None:
    rig.harness(rig.worker())
    rig.begin()
    assert rig.watcher.call('start') != '', 'a second start is refused'
    assert rig.watcher.call('stop') == ''
    assert rig.ended() == 'stop'
    assert rig.quiet_after(time.monotonic())
    assert rig.watcher.call('start') == ''
    rig.until(lambda: rig.watcher.live, PATIENCE_S, 'a second episode')


def test_pause_holds_the_arm_and_resume_goes_on(rig: Rig) -> None:
    rig.harness(rig.worker())
    rig.begin()
    assert rig.watcher.call('resume') != '', 'nothing is paused yet'
    assert rig.watcher.call('pause') == ''
    assert rig.quiet_after(time.monotonic())
    assert rig.watcher.figures['state'] == 'paused'
    assert rig.watcher.call('resume') == ''
    assert rig.ended() == 'policy:targets_reached'


def test_g46_a_lost_worker_plays_out_what_was_checked_and_ends_by_name(rig: Rig) -> None:
    rig.harness(rig.worker(), 'reconnect_s:=0.5', 'inputs_timeout_s:=1.0')
    rig.begin()
    os.kill(rig.children.pid('worker'), signal.SIGKILL)
    assert rig.ended().startswith('worker_lost')
    assert rig.quiet_after(time.monotonic())
    assert rig.watcher.call('start') == '', 'a start waits for the worker'
    rig.until(lambda: rig.watcher.reason.startswith('worker_missing'), PATIENCE_S, 'its end')


def restart_worker(rig: Rig, policy: str) -> None:
    """Kill the worker while it is asked, and start it again on its port."""
    port = free_port()
    rig.harness(rig.worker(policy, port), f'reconnect_s:={PATIENCE_S}')
    rig.begin()
    os.kill(rig.children.pid('worker'), signal.SIGKILL)
    wait_for(lambda: rig.children.ended('worker') is not None, PATIENCE_S, 'the end of the worker')
    rig.worker(policy, port)


def test_g35_a_worker_that_comes_back_in_time_is_used_again(rig: Rig) -> None:
    restart_worker(rig, HOLD)
    first = rig.watcher.figures['policy']['instance']

    def answered_by_another() -> bool:
        policy = rig.watcher.figures['policy']
        return bool(policy['instance'] != first and policy['reconnects'] > 0)

    rig.until(answered_by_another, PATIENCE_S, 'the new worker')
    answered = rig.watcher.figures['asks']['answered']
    rig.until(lambda: rig.watcher.figures['asks']['answered'] > answered, PATIENCE_S, 'its answer')
    assert rig.watcher.live


def test_a_policy_that_kept_state_in_a_worker_that_is_gone_ends_by_name(rig: Rig) -> None:
    restart_worker(rig, f'{REACH}:Reach')
    assert rig.ended().startswith('policy_state_lost')


def test_a_frozen_camera_and_arm_end_play_by_name(rig: Rig) -> None:
    rig.harness(rig.worker(), 'inputs.front.max_age_s:=2.0', 'inputs.state.max_age_s:=2.0')
    rig.begin()
    os.kill(rig.children.pid('sim_arm'), signal.SIGSTOP)
    try:
        assert re.match('stale_input: (state|front)', rig.ended())
    finally:
        os.kill(rig.children.pid('sim_arm'), signal.SIGCONT)
    assert rig.quiet_after(time.monotonic())


@pytest.mark.parametrize(
    ('parameter', 'said'),
    [
        ('ratehz:=20.0', "'ratehz' is unknown"),
        ('lead_s:=soon', "'lead_s' must be a double"),
        ('rate_hz:=0.0', r"'rate_hz' must be a double in \[0.01, 1000\]; got 0.0"),
        ('channels.arm.topci:=x', "'channels.arm.topci' is unknown"),
    ],
)
def test_g22_a_wrong_parameter_stops_the_start_by_name(
    rig: Rig, parameter: str, said: str
) -> None:
    rig.harness('ws://127.0.0.1:1', parameter)
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the refusal')
    assert rig.children.ended('harness') == 2
    assert re.search(said, rig.children.log('harness').read_text())


def test_a_start_while_it_connects_waits_and_a_stop_ends_it(rig: Rig) -> None:
    port = free_port()
    waits = ('connect_timeout_s:=300.0', 'inputs_timeout_s:=300.0')
    rig.harness(f'ws://127.0.0.1:{port}', *waits)
    assert rig.watcher.call('start') == ''
    rig.until(lambda: rig.watcher.figures.get('state') == 'waiting', PATIENCE_S, 'the wait')
    assert 'an episode is running' in rig.watcher.call('start')
    assert rig.watcher.call('stop') == ''
    assert rig.ended() == 'stop'
    assert rig.watcher.call('start') == ''
    assert not rig.setpoints
    rig.worker(port=port)
    rig.until(lambda: bool(rig.setpoints), PATIENCE_S, 'setpoints of what waited')
    assert rig.watcher.figures['episode'] == 2


@pytest.mark.parametrize(
    'durability', [DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL]
)
def test_an_instruction_is_heard_from_any_publisher(
    rig: Rig, durability: DurabilityPolicy
) -> None:
    rig.harness('ws://127.0.0.1:1', 'connect_timeout_s:=60.0')
    profile = QoSProfile(depth=1, durability=durability)
    publisher = rig.watcher.node.create_publisher(String, '/harness/instruction', profile)
    rig.until(lambda: publisher.get_subscription_count() > 0, PATIENCE_S, 'the subscription')


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('/**:\n  ros__parameters:\n    input_names: []\n', 'empty list'),
        ('/**:\n  ros__parameters:\n    lead_s: [2.0, two]\n', 'cannot be read'),
        ('/**: {', 'cannot be read'),
    ],
)
def test_a_parameter_file_that_cannot_be_read_is_said_in_a_line(
    rig: Rig, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / 'bad.yaml'
    file.write_text(text)
    rig.children.start('harness', ['harness', '--ros-args', '--params-file', str(file)])
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the refusal')
    assert rig.children.ended('harness') == 2
    log = rig.children.log('harness').read_text()
    assert said in log
    assert 'Traceback' not in log


def test_g22_an_integer_serves_for_a_double(rig: Rig) -> None:
    rig.harness(rig.worker(), 'rate_hz:=20', 'episode_s:=5')
    rig.begin()
    assert rig.ended() == 'deadline'


def test_an_unreachable_worker_is_named_and_the_process_ends_with_1(rig: Rig) -> None:
    rig.harness('ws://127.0.0.1:1', 'connect_timeout_s:=0.5')
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the refusal')
    assert rig.children.ended('harness') == 1
    assert 'ws://127.0.0.1:1' in rig.children.log('harness').read_text()


def test_g21_a_signal_ends_a_connect_that_waits(rig: Rig) -> None:
    rig.harness('ws://127.0.0.1:1', 'connect_timeout_s:=60.0')
    log = rig.children.log('harness')
    wait_for(lambda: 'connecting' in log.read_text(), PATIENCE_S, 'the connect')
    os.kill(rig.children.pid('harness'), signal.SIGINT)
    wait_for(lambda: rig.children.ended('harness') is not None, PATIENCE_S, 'the end of the node')
    assert rig.children.ended('harness') == 0


def test_a_preview_moves_nothing(rig: Rig) -> None:
    rig.harness(rig.worker(), 'preview:=true', 'episode_s:=5')
    shown: list[Any] = []
    topic = 'harness/preview/forward_position_controller/commands'
    rig.watcher.node.create_subscription(Float64MultiArray, topic, shown.append, 10)
    rig.until(lambda: rig.watcher.ready, PATIENCE_S, 'a ready harness')
    assert rig.watcher.call('start') == ''
    assert rig.ended() == 'deadline'
    assert shown
    assert not rig.setpoints


def test_no_socket_of_ros_is_open(rig: Rig) -> None:
    """ROS traffic stays in shared memory in an environment of ours."""
    if 'DEFAULT_PROFILES_FILE' not in ' '.join(os.environ):
        pytest.skip('a sourced ROS 2 chooses its own transports')
    rig.harness(rig.worker())
    rig.begin()
    pid = rig.children.pid('harness')
    opened = Path(f'/proc/{pid}/net/udp').read_text().splitlines()[1:]
    assert not {line.split()[9] for line in opened} & socket_inodes(pid)
