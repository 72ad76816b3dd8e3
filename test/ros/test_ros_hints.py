"""What is said of an input names the true cause: stamps of another clock, memory that is gone."""

from __future__ import annotations

from collections.abc import Callable
import json
import os
from pathlib import Path
import subprocess
import sys
import time

import pytest
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from seq_harness.inputs import Inputs
from seq_harness.ros.findings import Finding, Severity
from seq_harness.ros.preflight_inputs import InputCheck
from seq_harness.ros.shared_memory import lost_ports
from seq_harness.ros.spinning import spin
from support.composing import Composition
from support.robots import JOINTS, settings_of
from support.sources import ROOT
from support.waiting import PATIENCE_S, wait_for

S = 1_000_000_000
PORT = Path('/dev/shm/fastrtps_port7411_el')


class Stamper:
    """Publishes joint states 50 times a second, with stamps that a test makes of the time."""

    def __init__(self, context: Context, stamp_of: Callable[[int], int]) -> None:
        self.node = Node('stamper', context=context, use_global_arguments=False)
        self._stamp_of = stamp_of
        self._publisher = self.node.create_publisher(JointState, 'joint_states', 10)
        self.node.create_timer(0.02, self._publish)

    def _publish(self) -> None:
        message = JointState(name=list(JOINTS), position=[0.0, 0.0])
        sec, nanosec = divmod(self._stamp_of(time.time_ns()), S)
        message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
        self._publisher.publish(message)


def looked_at(composed: Composition, stamp_of: Callable[[int], int]) -> list[Finding]:
    """Return what preflight finds of the input, once messages of it have come for a second."""
    composed.add(Stamper(composed.context, stamp_of).node)
    composed.spin()
    listener = Node('listener', context=composed.context, use_global_arguments=False)
    try:
        settings = settings_of()
        (item,) = settings.inputs
        check = InputCheck(listener, item, Inputs(settings.inputs))

        def heard() -> bool:
            spin(listener, 0.1)
            return check.rate_hz > 1

        wait_for(heard, PATIENCE_S, 'joint states')
        spin(listener, 1.2)
        return [found for found in check.findings() if found.severity is not Severity.OK]
    finally:
        listener.destroy_node()


def test_g55_stamps_that_are_behind_are_told_from_a_publisher_that_is_gone(
    composed: Composition,
) -> None:
    (found,) = looked_at(composed, lambda now: now - 3 * S)
    assert found.severity is Severity.FAULT
    assert 'a second arrive, but the header stamps are 3.0' in found.said
    assert 'set the clocks of both machines' in found.remedy
    assert 'publisher still runs' not in found.remedy


def test_g55_stamps_of_another_time_scale_are_a_warning(composed: Composition) -> None:
    (found,) = looked_at(composed, lambda now: now + 37 * S)
    assert found.severity is Severity.WARNING
    assert 'the header stamp is -3' in found.said
    assert 'its arrival is used instead' in found.said


def test_stamps_that_stand_are_a_fault_with_what_to_set(composed: Composition) -> None:
    (found,) = looked_at(composed, lambda now: 1_000 * S)
    assert found.severity is Severity.FAULT
    assert 'the header stamp has been the same for' in found.said


@pytest.mark.parametrize(
    ('target', 'lost'),
    [
        (f'{PORT} (deleted)', [str(PORT)]),
        ('/dev/shm/fastdds_port28650_sl (deleted)', ['/dev/shm/fastdds_port28650_sl']),
        (str(PORT), []),
        ('/dev/shm/fastrtps_4ba93ad2f810cde0 (deleted)', []),
        ('/tmp/other (deleted)', []),
    ],
)
def test_g52_a_port_is_lost_whose_file_is_deleted_while_it_is_open(
    tmp_path: Path, target: str, lost: list[str]
) -> None:
    (tmp_path / '7').symlink_to(target)
    (tmp_path / '8').write_text('no link')
    assert lost_ports(tmp_path) == lost


def test_a_process_without_a_descriptor_left_knows_of_no_lost_port(tmp_path: Path) -> None:
    assert lost_ports(tmp_path / 'cannot be opened') == []


ROBBED = """
import json
from pathlib import Path
import sys

from seq_harness.cli.children import Children
from seq_harness.ros.preflight_inputs import lost_memory_findings
from support.composing import Caller, composition, values

with Children(Path(sys.argv[1])) as children, composition(children) as composed:
    caller = Caller(composed.context)
    arm = composed.arm()
    composed.harness()
    composed.spin()
    caller.change('/harness', 1)
    before = list(lost_memory_findings())
    ports = [
        path
        for path in (each.resolve() for each in Path('/proc/self/fd').iterdir())
        if path.name.endswith('_el') and '_port' in path.name
    ]
    for port in ports:
        port.unlink()

    def told():
        return ' '.join(values(arm.statuses, 'inputs').values())

    if ports:
        caller.until(lambda: 'RemoveIPC=no' in told(), 'what is wrong')
    found = [each.severity.value for each in lost_memory_findings()]
    caller.close()
    print(json.dumps([len(before), [str(port) for port in ports], told(), found]))
"""


def test_g52_a_node_whose_memory_is_gone_says_so_and_what_to_set(tmp_path: Path) -> None:
    # In a process of its own: what is deleted stays open, and would be found by later tests.
    paths = [str(ROOT / 'test'), os.environ.get('PYTHONPATH', '')]
    done = subprocess.run(
        [sys.executable, '-c', ROBBED, str(tmp_path)],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=2 * PATIENCE_S,
        check=True,
    )
    before, ports, told, found = json.loads(done.stdout.splitlines()[-1])
    if not ports:
        pytest.skip('this middleware has no ports in shared memory')
    assert before == 0
    assert ports[0] in told
    assert found == [Severity.FAULT.value]
