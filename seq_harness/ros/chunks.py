"""The chunks that a policy answers, for people to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import re

from builtin_interfaces.msg import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.uplink import Step
from seq_harness.settings import ChannelSettings
from seq_harness.settings.output_types import RATES
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CHUNK_TOPIC = '~/chunk'

_ORIGIN = re.compile(r'step-(\d+)(?:/(r-[0-9a-f]+))?')


@dataclass(frozen=True)
class Origin:
    """What a chunk answers."""

    step: int
    """The number of the observation, in its episode."""
    request_id: str = ''
    """What the act is called on the worker's wire; empty where that has no ids."""

    def text(self) -> str:
        """Return it as a header's frame_id holds it: `step-12/r-1a2b3c4d`, or `step-12`."""
        return f'step-{self.step}/{self.request_id}' if self.request_id else f'step-{self.step}'

    @classmethod
    def read(cls, frame_id: str) -> Origin:
        """
        Read what `text` wrote.

        Raises
        ------
        ValueError
            It is the frame_id of no chunk.

        """
        found = _ORIGIN.fullmatch(frame_id)
        if found is None:
            raise ValueError(f'expected step-N or step-N/r-HEX, got {frame_id!r}')
        return cls(int(found[1]), found[2] or '')


class ChunkTopic:
    """Publish every chunk as it comes to the player, before any guard; nothing listens to move."""

    def __init__(
        self,
        node: Node,
        channels: Sequence[ChannelSettings],
        request_id: Callable[[], str] = str,
    ) -> None:
        """
        Show those of `channels` that are of joint positions.

        `request_id` says, where the inference ran, what the act just answered is called.
        """
        self._node = node
        self._request_id = request_id
        self._shown = [item for item in channels if item.kind not in (*RATES, 'pose')]
        self._publisher = node.create_publisher(JointTrajectory, CHUNK_TOPIC, QoSProfile(depth=1))

    def publish(self, step: Step, chunk: Chunk | None) -> None:
        """Publish what was answered, with its origin in the header; from any thread."""
        if chunk is None or not chunk.rows or not self._shown:
            return
        message = chunk_message(chunk, self._shown)
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = Origin(step.number, self._request_id()).text()
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
