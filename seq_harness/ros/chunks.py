"""The chunks that a policy answers, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_interfaces.msg import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Step
from seq_harness.settings import ChannelSettings
from seq_harness.settings.output_types import RATES
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CHUNK_TOPIC = '~/chunk'


class ChunkTopic:
    """Publish every chunk as it comes to the player, before any guard; nothing listens to move."""

    def __init__(self, node: Node, channels: Sequence[ChannelSettings]) -> None:
        """Of `channels`, those of joint positions are shown."""
        self._node = node
        self._shown = [item for item in channels if item.kind not in (*RATES, 'pose')]
        self._publisher = node.create_publisher(JointTrajectory, CHUNK_TOPIC, QoSProfile(depth=1))

    def publish(self, step: Step, chunk: Chunk | None) -> None:
        """Publish what was answered to a step, which the header names; from any thread."""
        if chunk is None or not chunk.rows or not self._shown:
            return
        message = chunk_message(chunk, self._shown)
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = f'step-{step.number}'
        self._publisher.publish(message)


def chunk_message(chunk: Chunk, channels: Sequence[ChannelSettings]) -> JointTrajectory:
    """
    Return the rows of a chunk that command all of `channels`, as one trajectory.

    A point's time is its row's offset from the first row's instant.
    """
    names = [item.name for item in channels]
    rows = [row for row in chunk.rows if all(name in row.commands for name in names)]
    message = JointTrajectory(joint_names=[joint for item in channels for joint in item.joints])
    for row in rows:
        seconds, nanoseconds = divmod(row.offset_ns, 1_000_000_000)
        message.points.append(
            JointTrajectoryPoint(
                positions=[float(value) for name in names for value in row.commands[name]],
                time_from_start=Duration(sec=seconds, nanosec=nanoseconds),
            )
        )
    return message
