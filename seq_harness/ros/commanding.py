"""What a node commands: its setpoints, and who else commands there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
import time
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import qos_policy_name_from_kind
from rclpy.time import Time
from seq_harness.harness import Report, State
from seq_harness.inputs import Verdict
from seq_harness.outputs import Output, Outputs
from seq_harness.ros.gripper_action import GripperAction
from seq_harness.ros.message_types import message_class
from seq_harness.ros.ownership import Ownership
from seq_harness.ros.rejections import RejectionWatch
from seq_harness.ros.subscribing import Tell
from seq_harness.ros.topics import output, setpoint_publisher
from seq_harness.ros.watchdog_link import WatchdogLink
from seq_harness.settings import ChannelSettings, Settings
from seq_harness.settings.output_types import ACTIONS

PLAYED_OUT = 'policy:'
"""How the reason of an episode begins that ended as its policy wished."""

CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'


class Commanding:
    """Publishers of a configured node; the executor's thread opens and closes them."""

    def __init__(
        self,
        node: Node,
        settings: Settings,
        period_ns: int,
        tell: Tell,
        stamp_ns: Callable[[], int],
    ) -> None:
        """
        Open a publisher for every channel; `stamp_ns` reads the clock that stamps, in ns.

        Raises
        ------
        TypeMissing
            The message of a channel's type is not installed.

        """
        self._node = node
        self._tell = tell
        self._stamp_ns = stamp_ns
        self._episode = 0
        self._preview: bool = settings['preview']
        self._grippers: dict[str, GripperAction] = {}
        self._published: list[tuple[ChannelSettings, Publisher]] = []
        self.watchdog: WatchdogLink | None = None
        with ExitStack() as parts:
            self.outputs = Outputs(
                {item.name: self._output(item, period_ns, parts) for item in settings.channels}
            )
            if settings['require_watchdog']:
                self.watchdog = WatchdogLink(node, self._published, period_ns / 1e9)
                parts.callback(self.watchdog.close)
            self._parts = parts.pop_all()
        publishers = [publisher for _, publisher in self._published]
        policy = settings['on_other_publisher']
        self.ownership = Ownership(node, publishers, policy, self._known)

    def refusal(self) -> str:
        """Say why an episode may not start now; empty if it may."""
        # A watchdog that is silent counts among the others.
        unwatched = '' if self.watchdog is None else self.watchdog.refusal()
        unserved = (gripper.refusal() for gripper in self._grippers.values())
        return unwatched or self.ownership.refusal() or next(filter(None, unserved), '')

    def changed(self, report: Report) -> None:
        """Have grippers that take goals stand where an episode is held or cut short."""
        began, self._episode = report.number != self._episode, report.number
        played_out = report.state is State.IDLE and report.reason.startswith(PLAYED_OUT)
        for gripper in self._grippers.values():
            if began:
                gripper.forget()
            if report.state not in (State.WAITING, State.RUNNING) and not played_out:
                gripper.halt()

    def figures(self) -> dict[str, Any]:
        """Return the goals of grippers by what became of them, under `grippers`, if any."""
        if not self._grippers:
            return {}
        return {'grippers': {name: dict(each.counts) for name, each in self._grippers.items()}}

    def watch(self, stop: Callable[[str], object]) -> None:
        """Look for other publishers from now on; `stop` ends the episode for a reason."""
        self._parts.callback(self.ownership.watch(stop, self._tell))

    def close(self) -> None:
        """Close all publishers."""
        self._parts.close()

    def _output(self, item: ChannelSettings, period_ns: int, parts: ExitStack) -> Output:
        if item.type in ACTIONS and not self._preview:
            gripper = self._grippers[item.name] = GripperAction(self._node, item, self._tell)
            parts.callback(gripper.close)
            return output(gripper, item, period_ns, self._stamp)
        publisher = setpoint_publisher(self._node, item, self._preview, self._events(item))
        parts.callback(self._node.destroy_publisher, publisher)
        self._published.append((item, publisher))
        made = output(publisher, item, period_ns, self._stamp)
        if item.controller_state and not self._preview:
            return self._watched(item, made, parts)
        return made

    def _known(self) -> frozenset[str]:
        return frozenset() if self.watchdog is None else self.watchdog.endpoints

    def _watched(self, item: ChannelSettings, sent: Output, parts: ExitStack) -> Output:
        """Watch whether the controller takes what is sent, by the state that it publishes."""
        watch = RejectionWatch(item.joints, item.topic)

        def publish(message: Any) -> None:
            watch.commanded(message)
            sent.publish(message)

        def arrived(state: Any) -> None:
            said = watch.look(state, time.monotonic_ns())
            self._tell(f'{item.name} (controller)', said, Verdict.REFUSED)

        subscription = self._node.create_subscription(
            message_class(CONTROLLER_STATE), item.controller_state, arrived, 1
        )
        parts.callback(self._node.destroy_subscription, subscription)
        return Output(sent.encode, publish)

    def _stamp(self) -> Any:
        return Time(nanoseconds=self._stamp_ns()).to_msg()

    def _events(self, item: ChannelSettings) -> PublisherEventCallbacks:
        def incompatible(event: Any) -> None:
            policy = qos_policy_name_from_kind(event.last_policy_kind)
            self._tell(
                f'{item.name} (QoS)',
                f'a subscription on {item.topic} asks for another {policy} than setpoints have '
                '(reliable, volatile), so none arrives: change the subscription',
                Verdict.INCOMPATIBLE,
            )

        return PublisherEventCallbacks(incompatible_qos=incompatible)
