"""The node sim_arm: an arm with a camera that behaves like a robot's driver."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import sys
import threading
import time
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, qos_profile_sensor_data, QoSProfile
from sensor_msgs.msg import Image, JointState
from seq_harness.messages.setpoints import read_float64_multi_array, read_joint_trajectory
from seq_harness.ros.process import Process
from seq_harness.sim.arm import ArmModel, Taken, Verdict, Waypoint
from seq_harness.sim.camera import Camera, HEIGHT, PhotographMissing, WIDTH
from seq_harness.sim.kinematics import forward, JOINT_NAMES
from seq_harness.sim.targets import TargetEvent, TargetSequence
from std_msgs.msg import Float64, Float64MultiArray, Int32
from trajectory_msgs.msg import JointTrajectory

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

LONGEST_STEP_S = 0.1
"""After a longer halt of the process the arm goes on from where it was."""


class ParameterRefused(ValueError):
    """A parameter that the arm cannot run with; names it and what is allowed."""


@dataclass(frozen=True)
class Settings:
    """The node's parameters."""

    joint_rate_hz: float
    camera_rate_hz: float
    distance_rate_hz: float
    tolerance_m: float
    hold_s: float
    seed: int
    joint_names: tuple[str, ...]


class SimArm(Node):
    """
    Publishes the arm's joints and its camera's frames, and takes setpoints of two kinds.

    Two threads besides the executor's: one moves the arm and publishes its state, one draws and
    publishes frames. `_lock` guards the arm and the targets; nobody publishes under it.
    """

    def __init__(self, **kwargs: Any) -> None:
        """
        Declare the parameters and start; keywords are those of a node.

        Raises
        ------
        ParameterRefused
            A parameter is of the wrong kind or out of its range.
        PhotographMissing
            The camera has nothing to show.

        """
        # The context may destroy a node whose making failed half-way.
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        super().__init__('sim_arm', **kwargs)
        self.settings = _declared(self)
        settings = self.settings
        self._lock = threading.Lock()
        self._arm = ArmModel()
        self._targets = TargetSequence(
            settings.seed, tolerance_m=settings.tolerance_m, hold_s=settings.hold_s
        )
        self._camera = Camera()
        self._states = self.create_publisher(JointState, 'joint_states', 10)
        self._frames = self.create_publisher(Image, 'camera/image_raw', qos_profile_sensor_data)
        self._distance = self.create_publisher(Float64, '~/target_distance', 10)
        self._reached = self.create_publisher(Int32, '~/targets_reached', LATCHED)
        self.create_subscription(
            Float64MultiArray, 'forward_position_controller/commands', self._on_setpoint, 1
        )
        self.create_subscription(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory', self._on_plan, 1
        )
        threads = [
            threading.Thread(target=self._run, args=[rate_hz, work], name=name)
            for name, rate_hz, work in (
                ('arm', settings.joint_rate_hz, self._move),
                ('camera', settings.camera_rate_hz, self._show),
            )
        ]
        # The arm's thread alone.
        self._state = JointState(name=settings.joint_names)
        self._next_distance_ns = 0
        self._reached.publish(Int32(data=0))
        for thread in threads:
            thread.start()
            self._threads.append(thread)

    def destroy_node(self) -> None:
        """Stop both threads, then destroy the node."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        super().destroy_node()

    def _run(self, rate_hz: float, work: Callable[[float], None]) -> None:
        """Call `work` with the seconds that passed, on a grid that never bursts to catch up."""
        period_ns = round(1e9 / rate_hz)
        before_ns = due_ns = time.monotonic_ns()
        while not self._closing.wait(max(0, due_ns - time.monotonic_ns()) / 1e9):
            now_ns = time.monotonic_ns()
            if now_ns > before_ns:
                work((now_ns - before_ns) / 1e9)
            before_ns = now_ns
            due_ns += period_ns * max(1, -((due_ns - now_ns) // period_ns))

    def _move(self, passed_s: float) -> None:
        with self._lock:
            self._arm.advance(min(passed_s, LONGEST_STEP_S))
            positions, velocities = self._arm.positions, self._arm.velocities
            tip = forward(positions.tolist()).tip
            distance = self._targets.distance(tip)
            event = self._targets.update(tip, passed_s)
            reached = self._targets.reached
        state = self._state
        state.header.stamp = self.get_clock().now().to_msg()
        state.position = array('d', positions)
        state.velocity = array('d', velocities)
        self._states.publish(state)
        if event is TargetEvent.REACHED:
            self._reached.publish(Int32(data=reached))
            self.get_logger().info(f'target {reached} was touched; the next one is out')
        now_ns = time.monotonic_ns()
        if now_ns >= self._next_distance_ns:
            self._next_distance_ns = now_ns + round(1e9 / self.settings.distance_rate_hz)
            self._distance.publish(Float64(data=distance))

    def _show(self, passed_s: float) -> None:
        if self._frames.get_subscription_count() == 0:
            return
        with self._lock:
            positions, target = self._arm.positions.tolist(), self._targets.place
            stamp = self.get_clock().now().to_msg()
        pixels = array('B', self._camera.picture(positions, target).tobytes())
        frame = Image(height=HEIGHT, width=WIDTH, encoding='rgb8', step=3 * WIDTH, data=pixels)
        frame.header.frame_id = 'camera'
        frame.header.stamp = stamp
        self._frames.publish(frame)

    def _on_setpoint(self, message: Float64MultiArray) -> None:
        with self._lock:
            taken = self._arm.command(read_float64_multi_array(message).tolist())
        self._note(taken)

    def _on_plan(self, message: JointTrajectory) -> None:
        names, points = read_joint_trajectory(message)
        own = dict(zip(self.settings.joint_names, JOINT_NAMES, strict=True))
        late_s = self._late_s(message.header.stamp)
        waypoints = [
            Waypoint(point.time_from_start_ns / 1e9 - late_s, point.positions) for point in points
        ]
        ahead = [waypoint for waypoint in waypoints if waypoint.after_s > 0]
        if waypoints and not ahead:
            end_s = waypoints[-1].after_s
            taken = Taken(Verdict.WRONG_TIMES, f'the trajectory ended {-end_s:.3f} s ago')
        else:
            with self._lock:
                taken = self._arm.follow([own.get(name, name) for name in names], ahead)
        self._note(taken)

    def _late_s(self, stamp: Any) -> float:
        """Return how long ago a trajectory was to start; a zero stamp means now (G39)."""
        start_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
        return (self.get_clock().now().nanoseconds - start_ns) / 1e9 if start_ns else 0.0

    def _note(self, taken: Taken) -> None:
        if taken.verdict is not Verdict.TAKEN:
            self.get_logger().warning(
                f'refused a command ({taken.verdict.value}): {taken.reason}',
                throttle_duration_sec=1.0,
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node until a signal; 0 after a wanted stop, 2 when it cannot start."""
    process = Process(argv)
    try:
        node = SimArm()
    except (ParameterRefused, PhotographMissing) as error:
        print(f'sim_arm: {error}', file=sys.stderr)
        process.close()
        return 2
    node.get_logger().info('the arm is there; send it setpoints')
    status = process.run(node, lambda reason: None)
    node.destroy_node()
    process.close()
    return status


