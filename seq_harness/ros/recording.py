"""What a node records of its run."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.serialization import serialize_message
from seq_harness.bags.unrecorded import Unrecorded
from seq_harness.inputs import Verdict
from seq_harness.pipeline import Pipeline
from seq_harness.ros.pacing import Pacer, SimulatedPacer
from seq_harness.ros.subscribing import Tell
from seq_harness.settings import Settings
from seq_harness.settings.parameter import SettingsError


def recorder_of(
    node: Node, settings: Settings, pipeline: Pipeline, pacer: Pacer, instruction: str
) -> Unrecorded:
    """
    Begin the record that the parameters want; what records nothing where they want none.

    Raises
    ------
    SettingsError
        What writes records is not installed.
    BagError
        The file cannot be made.

    """
    if not settings['record']:
        return Unrecorded()
    try:
        from seq_harness.bags.run_recording import RunRecorder
    except ImportError as error:
        raise SettingsError(
            f"parameter 'record' needs rosbags and mcap ({error}): install seq_harness[bags]"
        ) from error
    clock = node.get_clock()
    recorder = RunRecorder(
        settings['record'],
        settings,
        pipeline.declaration,
        now_ns=pacer.now_ns,
        ros_now_ns=lambda: int(clock.now().nanoseconds),
        serialise=_serialised,
        period_ns=pipeline.period_ns,
        instruction=instruction,
        playback_clock='simulated' if isinstance(pacer, SimulatedPacer) else 'steady',
        complain=node.get_logger().error,
    )
    node.get_logger().info(f'recording to {recorder.path}')
    return recorder


def telling(recording: Unrecorded, tell: Tell) -> Tell:
    """Return `tell`, such that it is recorded too."""

    def told(name: str, reason: str, verdict: Verdict) -> None:
        recording.told(name, reason, verdict)
        tell(name, reason, verdict)

    return told


def _serialised(message: Any) -> bytes:
    return bytes(serialize_message(message))
