"""What is wrong before anything moves: every fault by name, with its remedy."""

from __future__ import annotations

from collections.abc import Iterator
import threading
import time
from typing import Any

from rclpy.node import Node
from seq_harness.client.registry import open_policy, Policy
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.msgpack import pack
from seq_harness.inputs import Inputs, Snapshot
from seq_harness.pipeline import AnswerRefused, Pipeline
from seq_harness.playback.pace import Pace
from seq_harness.ros.findings import fault, Finding, ok, warning
from seq_harness.ros.memory import keep_large_blocks
from seq_harness.ros.preflight_commands import (
    command_findings,
    controller_findings,
    following_findings,
    safety_findings,
    state_findings,
)
from seq_harness.ros.preflight_hardware import HardwareCheck
from seq_harness.ros.preflight_inputs import (
    clock_findings,
    InputCheck,
    lost_memory_findings,
    status_findings,
)
from seq_harness.ros.robot_description import bounded_by_description
from seq_harness.ros.scheduling import Grant, request_fifo, request_niceness
from seq_harness.ros.spinning import spin
from seq_harness.settings import Settings

DISCOVERY_S = 0.5
"""How long the graph is waited for, so that subscriptions take what publishers offer."""


def check(node: Node, settings: Settings, watch_s: float) -> list[Finding]:
    """Look at everything for `watch_s`; moves nothing, and publishes nothing."""
    spin(node, DISCOVERY_S)
    inputs = Inputs(settings.inputs, max_camera_spread_s=settings['max_camera_spread_s'])
    checks = [InputCheck(node, item, inputs) for item in settings.inputs]
    hardware = HardwareCheck(node, settings['robot_description'])
    spin(node, watch_s)
    snapshot = inputs.snapshot()
    found = [*lost_memory_findings(), *clock_findings(node)]
    found += [finding for each in checks for finding in each.findings()]
    found += [*status_findings(inputs, snapshot), *hardware.findings()]
    settings, limits = _bounded(node, settings)
    found += [*limits, *state_findings(settings, snapshot)]
    for channel in settings.channels:
        found += command_findings(node, channel, settings['preview'])
    found += [*following_findings(settings), *safety_findings(node, settings)]
    found += controller_findings(node, settings)
    found += worker_findings(settings, snapshot)
    found += process_findings(settings['rt_priority'], settings['niceness'])
    hardware.close()
    for each in checks:
        each.close()
    return found


def _bounded(node: Node, settings: Settings) -> tuple[Settings, list[Finding]]:
    """Return the settings with the limits of the robot's description, where one is to be read."""
    try:
        settings = bounded_by_description(node, settings)
    except Exception as error:
        return settings, [fault('limits', str(error), 'correct it, or the parameter')]
    if not settings['robot_description']:
        return settings, []
    return settings, [ok('limits', 'the stricter of the parameters and the description apply')]


def worker_findings(settings: Settings, snapshot: Snapshot) -> Iterator[Finding]:
    """Connect, compare what the policy declares, and ask it once with a blank observation."""
    where = settings['gateway_url'] or settings['worker_url']
    try:
        policy = open_policy(settings)
    except Exception as error:
        yield fault('worker', str(error), 'correct that parameter')
        return
    try:
        declaration = policy.connect()
        pipeline = Pipeline(settings, declaration)
        began = time.monotonic()
        outputs = policy.warm_up(pipeline.blank(settings['instruction']))
        took_ms = (time.monotonic() - began) * 1e3
        odd = pipeline.check_answer(outputs)
        pace = _usual_pace(policy, pipeline, settings, outputs, took_ms / 1e3)
    except AnswerRefused as error:
        remedy = 'correct what the policy answers, or what it declares'
        yield fault('policy', f'{where}: {error}', remedy)
        return
    except Exception as error:
        yield fault(
            'worker', f'{where}: {error}', 'start the worker, or make both sides declare the same'
        )
        return
    finally:
        policy.close()
    yield ok('worker', f'{where} answers; the warm-up took {took_ms:.0f} ms')
    if odd:
        yield warning('policy', odd, 'see whether it answers rows to what the robot sees')
    yield ok('policy', declared(declaration, pipeline.rate_hz))
    if pace is not None:
        yield ok('pace', str(pace))
    yield ok('worker', pipeline.describe().replace('\n', '\n           '))
    yield from observation_findings(pipeline, settings, snapshot)


