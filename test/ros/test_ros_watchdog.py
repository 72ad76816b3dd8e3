"""A harness that is killed or frozen while it moves the robot, and the watchdog beside it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
import json
from pathlib import Path
import re
import signal
import time

from diagnostic_msgs.msg import DiagnosticStatus
import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.publisher import Publisher
from seq_harness.cli.children import Children
from std_msgs.msg import Float64MultiArray, String
from support.waiting import PATIENCE_S, wait_for
from support.watched import JOINTS, MOVING, PERIOD_S, Rig, Robot, STILL, watched

BOUND_S = 10 * 3 * PERIOD_S
"""Ten times what a watchdog takes for silence: a busy machine may take longer to say it."""
PATIENT_S = 3.0
"""What it takes for silence where nobody falls silent."""
FREEZE_S = 1.0
FAST_HZ, MOMENT_S = 50.0, 0.2
"""Later than three rows and than 0.1 s, and by far less than the 0.5 s that end an episode."""
AGREE_S = 0.5
"""How long something is watched that must not happen."""


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """Give a rig whose policy has 10 rows a second, or as many as a test asks for."""
    hz = getattr(request, 'param', 1 / PERIOD_S)
    with Children(tmp_path) as children, watched(children, tmp_path, hz) as made:
        yield made


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
def test_g42_a_harness_that_is_killed_crashes_or_freezes_leaves_the_robot_at_zero(
    rig: Rig, number: int
) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    at = rig.signal('harness', number)
    after_s = rig.zeroed_after(at)
    print(f'{signal.Signals(number).name}: zero after {after_s * 1e3:.0f} ms')
    assert after_s < BOUND_S
    rig.until(lambda: rig.robot.since(at).count(STILL) > 5, 'more zeros')
    assert MOVING not in rig.robot.since(at + after_s)
    rig.until(lambda: rig.robot.status is not None, 'a status')
    status = rig.robot.status
    assert status is not None
    assert status.level == DiagnosticStatus.ERROR
    assert f'fell silent during episode {rig.robot.episode["episode"]} ' in status.message
    assert 'zero goes to /commands' in status.message


def test_a_watchdog_sends_nothing_while_its_harness_is_well(rig: Rig) -> None:
    rig.watchdog(PATIENT_S)
    rig.harness()
    rig.play()
    count = len(rig.robot.commands)
    rig.until(lambda: len(rig.robot.commands) >= count + 30, 'velocities')
    assert STILL not in [values for _, values in rig.robot.commands[count:]]


def test_it_holds_until_a_new_harness_begins_a_new_episode(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    rig.zeroed_after(rig.signal('harness', signal.SIGKILL))
    rig.robot.episode = {}
    rig.harness()
    at = time.monotonic()
    rig.until(lambda: rig.robot.since(at).count(STILL) > 5, 'zeros while nothing is played')
    rig.play()


def test_a_frozen_harness_that_goes_on_commands_nothing_of_its_old_plan(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    rig.zeroed_after(rig.signal('harness', signal.SIGSTOP))
    at = rig.signal('harness', signal.SIGCONT)
    rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
    assert re.match('loop_stalled|watchdog: /watchdog', rig.robot.episode['reason'])
    assert MOVING not in rig.robot.since(at)
    assert rig.start() == ''
    rig.until(lambda: rig.robot.last() == MOVING, 'another episode')


def test_a_frozen_harness_ends_its_episode_by_name_without_a_watchdog_too(rig: Rig) -> None:
    rig.harness(require_watchdog=False, channels__arm__controller_timeout_s=0.2)
    rig.play()
    frozen = rig.signal('harness', signal.SIGSTOP)
    rig.until(lambda: time.monotonic() > frozen + FREEZE_S, 'a long freeze')
    at = rig.signal('harness', signal.SIGCONT)
    rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
    assert rig.robot.episode['reason'] == 'loop_stalled'
    assert rig.robot.since(at) == [STILL]


@pytest.mark.parametrize('rig', [FAST_HZ], indirect=True)
def test_a_harness_that_was_frozen_for_a_moment_asks_anew(rig: Rig) -> None:
    rig.harness(require_watchdog=False, channels__arm__controller_timeout_s=0.2)
    rig.play()
    frozen = rig.signal('harness', signal.SIGSTOP)
    rig.until(lambda: time.monotonic() > frozen + MOMENT_S, 'a short freeze')
    at = rig.signal('harness', signal.SIGCONT)
    rig.until(lambda: rig.robot.since(at)[-1:] == [MOVING], 'a new plan')
    assert rig.robot.since(at)[0] == STILL, 'nothing of the old one'
    rig.until(lambda: rig.robot.episode.get('stalls', 0) >= 1, 'its count')
    assert rig.robot.episode['rows']['dropped']['late'] > 0


def test_without_a_watchdog_nothing_starts_and_what_plays_ends(rig: Rig) -> None:
    rig.harness()
    assert 'no watchdog of /harness is heard: start seq-harness watchdog' in rig.start()
    rig.watchdog()
    rig.until(lambda: rig.robot.count_publishers('commands') == 2, 'its publisher')
    rig.until(lambda: 'no watchdog' not in rig.start(), 'a watchdog')
    rig.play()
    rig.signal('watchdog', signal.SIGSTOP)
    rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
    assert rig.robot.episode['reason'].startswith('watchdog_lost: ')
    assert rig.robot.last() == STILL
    assert 'no watchdog' in rig.start()
    rig.signal('watchdog', signal.SIGCONT)
    rig.until(lambda: rig.start() == '', 'a start')


def test_a_watchdog_is_no_other_commander_but_anybody_of_its_name_is(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    context = Context()
    rclpy.init(context=context)
    stranger = Node('watchdog', context=context, use_global_arguments=False)
    try:
        known = lambda: rig.robot.get_node_names().count('watchdog') == 2  # noqa: E731
        rig.until(known, 'the name of the stranger')
        stranger.create_publisher(Float64MultiArray, 'commands', 1)
        rig.until(lambda: rig.robot.episode.get('state') == 'idle', 'the end of the episode')
        assert rig.robot.episode['reason'].startswith('other_publisher: ')
    finally:
        stranger.destroy_node()
        rclpy.shutdown(context=context)


def test_what_is_held_is_let_go_by_hand(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    assert rig.call('/watchdog/release') == 'nothing is held'
    at = rig.signal('harness', signal.SIGKILL)
    rig.zeroed_after(at)
    assert rig.call('/watchdog/release') == ''
    released = time.monotonic() + 10 * PERIOD_S
    rig.until(lambda: time.monotonic() > released + AGREE_S, 'half a second')
    assert rig.robot.since(released) == []


CHANNEL = {'topic': '/commands', 'joints': JOINTS, 'kind': 'velocity', 'frame': ''}
STRANGE = [
    '',
    'null',
    '[' * 100_000,
    json.dumps({'instance': 'x', 'episode': 'y', 'moving': 3, 'period_s': 'z', 'channels': None}),
    '{"instance":"x","episode":1,"moving":true,"period_s":NaN,"channels":[]}',
    *(
        json.dumps(
            {
                'instance': 'stranger',
                'episode': 1,
                'moving': True,
                'period_s': PERIOD_S,
                'channels': [
                    {
                        'topic': '/commands',
                        'joints': JOINTS,
                        'kind': 'velocity',
                        'frame': '',
                        **odd,
                    }
                ],
            }
        )
        for odd in (
            {'type': 'of_another_version'},
            {'type': 'twist_stamped'},
            {'type': 'float64_multi_array', 'topic': 'no full name'},
            {'type': 'float64_multi_array', 'max_effort': float('inf')},
        )
    ),
]


def _heard(publisher: Publisher) -> bool:
    return publisher.get_subscription_count() > 0


def _has(robot: Robot, commands: int) -> bool:
    return len(robot.commands) >= commands


def test_g42_what_is_malformed_ends_nobody_and_the_last_good_beat_counts(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    began = len(rig.robot.commands)
    for topic in ('harness/heartbeat', 'harness/watchdog'):
        publisher = rig.robot.create_publisher(String, topic, 10)
        rig.until(partial(_heard, publisher), 'who hears it')
        for text in STRANGE:
            publisher.publish(String(data=text))
            # The newest alone is kept for who hears it.
            more = len(rig.robot.commands) + 2
            rig.until(partial(_has, rig.robot, more), 'velocities')
    assert STILL not in [values for _, values in rig.robot.commands[began:]]
    for name in ('watchdog', 'harness'):
        assert rig.children.ended(name) is None
    assert 'expected a watchdog, got ' in rig.children.log('harness').read_text()
    said = re.findall(r'\[ERROR\].*', rig.children.log('watchdog').read_text())
    assert 1 <= len(said) < len(STRANGE), 'once, and again after 10 s'
    rig.zeroed_after(rig.signal('harness', signal.SIGKILL))


def test_an_episode_that_ends_well_is_followed_by_nothing(rig: Rig) -> None:
    rig.watchdog()
    rig.harness()
    rig.play()
    at = rig.signal('harness', signal.SIGTERM)
    rig.until(lambda: rig.children.ended('harness') is not None, 'the end of the node')
    rig.until(lambda: time.monotonic() > at + AGREE_S, 'half a second')
    assert rig.robot.last() == STILL
    assert rig.robot.since(at).count(STILL) == 1
    rig.until(
        lambda: rig.robot.status is not None and rig.robot.status.level == DiagnosticStatus.WARN,
        'a warning',
    )


@pytest.mark.parametrize(
    ('parameter', 'said'),
    [('timeout_s:=-1.0', "'timeout_s' must be a double in"), ('harness:=3', "'harness' must be")],
)
def test_a_wrong_parameter_of_a_watchdog_is_named(
    tmp_path: Path, parameter: str, said: str
) -> None:
    with Children(tmp_path) as children:
        children.start('watchdog', ['watchdog', '--ros-args', '-p', parameter])
        wait_for(lambda: children.ended('watchdog') is not None, PATIENCE_S, 'the refusal')
        assert children.ended('watchdog') == 2
        assert said in children.log('watchdog').read_text()
