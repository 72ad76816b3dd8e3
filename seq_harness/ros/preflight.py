"""What is wrong before anything moves: every fault by name, with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
import threading
import time
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from seq_harness.client.registry import open_policy
from seq_harness.contract.msgpack import pack
from seq_harness.inputs import Inputs
from seq_harness.pipeline import Pipeline
from seq_harness.ros.findings import fault, Finding, ok, warning
from seq_harness.ros.ownership import node_name
from seq_harness.ros.pacing import request_fifo
from seq_harness.ros.preflight_inputs import InputCheck, state_findings
from seq_harness.ros.process import keep_large_blocks
from seq_harness.settings import Settings

SPIN_S = 0.05


def check(node: Node, settings: Settings, watch_s: float) -> list[Finding]:
    """Look at everything for `watch_s`; moves nothing, and publishes nothing."""
    inputs = Inputs(settings.inputs)
    checks = [InputCheck(node, item, inputs) for item in settings.inputs]
    spin(node, watch_s)
    found = [finding for each in checks for finding in each.findings()]
    found += state_findings(settings, inputs)
    for channel in settings.channels:
        found += command_findings(node, channel.name, channel.topic, settings['preview'])
    found += controller_findings(node)
    found += worker_findings(settings, inputs)
    found += process_findings(settings['rt_priority'])
    for each in checks:
        each.close()
    return found


def spin(node: Node, seconds: float) -> None:
    """Let messages arrive for a while."""
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=SPIN_S)
    executor.remove_node(node)
    executor.shutdown()


def command_findings(node: Node, name: str, topic: str, preview: bool) -> Iterator[Finding]:
    """Say who listens to a command topic, and who else commands there (G45)."""
    subject, full = f'channel {name}', node.resolve_topic_name(topic)
    others = sorted(set(map(node_name, node.get_publishers_info_by_topic(topic))))
    if others:
        yield fault(
            subject,
            f'{full} is commanded by {", ".join(others)} already',
            'stop the other commander: two of them fight over the arm',
        )
    listeners = sorted(set(map(node_name, node.get_subscriptions_info_by_topic(topic))))
    if listeners:
        yield ok(subject, f'{full} is taken by {", ".join(listeners)}')
    else:
        yield warning(
            subject,
            f'nobody listens to {full}',
            'load and activate the controller, or correct channels.<name>.topic',
        )
    if preview:
        yield ok(subject, 'preview is set: setpoints go to ~/preview/ and nothing moves')


def controller_findings(node: Node) -> Iterator[Finding]:
    """Say which controllers there are, where a controller manager answers."""
    managers = [
        name
        for name, kinds in node.get_service_names_and_types()
        if 'controller_manager_msgs/srv/ListControllers' in kinds
    ]
    if not managers:
        yield ok('controllers', 'no controller manager is seen: nothing to compare')
        return
    try:
        kind = import_module('controller_manager_msgs.srv').ListControllers
    except ImportError:
        yield warning(
            'controllers',
            f'{managers[0]} is there, and its messages are not installed here',
            'install ros-*-controller-manager-msgs to have the controllers looked at',
        )
        return
    for name in managers:
        yield from _controllers(node, name, kind)


def _controllers(node: Node, service: str, kind: Any) -> Iterator[Finding]:
    client = node.create_client(kind, service)
    future = client.call_async(kind.Request())
    spin(node, 1.0)
    node.destroy_client(client)
    answer = future.result() if future.done() else None
    if answer is None:
        yield warning('controllers', f'{service} does not answer', 'see whether it runs')
        return
    for controller in answer.controller:
        said = f'{controller.name} ({controller.type}) is {controller.state}'
        if controller.state == 'active':
            yield ok('controllers', said)
        else:
            yield warning('controllers', said, f'ros2 control switch_controllers --activate '
                          f'{controller.name}, if it is the one to command')  # fmt: skip


def worker_findings(settings: Settings, inputs: Inputs) -> Iterator[Finding]:
    """Connect, compare what the policy declares, and ask it once with a blank observation."""
    url = settings['worker_url']
    try:
        policy = open_policy(settings)
    except Exception as error:
        yield fault('worker', str(error), 'correct worker_url and what belongs to it')
        return
    try:
        pipeline = Pipeline(settings, policy.connect())
        began = time.monotonic()
        policy.warm_up(pipeline.blank(settings['instruction']))
        took_ms = (time.monotonic() - began) * 1e3
    except Exception as error:
        yield fault(
            'worker', f'{url}: {error}', 'start the worker, or make both sides declare the same'
        )
        return
    finally:
        policy.close()
    yield ok('worker', f'{url} answers; the warm-up took {took_ms:.0f} ms')
    yield ok('worker', pipeline.describe().replace('\n', '\n           '))
    yield from _size_findings(pipeline, settings, inputs)


def _size_findings(pipeline: Pipeline, settings: Settings, inputs: Inputs) -> Iterator[Finding]:
    snapshot = inputs.snapshot()
    if inputs.missing(snapshot):
        return
    try:
        seen = pipeline.spec.observe(snapshot, time.monotonic_ns(), settings['instruction'])
        began = time.monotonic()
        size = len(pack(dict(pipeline.layers.encode(seen))))
    except Exception as error:
        yield fault('observation', f'cannot be made: {error}', 'correct the input that it names')
        return
    took_ms = (time.monotonic() - began) * 1e3
    yield ok('observation', f'{size} bytes, made in {took_ms:.1f} ms')


def process_findings(rt_priority: int) -> Iterator[Finding]:
    """Say what the system grants to the process of the harness."""
    granted: list[str] = []
    asking = threading.Thread(target=lambda: granted.append(request_fifo(rt_priority)))
    asking.start()
    asking.join()
    said = granted[0] if granted else 'unknown'
    if said.startswith('SCHED_FIFO') or rt_priority == 0:
        yield ok('scheduling', said)
    else:
        yield warning('scheduling', said, 'grant it, or set rt_priority to 0')
    if keep_large_blocks():
        yield ok('malloc', 'keeps blocks of the size of camera frames')
    else:
        yield warning(
            'malloc',
            'cannot be told to keep blocks of the size of camera frames',
            'use a C library with mallopt, or expect a little more CPU',
        )