def _usual_pace(
    policy: Policy, pipeline: Pipeline, settings: Settings, outputs: Any, answer_s: float
) -> Pace | None:
    """Return how chunks will go; a first answer that seems too slow is asked for once more."""
    pace = pipeline.pace(outputs, answer_s)
    if pace is None or not pace.stands:
        return pace
    began = time.monotonic()
    outputs = policy.warm_up(pipeline.blank(settings['instruction']))
    return pipeline.pace(outputs, time.monotonic() - began)


def declared(declaration: WorkerDeclaration, rate_hz: float) -> str:
    """Say what a policy declares: rate, width, horizon, and the keys and sizes that it reads."""
    actions, contract = declaration.actions, declaration.observation
    rate = 'rate_hz of the parameters' if not (actions and actions.hz) else 'its own'
    if declaration.action is not None:
        rate = 'its own'
    columns = declaration.columns
    width = f'{len(columns)} columns' if columns else 'no names of columns: those of the channels'
    streams = (declaration.observations.streams if declaration.observations else None) or {}
    cameras = {key: item.camera for key, item in streams.items()}
    cameras |= contract.cameras if contract else {}
    reads = [
        key if camera is None else f'{key} ({camera.width}x{camera.height})'
        for key, camera in cameras.items()
    ]
    horizon = actions.open_loop_horizon if actions else None
    return (
        f'{rate_hz:g} rows a second ({rate}); {width}; '
        + (f'{horizon} rows of a chunk are played; ' if horizon else '')
        + f'reads {", ".join(reads) or "the whole observation"}'
        + ('; keeps state' if declaration.keeps_state else '')
    )


def observation_findings(
    pipeline: Pipeline, settings: Settings, snapshot: Snapshot
) -> Iterator[Finding]:
    """Make an observation of what arrived: its bytes and ms, and joints as the policy has them."""
    missing = [
        item.name for item in settings.inputs if not item.is_status and item.name not in snapshot
    ]
    if missing:
        return
    try:
        seen = pipeline.spec.observe(snapshot, time.monotonic_ns(), settings['instruction'])
        began = time.monotonic()
        made = dict(pipeline.layers.encode(seen))
        size = len(pack(made))
    except Exception as error:
        yield fault('observation', f'cannot be made: {error}', 'correct the input that it names')
        return
    took_ms = (time.monotonic() - began) * 1e3
    yield ok(
        'observation',
        f'{size} bytes, made in {took_ms:.1f} ms; {size * pipeline.rate_hz / 1e6:.2f} MB/s if '
        'every step is sent',
    )
    mapped = {joint.name for joint in settings.joints}
    for item in settings.inputs:
        if mapped & set(item.joints) and item.key in made:
            values = zip(item.joints, made[item.key], strict=True)
            shown = '; '.join(f'{name} {value:.3f}' for name, value in values if name in mapped)
            yield ok(f'input {item.name}', f'as the policy counts now: {shown}')


def process_findings(rt_priority: int, niceness: int) -> Iterator[Finding]:
    """Say what the system grants to the process of the harness."""
    answers: list[Grant] = []

    def ask() -> None:  # on a thread of its own, which ends with what it was granted
        answers.append(request_fifo(rt_priority))
        answers.append(request_niceness(niceness))

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    asked = (('scheduling', 'rt_priority', rt_priority), ('niceness', 'niceness', niceness))
    for (subject, parameter, wanted), answer in zip(asked, answers, strict=True):
        if answer.granted or wanted == 0:
            yield ok(subject, answer.text)
        else:
            yield warning(subject, answer.text, f'grant it, or set {parameter} to 0')
    if keep_large_blocks():
        yield ok('malloc', 'keeps blocks of the size of camera frames')
    else:
        yield warning(
            'malloc',
            'cannot be told to keep blocks of the size of camera frames',
            'use a C library with mallopt, or expect a little more CPU',
        )
