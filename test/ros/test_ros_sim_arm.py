"""The node sim_arm on a real graph, as drivers and controllers are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, ExitStack
from math import nan
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from builtin_interfaces.msg import Duration
import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, qos_profile_sensor_data, QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Image, JointState
from seq_harness.messages.images import decode_image
from seq_harness.messages.joints import joint_vector
from seq_harness.messages.setpoints import fill_joint_trajectory, TrajectoryPoint
from seq_harness.ros.sim_arm import ParameterRefused, SimArm
from seq_harness.sim.kinematics import HOME, inverse, JOINT_NAMES
from seq_harness.worker.policies.reach import find_target
from std_msgs.msg import Float64, Float64MultiArray, Int32
from support.waiting import PATIENCE_S
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
GOAL = [0.2, *HOME[1:]]


class Graph:
    """A second participant that listens to the arm and commands it."""

    def __init__(self, arm: SimArm, node: Node) -> None:
        self.arm = arm
        self.node = node

    def listen(self, kind: type, topic: str, qos: Any = 10) -> queue.Queue[Any]:
        """Collect what comes on a topic from now on."""
        came: queue.Queue[Any] = queue.Queue()
        self.node.create_subscription(kind, topic, came.put, qos)
        return came

    def publisher(self, kind: type, topic: str) -> Any:
        """Make a publisher that the arm already listens to."""
        publisher = self.node.create_publisher(kind, topic, 1)
        ticks = self.listen(JointState, '/joint_states')
        while publisher.get_subscription_count() == 0:
            ticks.get(timeout=PATIENCE_S)
        return publisher


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Run an arm and a listener."""
    with _running() as graph:
        yield graph


@contextmanager
def _running(**parameters: Any) -> Iterator[Graph]:
    pytest.importorskip('matplotlib')
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    with ExitStack() as stack:
        context = Context()
        options = SignalHandlerOptions.NO
        rclpy.init(context=context, signal_handler_options=options)
        stack.callback(context.try_shutdown)
        arm = SimArm(context=context, parameter_overrides=overrides)
        stack.callback(arm.destroy_node)
        node = rclpy.create_node('listener', context=context)
        stack.callback(node.destroy_node)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(arm)
        executor.add_node(node)
        thread = threading.Thread(target=executor.spin)
        thread.start()
        stack.callback(thread.join)
        stack.callback(executor.shutdown)
        yield Graph(arm, node)


def _until(came: queue.Queue[Any], holds: Callable[[Any], bool]) -> Any:
    """Return the first message for which `holds`."""
    end_s = time.monotonic() + PATIENCE_S
    while not holds(message := came.get(timeout=PATIENCE_S)):
        assert time.monotonic() < end_s, f'still {message}'
    return message


def _at(joints: list[float]) -> Callable[[JointState], bool]:
    def holds(state: JointState) -> bool:
        return bool(abs(joint_vector(state, JOINT_NAMES) - joints).max() < 1e-3)

    return holds


def _stamp_ns(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec * 1_000_000_000 + stamp.nanosec)


def test_joint_states_come_stamped_at_their_rate(graph: Graph) -> None:
    came = graph.listen(JointState, 'joint_states', 200)
    states = [came.get(timeout=PATIENCE_S) for _ in range(100)]
    assert list(states[0].name) == list(JOINT_NAMES)
    assert _at(list(HOME))(states[0])
    assert len(states[0].velocity) == 6
    stamps = [_stamp_ns(state) for state in states]
    assert stamps == sorted(set(stamps))
    assert 20 < 99e9 / (stamps[-1] - stamps[0]) < 400


def test_frames_show_the_target_and_come_at_their_rate(graph: Graph) -> None:
    came = graph.listen(Image, 'camera/image_raw', qos_profile_sensor_data)
    frames = [came.get(timeout=PATIENCE_S) for _ in range(20)]
    assert {(frame.encoding, frame.width, frame.height) for frame in frames} == {
        ('rgb8', 640, 480)
    }
    stamps = [_stamp_ns(frame) for frame in frames]
    assert 3 < 19e9 / (stamps[-1] - stamps[0]) < 60
    assert find_target(decode_image(frames[0])) is not None


def test_frames_do_not_hold_up_joint_states(graph: Graph) -> None:
    frames = graph.listen(Image, 'camera/image_raw', qos_profile_sensor_data)
    came = graph.listen(JointState, 'joint_states', 400)
    stamps = [_stamp_ns(frames.get(timeout=PATIENCE_S)) for _ in range(20)]
    states = 0
    while _stamp_ns(came.get(timeout=PATIENCE_S)) < stamps[-1]:
        states += 1
    assert states > 2 * len(stamps), 'six or seven a frame, where nothing else is busy'


def test_a_setpoint_moves_the_arm(graph: Graph) -> None:
    publisher = graph.publisher(Float64MultiArray, 'forward_position_controller/commands')
    came = graph.listen(JointState, 'joint_states')
    publisher.publish(Float64MultiArray(data=GOAL))
    assert _until(came, _at(GOAL))


