"""What the benchmark of punctuality measures, each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
import json
from pathlib import Path
import resource
import sys
import threading
import time
from typing import Any

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image, JointState
from seq_harness.ros.node import HarnessNode
from seq_harness.ros.process import Process
from seq_harness.ros.scheduling import request_fifo
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import Float64MultiArray

PERIOD_NS = 10_000_000
CAMERAS = ('front/image_raw', 'wrist/image_raw')
JOINTS = tuple(f'joint_{number}' for number in range(1, 7))
HANDOFFS = {'lead': 'continue', 'drain': 'arrival'}
SETTLE_NS = 1_000_000_000
"""What a subject does before it is measured."""


def steady() -> Clock:
    return Clock(clock_type=ClockType.STEADY_TIME)


def cameras() -> None:
    """Publish two 640x480 cameras at 30 Hz and joint states at 500 Hz."""
    process = Process([])
    node = Node('robot')
    frames = [node.create_publisher(Image, name, qos_profile_sensor_data) for name in CAMERAS]
    states = node.create_publisher(JointState, 'joint_states', 10)
    pixels = np.random.default_rng(0).integers(0, 255, 640 * 480 * 3, np.uint8).tobytes()
    image = Image(height=480, width=640, encoding='rgb8', step=1920)
    image.data.frombytes(pixels)
    state = JointState(name=list(JOINTS), position=[0.0] * 6)

    def show() -> None:
        image.header.stamp = node.get_clock().now().to_msg()
        for publisher in frames:
            publisher.publish(image)

    def move() -> None:
        state.header.stamp = node.get_clock().now().to_msg()
        states.publish(state)

    node.create_timer(1 / 30, show, clock=steady())
    node.create_timer(1 / 500, move, clock=steady())
    process.run(node, lambda reason: None)


class Watched(Node):
    """A node with the subscriptions that the harness has."""

    def __init__(self) -> None:
        super().__init__('watched')
        for name in CAMERAS:
            self.create_subscription(Image, name, self._keep, qos_profile_sensor_data)
        self.create_subscription(JointState, 'joint_states', self._keep, 10)
        self.newest: Any = None

    def _keep(self, message: Any) -> None:
        self.newest = message


class Lateness:
    """Differences between the wanted and the real instants, in ns."""

    def __init__(self, seconds: float) -> None:
        self.first_ns = time.monotonic_ns() + SETTLE_NS
        self.end_ns = self.first_ns + round(seconds * 1e9)
        self.late: list[int] = []

    def note(self, due_ns: int) -> bool:
        """Note that `due_ns` is served now; tell whether the block goes on."""
        now_ns = time.monotonic_ns()
        if now_ns >= self.first_ns:
            self.late.append(now_ns - due_ns)
        return now_ns < self.end_ns

    def figures(self) -> dict[str, float]:
        late_us = np.array(self.late) / 1e3
        p50, p99 = np.percentile(late_us, [50, 99])
        return {
            'p50_us': round(p50, 2), 'p99_us': round(p99, 2), 'max_us': round(late_us.max(), 1),
            'count': len(late_us),
        }  # fmt: skip


def sleeper(seconds: float, priority: int) -> dict[str, Any]:
    """Sleep to absolute instants beside an executor that takes the same messages."""
    process, node, lateness = Process([]), Watched(), Lateness(seconds)

    def sleep() -> None:
        request_fifo(priority)
        due_ns = time.monotonic_ns() + PERIOD_NS
        while True:
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            if not lateness.note(due_ns):
                break
            due_ns += PERIOD_NS
        process.finish('measured', 0)

    threading.Thread(target=sleep).start()
    process.run(node, lambda reason: None)
    return lateness.figures()


def timer(seconds: float, priority: int) -> dict[str, Any]:
    """Publish from a timer that is re-armed for each absolute instant, on a plain executor."""
    process, node, lateness = Process([]), Watched(), Lateness(seconds)
    publisher = node.create_publisher(Float64MultiArray, 'timer/commands', 1)
    due_ns = [time.monotonic_ns() + PERIOD_NS]

    def fire() -> None:
        going = lateness.note(due_ns[0])
        publisher.publish(Float64MultiArray(data=[0.0] * 6))
        if not going:
            process.finish('measured', 0)
        due_ns[0] += PERIOD_NS
        while due_ns[0] <= time.monotonic_ns():
            due_ns[0] += PERIOD_NS
        armed.timer_period_ns = due_ns[0] - time.monotonic_ns()
        armed.reset()  # type: ignore[no-untyped-call]

    armed = node.create_timer(PERIOD_NS / 1e9, fire, clock=steady())
    process.run(node, lambda reason: None)
    return lateness.figures()


def ours(seconds: float, priority: int, url: str, asking: str) -> dict[str, Any]:
    """Run the harness node for one episode, and read what it says of itself."""
    process = Process([])
    arguments = ['--ros-args', '--params-file', str(Path(__file__).with_name('_punctuality.yaml'))]
    given = {'worker_url': url, 'rt_priority': priority, 'asking': asking,
             'episode_s': seconds, 'handoff': HANDOFFS[asking]}  # fmt: skip
    for name, value in given.items():
        arguments += ['-p', f'{name}:={value}']
    node = HarnessNode(cli_args=arguments)
    process.favour(node.settings['niceness'])
    node.process_facts = process.facts
    node.configure_soon(lambda: process.finish('configuring failed', 1))
    figures: dict[str, Any] = {}

    def episode() -> None:
        with Watcher() as watcher:
            watcher.wait(lambda: watcher.ready, 30.0, 'a ready harness', lambda: None)
            refused = watcher.call('start')
            if refused:
                raise RuntimeError(refused)
        time.sleep(seconds + 1.0)
        with Watcher() as watcher:
            watcher.wait(lambda: bool(watcher.reason), 10.0, 'the end', lambda: None)
            figures.update(watcher.figures)
        process.finish('measured', 0)

    def watched() -> None:
        try:
            episode()
        except Exception as error:
            print(f'ours: {error}', file=sys.stderr)
            process.finish('failed', 1)

    threading.Thread(target=watched).start()
    process.run(node, node.interrupt, node.stand_aside)
    node.close()
    late, answers = figures['lateness_ms'], figures['answer_to_setpoint_ms']
    return {
        'p50_us': late['p50'] * 1e3, 'p99_us': late['p99'] * 1e3, 'max_us': late['max'] * 1e3,
        'count': late['count'], 'answer_p99_ms': answers['p99'], 'answer_p50_ms': answers['p50'],
        'answers': answers['count'], 'reason': figures['reason'],
        'scheduling': figures['scheduling'],
    }  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Run one subject; print its figures as JSON."""
    name, *rest = argv
    if name == 'cameras':
        cameras()
        return 0
    seconds, priority = float(rest[0]), int(rest[1])
    began, used = time.monotonic(), _cpu_s()
    figures = (
        ours(seconds, priority, *rest[2:]) if name == 'ours'
        else {'sleeper': sleeper, 'timer': timer}[name](seconds, priority)
    )  # fmt: skip
    figures['cpu'] = round((_cpu_s() - used) / (time.monotonic() - began), 4)
    print(json.dumps(figures), flush=True)
    return 0


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
