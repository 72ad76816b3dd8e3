"""
A robot's driver as a process: joints, a camera, a stop and a clock, that fail as they are told.

Lines of JSON on standard input change the fields of `Mode`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
import json
import math
import sys
import threading
import time
from typing import Any

from builtin_interfaces.msg import Time
from injections.limits import JOINTS
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Bool, Float64MultiArray, String

JOINTS_HZ, CAMERA_HZ, CLOCK_HZ = 50.0, 20.0, 100.0
TICK_S = 0.004
LAG_S = 0.04
"""How long the arm takes for most of the way to its command."""

START_NS = 1_000_000_000_000
"""What simulated time begins at."""


@dataclass
class Mode:
    """How the driver behaves; None of a topic is silence."""

    joints: bool = True
    camera: bool = True
    stop: bool | None = False
    deadman: bool | None = True
    status: str | None = 'ready'
    clock: bool = True
    velocities: bool = False
    """Whether commands are rates."""
    standing: bool = False
    """Whether the arm does not follow."""
    leap: float = 0.0
    """How far the measured positions are from where the arm is."""
    value: str = ''
    """A number that every position is, in place of itself: nan, inf."""
    names: Sequence[str] = JOINTS
    stamp: str = 'now'
    """`now`, `zero`, `hung` (the last one again), or `slow` (a tenth as fast as time)."""
    stamp_offset_s: float = 0.0
    clock_offset_s: float = 0.0
    clock_hz: float = CLOCK_HZ
    joints_hz: float = JOINTS_HZ
    camera_hz: float = CAMERA_HZ
    encoding: str = 'rgb8'
    size: Sequence[int] = (64, 48)
    short: int = 0
    """Bytes that are missing at the end of a frame."""
    step: int = 0
    """Bytes of a row of the frame that is told; 0 tells the real one."""
    same: bool = False
    """Whether each frame is the same to the byte."""
    extra: dict[str, Any] = field(default_factory=dict)
    """More fields of a joint state, such as `velocity`."""


def _told(mode: Mode) -> None:
    for line in sys.stdin:
        for name, value in json.loads(line).items():
            setattr(mode, name, value)


class Robot(Node):
    """Publishes at its own rates in real time, whatever the clock says."""

    def __init__(self, mode: Mode, simulated: bool) -> None:
        """Stamp by simulated time, and publish it, where `simulated`."""
        super().__init__('robot')
        self._mode = mode
        self._simulated = simulated
        self._began_ns = self._moved_ns = time.monotonic_ns()
        self._position = [0.0] * len(JOINTS)
        self._command = list(self._position)
        self._stamp: Any = Time()
        self._slow_ns: int | None = None
        self._frames = 0
        self._next: dict[str, float] = {}
        self._states = self.create_publisher(JointState, 'joint_states', 10)
        self._images = self.create_publisher(Image, 'front', qos_profile_sensor_data)
        self._jpegs = self.create_publisher(CompressedImage, 'front/compressed', 10)
        self._clock_topic = self.create_publisher(ClockMessage, '/clock', 10)
        self._bools = {name: self.create_publisher(Bool, name, 10) for name in ('stop', 'deadman')}
        self._status = self.create_publisher(String, 'arm_status', 10)
        self.create_subscription(Float64MultiArray, 'commands', self._on_command, 10)

    def drive(self, over: threading.Event) -> None:
        """Publish what is due until it is over; by a wait that no setting of a clock moves."""
        while not over.wait(TICK_S):
            self._tick()

    def _on_command(self, message: Float64MultiArray) -> None:
        if not self._mode.standing:
            self._command = list(message.data)

    def _tick(self) -> None:
        mode = self._mode
        self._move()
        if self._due('clock', mode.clock_hz) and self._simulated and mode.clock:
            self._clock_topic.publish(ClockMessage(clock=_time(self._now_ns())))
        if self._due('joints', mode.joints_hz) and mode.joints:
            self._publish_joints()
        if self._due('camera', mode.camera_hz) and mode.camera:
            self._publish_frame()
        if self._due('safety', JOINTS_HZ):
            for name, publisher in self._bools.items():
                said = getattr(mode, name)
                if said is not None:
                    publisher.publish(Bool(data=said))
            if mode.status is not None:
                self._status.publish(String(data=mode.status))

    def _due(self, what: str, hz: float) -> bool:
        """Tell whether something that comes so often is due, on a grid that never bursts."""
        now = time.monotonic()
        if now < self._next.get(what, 0.0):
            return False
        self._next[what] = max(self._next.get(what, now) + 1 / hz, now)
        return True

    def _move(self) -> None:
        now_ns = time.monotonic_ns()
        passed_s, self._moved_ns = min(0.1, (now_ns - self._moved_ns) / 1e9), now_ns
        share = 1 - math.exp(-passed_s / LAG_S)
        for i, (place, command) in enumerate(zip(self._position, self._command, strict=True)):
            by = command * passed_s if self._mode.velocities else share * (command - place)
            self._position[i] = place if self._mode.standing else place + by

    def _now_ns(self) -> int:
        """Return the reading of the clock that stamps."""
        if not self._simulated:
            return int(self.get_clock().now().nanoseconds)
        passed_ns = time.monotonic_ns() - self._began_ns
        return START_NS + passed_ns + round(self._mode.clock_offset_s * 1e9)

    def _stamped(self) -> Any:
        mode, now_ns = self._mode, self._now_ns()
        if mode.stamp == 'slow':
            if self._slow_ns is None:
                self._slow_ns = now_ns
            now_ns = self._slow_ns + (now_ns - self._slow_ns) // 10
        if mode.stamp != 'hung':
            offset_ns = round(mode.stamp_offset_s * 1e9)
            self._stamp = Time() if mode.stamp == 'zero' else _time(now_ns + offset_ns)
        return self._stamp

    def _publish_joints(self) -> None:
        mode = self._mode
        values = [place + mode.leap for place in self._position]
        if mode.value:
            values = [float(mode.value)] * len(values)
        state = JointState(name=list(mode.names), position=values[: len(mode.names)], **mode.extra)
        state.header.stamp = self._stamped()
        self._states.publish(state)

    def _publish_frame(self) -> None:
        mode = self._mode
        width, height = mode.size
        self._frames += not mode.same
        depth = 2 if mode.encoding == '16UC1' else 1 if mode.encoding == 'mono8' else 3
        count = width * height * depth
        data = bytes([self._frames % 251]) * count
        frame = Image(height=height, width=width, encoding=mode.encoding)
        frame.step = mode.step or width * depth
        frame.data = array('B', data[: count - mode.short])
        frame.header.stamp = self._stamped()
        self._images.publish(frame)


def _time(ns: int) -> Any:
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


def main() -> None:
    """Publish until a signal."""
    mode, over = Mode(**json.loads(sys.argv[1])), threading.Event()
    threading.Thread(target=_told, args=(mode,), daemon=True).start()
    rclpy.init(args=[])
    robot = Robot(mode, simulated=len(sys.argv) > 2)
    driver = threading.Thread(target=robot.drive, args=(over,))
    driver.start()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(robot)
    over.set()
    driver.join()


if __name__ == '__main__':
    main()