@pytest.mark.parametrize('stamp', ['zero', 'now'])
def test_a_trajectory_in_any_order_of_joints_moves_the_arm(graph: Graph, stamp: str) -> None:
    publisher = graph.publisher(JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
    came = graph.listen(JointState, 'joint_states')
    message = _trajectory(300_000_000)
    if stamp == 'now':
        message.header.stamp = graph.node.get_clock().now().to_msg()
    publisher.publish(message)
    assert _until(came, _at(GOAL))


def _trajectory(at_ns: int) -> JointTrajectory:
    message = JointTrajectory()
    points = [TrajectoryPoint(tuple(reversed(GOAL)), at_ns)]
    names = list(reversed(JOINT_NAMES))
    fill_joint_trajectory(message, JointTrajectoryPoint, Duration, names, points)
    return message


def test_what_a_controller_would_refuse_moves_nothing(graph: Graph) -> None:
    rows = graph.publisher(Float64MultiArray, 'forward_position_controller/commands')
    plans = graph.publisher(JointTrajectory, 'joint_trajectory_controller/joint_trajectory')
    for row in ([], [0.1] * 5, [nan] * 6, [9.0] * 6):
        rows.publish(Float64MultiArray(data=row))
    past = _trajectory(300_000_000)
    past.header.stamp.sec = 1
    plans.publish(past)
    unknown = _trajectory(300_000_000)
    unknown.joint_names = [f'other_{n}' for n in range(6)]
    plans.publish(unknown)
    came = graph.listen(JointState, 'joint_states')
    assert all(_at(list(HOME))(came.get(timeout=PATIENCE_S)) for _ in range(100))


def test_a_touched_target_is_counted_and_the_next_one_is_further_away(graph: Graph) -> None:
    reached = graph.listen(Int32, 'sim_arm/targets_reached', LATCHED)
    assert reached.get(timeout=PATIENCE_S).data == 0
    distances = graph.listen(Float64, 'sim_arm/target_distance')
    frames = graph.listen(Image, 'camera/image_raw', qos_profile_sensor_data)
    target = find_target(decode_image(frames.get(timeout=PATIENCE_S)))
    assert target is not None
    publisher = graph.publisher(Float64MultiArray, 'forward_position_controller/commands')
    publisher.publish(Float64MultiArray(data=list(inverse(*target))))
    _until(distances, lambda message: message.data < 0.02)
    assert reached.get(timeout=PATIENCE_S).data == 1
    _until(distances, lambda message: message.data > 0.1)
    late = graph.listen(Int32, 'sim_arm/targets_reached', LATCHED)
    assert late.get(timeout=PATIENCE_S).data == 1


def test_parameters_say_what_they_are_and_take_an_integer_for_a_rate() -> None:
    with _running(joint_rate_hz=100, joint_names=list('abcdef')) as graph:
        descriptor = graph.arm.describe_parameter('joint_rate_hz')
        assert descriptor.description == 'joint states a second'
        assert descriptor.floating_point_range[0].to_value == 1000.0
        came = graph.listen(JointState, 'joint_states', 100)
        states = [came.get(timeout=PATIENCE_S) for _ in range(50)]
        assert list(states[0].name) == list('abcdef')
        assert 10 < 49e9 / (_stamp_ns(states[-1]) - _stamp_ns(states[0])) < 200


@pytest.mark.parametrize(
    ('parameters', 'said'),
    [
        ({'joint_rate_hz': 0.0}, r'joint_rate_hz takes a number in 10\.\.1000'),
        ({'joint_rate_hz': 5}, r'joint_rate_hz takes a number in 10\.\.1000'),
        ({'camera_rate_hz': 'fast'}, "camera_rate_hz takes a number .* got 'fast'"),
        ({'seed': 1.5}, 'seed takes an integer'),
        ({'hold_s': True}, 'hold_s takes a number .* got True'),
        ({'joint_names': ['a', 'b']}, 'joint_names takes 6 different names'),
        ({'joint_names': ['a'] * 6}, 'joint_names takes 6 different names'),
        ({'joint_names': 7}, 'joint_names takes 6 different names'),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(
    parameters: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterRefused, match=said), _running(**parameters):
        pytest.fail('the arm started')


@contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    code = 'import sys; from seq_harness.cli.main import main; sys.exit(main(sys.argv[1:]))'
    process = subprocess.Popen(
        [sys.executable, '-c', code, 'sim-arm', *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_soon_and_without_a_traceback(number: signal.Signals) -> None:
    with _process() as process:
        assert process.stderr is not None
        assert 'the arm is there' in process.stderr.readline()
        process.send_signal(number)
        _, rest = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert rest == ''


def test_the_process_tells_a_wrong_parameter_and_ends() -> None:
    with _process('--ros-args', '-p', 'camera_rate_hz:=1000.0') as process:
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 2
        assert 'camera_rate_hz takes a number in 1..100' in told
        assert '1000.0' in told
        assert 'Traceback' not in told


def test_the_command_names_what_it_does_not_take() -> None:
    with _process('--rate', '3') as process:
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 2
        assert "expected --ros-args, got '--rate'" in told