def _declared(node: Node) -> Settings:
    return Settings(
        joint_rate_hz=_number(node, 'joint_rate_hz', 200.0, 10.0, 1000.0, 'joint states a second'),
        camera_rate_hz=_number(node, 'camera_rate_hz', 30.0, 1.0, 100.0, 'frames a second'),
        distance_rate_hz=_number(
            node, 'distance_rate_hz', 20.0, 1.0, 200.0, 'distances from tip to target a second'
        ),
        tolerance_m=_number(
            node, 'tolerance_m', 0.02, 0.001, 0.5, 'how near to the target the tip must be, in m'
        ),
        hold_s=_number(
            node, 'hold_s', 0.3, 0.0, 60.0, 'how long it must stay there before a jump, in s'
        ),
        seed=int(_number(node, 'seed', 0, 0, 2**31 - 1, "the targets' sequence")),
        joint_names=_names(node),
    )


def _number(
    node: Node, name: str, default: float, low: float, high: float, description: str
) -> float:
    """Declare a number; an integer is taken for a double (G22), as people write one."""
    whole = isinstance(default, int)
    bounds = {'from_value': low, 'to_value': high}
    descriptor = ParameterDescriptor(
        description=description,
        additional_constraints=f'{low:g}..{high:g}',
        read_only=True,
        dynamic_typing=True,
        integer_range=[IntegerRange(**bounds)] if whole else [],
        floating_point_range=[] if whole else [FloatingPointRange(**bounds)],
    )
    expected = f'{name} takes {"an integer" if whole else "a number"} in {low:g}..{high:g}'
    try:
        value = node.declare_parameter(name, default, descriptor).value
    except ParameterException as e:
        raise ParameterRefused(f'{expected}: {e}') from e
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        raise ParameterRefused(f'{expected}, got {value!r}')
    return value


def _names(node: Node) -> tuple[str, ...]:
    descriptor = ParameterDescriptor(
        description='what the six joints are called, from the foot to the tool', read_only=True
    )
    expected = f'joint_names takes {len(JOINT_NAMES)} different names'
    try:
        names = node.declare_parameter('joint_names', list(JOINT_NAMES), descriptor).value
    except ParameterException as e:
        raise ParameterRefused(f'{expected}: {e}') from e
    if len(set(names)) != len(names) or len(names) != len(JOINT_NAMES):
        raise ParameterRefused(f'{expected}, got {list(names)}')
    return tuple(names)
