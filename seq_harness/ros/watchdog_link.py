"""The harness's side of its watchdog: it beats, and plays only while it is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import secrets
import time

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from seq_harness.ros.beats import (
    Beat,
    BEAT_QOS,
    BeatRefused,
    HEARTBEAT,
    STANDING,
    Standing,
    Watched,
)
from seq_harness.ros.vigil import silence_s
from seq_harness.settings import ChannelSettings
from seq_harness.settings.output_types import RATES
from std_msgs.msg import String

BEATS = 5
"""So many beats may be missed before a watchdog acts."""

MARGIN_S = 0.02
"""A node that was silent for so much less than its watchdog bears may have been taken for dead."""

ARRIVES_WITHIN = Duration(seconds=0.1)
"""How long closing waits for the last word to arrive."""

QUIET_S = 10.0
"""What is no watchdog's is said no more often."""

LOST_S = 0.5
"""A watchdog that says nothing for so long is gone; it speaks five times in that time."""


class WatchdogLink:
    """
    Tell a watchdog that the loop lives, and hear whether it is there.

    The executor's thread owns it. Several watchdogs may watch; one is enough.
    """

    def __init__(
        self,
        node: Node,
        channels: Sequence[tuple[ChannelSettings, Publisher]],
        period_s: float,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Of `channels`, those of velocities and efforts are watched."""
        self._node = node
        self._now_ns = now_ns
        self._instance = secrets.token_hex(4)
        self._period_s = period_s
        self._channels = tuple(
            Watched(publisher.topic_name, item.type, item.joints, item.kind, item.frame)
            for item, publisher in channels
            if item.kind in RATES
        )
        self._heard: dict[str, tuple[int, Standing]] = {}
        self._refuses = False  # the last one was none, which was said
        self._beaten_ns = now_ns()  # written by the executor's thread, read by any
        self._timeout_ns = round(silence_s(period_s) * 1e9)  # likewise
        self._missed = False  # set where it beats, cleared where episodes open
        self._said: tuple[int, bool] | None = None
        self._message = String()
        self._beats = node.create_publisher(String, f'~/{HEARTBEAT}', BEAT_QOS)
        self._standings = node.create_subscription(
            String, f'~/{STANDING}', self._on_standing, BEAT_QOS
        )

    def beat(self, episode: int, moving: bool) -> None:
        """
        Say that the loop lives, and whether what it commands may move the robot.

        A change is said at once, else `BEATS` times in the time-out, if this is called as often.
        """
        now_ns = self._now_ns()
        self._missed = self._missed or (self.overdue and self._said is not None and self._said[1])
        same = (episode, moving) == self._said
        if same and (now_ns - self._beaten_ns) * BEATS < self._timeout_ns:
            return
        if not same:
            self._said = episode, moving
            self._message = self._beat(episode, moving)
        self._beats.publish(self._message)
        self._beaten_ns = now_ns

    def _beat(self, episode: int, moving: bool, ends: bool = False) -> String:
        beat = Beat(self._instance, episode, moving, self._period_s, self._channels, ends)
        return String(data=beat.text())

    @property
    def overdue(self) -> bool:
        """
        Tell whether a watchdog may have acted in this episode, as it heard nothing.

        Any thread may ask: it holds on when the beats go on before anybody has.
        """
        silent_ns = self._now_ns() - self._beaten_ns
        return self._missed or silent_ns > self._timeout_ns - round(MARGIN_S * 1e9)

    def begin(self) -> None:
        """Forget what was missed: a new episode begins."""
        self._missed = False

    @property
    def endpoints(self) -> frozenset[str]:
        """Return the identifiers, in hex, of the publishers of watchdogs that are there."""
        return frozenset(known for each in self._watching() for known in each.endpoints)

    def refusal(self) -> str:
        """Say why an episode may not start now; empty if it may."""
        if self._watching():
            return ''
        return (
            f'watchdog_lost: require_watchdog is set, and no watchdog of '
            f'{self._node.get_fully_qualified_name()} is heard: start seq-harness watchdog, with '
            'this node as its parameter harness'
        )

    def trouble(self, episode: int) -> str:
        """Say why an episode may not go on; empty if it may."""
        for each in self._watching():
            if (each.holds, each.episode) == (self._instance, episode):
                return f'watchdog: {each.name} heard nothing of this node and stopped the robot'
        return self.refusal()

    def close(self) -> None:
        """Say the last word, unless something may still move; return once it has arrived."""
        if self._said is not None and not self._said[1]:
            self._beats.publish(self._beat(*self._said, ends=True))
        self._beats.wait_for_all_acked(ARRIVES_WITHIN)
        self._node.destroy_subscription(self._standings)
        self._node.destroy_publisher(self._beats)

    def _on_standing(self, message: String) -> None:
        try:
            standing = Standing.read(message.data)
        except BeatRefused as error:
            if not self._refuses:
                self._node.get_logger().warning(str(error), throttle_duration_sec=QUIET_S)
            self._refuses = True
            return
        self._refuses = False
        self._heard[standing.name] = self._now_ns(), standing
        watching = self._watching()
        if watching:
            self._timeout_ns = round(min(each.timeout_s for each in watching) * 1e9)

    def _watching(self) -> list[Standing]:
        """List the watchdogs that are there and can keep our channels at zero."""
        since_ns = self._now_ns() - round(LOST_S * 1e9)
        return [
            standing
            for at_ns, standing in self._heard.values()
            if at_ns >= since_ns
            and standing.watches == self._instance
            and len(standing.endpoints) >= len(self._channels)
        ]
