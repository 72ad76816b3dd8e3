"""A terminal, an ssh link or a launch that goes while a harness moves the robot (G48)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import signal

from support.consoles import Session
from support.watched import MOVING, Rig, STILL, watched


@contextmanager
def playing(folder: Path, leader: str) -> Iterator[tuple[Session, Rig]]:
    """Give a session whose harness moves the robot."""
    with Session(folder, leader) as session, watched(session, folder) as rig:
        rig.watchdog()
        rig.harness()
        rig.play()
        yield session, rig


def goes_on(rig: Rig, at: float) -> bool:
    """Tell whether the robot is still moved, some time after an instant."""
    return rig.robot.since(at)[5:].count(MOVING) > 10


def test_g48_a_terminal_that_goes_ends_the_harness_well_and_the_watchdog_later(
    tmp_path: Path,
) -> None:
    with playing(tmp_path, 'shell') as (session, rig):
        at = session.hang_up()
        rig.zeroed_after(at)
        rig.until(lambda: session.ended('harness') is not None, 'the end of the harness')
        assert rig.robot.episode['reason'] == 'signal: SIGHUP'
        assert session.ended('watchdog') is None
        rig.until(lambda: session.ended('watchdog') is not None, 'the end of the watchdog')
        assert rig.robot.since(at)[-1] == STILL


def test_g48_a_watchdog_whose_terminal_went_still_zeroes(tmp_path: Path) -> None:
    with playing(tmp_path, 'shell') as (session, rig):
        rig.signal('harness', signal.SIGSTOP)
        at = session.hang_up()
        rig.signal('harness', signal.SIGKILL)
        rig.zeroed_after(at)
        rig.until(lambda: rig.robot.since(at).count(STILL) > 20, 'more zeros')
        assert session.ended('watchdog') is None


def test_a_hangup_that_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    with playing(tmp_path, 'nohup') as (session, rig):
        at = session.hang_up()
        for name in ('harness', 'watchdog'):
            rig.signal(name, signal.SIGHUP)
        rig.until(lambda: goes_on(rig, at), 'more velocities')
        assert session.ended('harness') is session.ended('watchdog') is None
        assert STILL not in rig.robot.since(at)


def test_a_watchdog_whose_launch_is_gone_ends_after_its_harness(tmp_path: Path) -> None:
    with playing(tmp_path, 'launch') as (session, rig):
        at = session.kill_leader()
        rig.until(lambda: goes_on(rig, at), 'more velocities')
        rig.zeroed_after(rig.signal('harness', signal.SIGTERM))
        rig.until(lambda: session.ended('harness') is not None, 'the end of the harness')
        assert session.ended('watchdog') is None
        rig.until(lambda: session.ended('watchdog') is not None, 'the end of the watchdog')
