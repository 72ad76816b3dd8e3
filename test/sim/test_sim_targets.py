"""The target's sequence."""

from __future__ import annotations

import itertools
import math

from seq_harness.sim.camera import HEIGHT, project, WIDTH
from seq_harness.sim.kinematics import forward, inverse
from seq_harness.sim.targets import JUMP_M, TargetEvent, TargetSequence

DT_S = 0.01


def _reach(targets: TargetSequence) -> list[TargetEvent]:
    """Hold the tip at the target until it jumps."""
    tip = (*targets.place, 0.0)
    events: list[TargetEvent] = []
    while not events or events[-1] is TargetEvent.NEAR:
        events.append(targets.update(tip, DT_S))
    return events


def test_a_tip_that_stays_at_the_target_makes_it_jump() -> None:
    targets = TargetSequence(3, hold_s=0.3)
    before = targets.place
    events = _reach(targets)
    assert events[-1] is TargetEvent.REACHED
    assert 30 <= len(events) <= 31
    assert targets.reached == 1
    assert math.dist(targets.place, before) >= JUMP_M


def test_a_tip_that_leaves_starts_its_stay_afresh() -> None:
    targets = TargetSequence(3, hold_s=0.05)
    x, y = targets.place
    near, away = (x + 0.019, y, 0.0), (x + 0.021, y, 0.0)
    for tip, expected in [(near, 'near'), (near, 'near'), (away, 'away')] * 5:
        assert targets.update(tip, 0.02).value == expected
    assert targets.reached == 0


def test_height_counts_as_distance() -> None:
    targets = TargetSequence(0)
    assert targets.distance((*targets.place, 0.05)) == 0.05


def test_one_seed_gives_one_sequence_and_another_gives_another() -> None:
    def places(seed: int) -> list[tuple[float, float]]:
        targets = TargetSequence(seed, hold_s=DT_S)
        return [targets.place for _ in range(5) if _reach(targets)]

    assert places(1) == places(1)
    assert places(1) != places(2)


def test_every_target_is_reachable_and_in_view() -> None:
    targets = TargetSequence(9, hold_s=DT_S)
    for _ in range(300):
        tip = forward(inverse(*targets.place)).tip
        assert targets.distance(tip) < 1e-9
        u, v = project((*targets.place, 0.0))
        assert 30 < u < WIDTH - 30
        assert 30 < v < HEIGHT - 30
        _reach(targets)


def test_each_jump_is_far_enough_to_be_told_from_noise() -> None:
    targets = TargetSequence(4, hold_s=DT_S)
    places = [targets.place for _ in range(50) if _reach(targets)]
    assert all(math.dist(a, b) >= JUMP_M for a, b in itertools.pairwise(places))
