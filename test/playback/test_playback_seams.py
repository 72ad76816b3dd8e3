"""How a chunk takes over: anchors and seams, computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any

import numpy as np
import pytest
from seq_harness.playback.anchors import Anchor, Arrived, AtArrival, AtObservation, AtRowsEmitted
from seq_harness.playback.blending import Crossfade, VelocitySeam
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.ensembling import Aggregate, AGGREGATES, Ensemble
from seq_harness.playback.handoff import Append, Joined, Replace, Seam
from seq_harness.playback.kinds import (
    Angle,
    Binary,
    Kind,
    kind_named,
    Kinds,
    Pose,
    Position,
    Quaternion,
)
from seq_harness.playback.plan import Plan
from seq_harness.playback.record import Record, Slowing
from support.uplinks import MS


def chunk(*values: float) -> Chunk:
    return Chunk.at_rate([{'arm': np.array([value])} for value in values], 10)


def plan(*values: float, at: int = 0) -> Plan:
    return Plan.anchored(chunk(*values), at, 0, at)


def arrived(
    new: Chunk, t: int, asked: int = 0, emitted: int = 0, record: Record | None = None
) -> Arrived:
    return Arrived(new, t, asked, emitted, record or Record())


def joined(
    old: Plan | None, new: Arrived, anchor: Anchor, seam: Seam | None = None
) -> tuple[Joined, list[tuple[int, float]]]:
    result = Replace(anchor, seam).join(old, new)
    if result.plan is None:
        return result, []
    waiting = result.plan.waiting()
    return result, [(row.due_ns // MS, float(row.commands['arm'][0])) for row in waiting]


def values_of(rows: Sequence[tuple[int, float]]) -> list[float]:
    return [value for _, value in rows]


def test_r14_the_observation_anchors_at_the_round_that_sampled_it() -> None:
    new = arrived(chunk(0, 1, 2, 3, 4), t=250 * MS, asked=0)
    result, rows = joined(None, new, AtObservation())
    assert rows == [(200, 2), (300, 3), (400, 4)]
    assert result.dropped == {'passed': 2}


def test_r14_at_the_observation_nothing_is_due_before_what_was_commanded_last() -> None:
    record = Record()
    record.note({'arm': np.array([9.0])}, 220 * MS)
    _, rows = joined(None, arrived(chunk(0, 1, 2, 3), 250 * MS, record=record), AtObservation())
    assert rows == [(300, 3)]


def test_a_chunk_whose_time_is_over_is_wholly_past() -> None:
    result, _ = joined(None, arrived(chunk(0, 1), t=200 * MS, asked=0), AtObservation())
    assert result.plan is None
    assert result.dropped == {'passed': 2}


def test_append_plays_the_old_plan_to_its_end() -> None:
    old = plan(0, 1, 2)
    old.pop_due(0)
    result = Append().join(old, arrived(chunk(10, 11), t=50 * MS))
    assert result.plan is not None
    due = [(row.due_ns // MS, row.commands['arm'][0]) for row in result.plan.waiting()]
    assert due == [(100, 1), (200, 2), (300, 10), (400, 11)]
    assert result.plan.end_ns == 500 * MS
    assert not result.dropped


def test_a_crossfade_of_two_rows_weighs_a_third_and_two_thirds() -> None:
    old = plan(0, 0, 0, 0)
    old.pop_due(0)
    new = arrived(chunk(9, 9, 9, 9), t=50 * MS, emitted=1)
    _, rows = joined(old, new, AtRowsEmitted(), Crossfade(2))
    assert rows == [(100, 3), (200, 6), (300, 9)]


def test_a_crossfade_aligns_by_time_and_ends_with_the_old_plan() -> None:
    old = plan(0, 10)
    new = arrived(chunk(100, 100, 100), t=50 * MS)
    _, rows = joined(old, new, AtArrival(), Crossfade(3))
    # At 50 ms the old plan is half way to 10; at 150 ms its last row holds; at 250 ms it is over.
    assert values_of(rows) == [pytest.approx(5 * 0.75 + 25), pytest.approx(5 + 50), 100]


def test_a_velocity_seam_follows_its_formula_and_ends_on_the_new_chunk() -> None:
    record = Record()
    record.note({'arm': np.array([0.0])}, -100 * MS)
    record.note({'arm': np.array([1.0])}, 0)
    _, rows = joined(
        None, arrived(chunk(10, 13, 17, 22), 100 * MS, record=record), AtArrival(), VelocitySeam(2)
    )
    # v_old = 1 a row; the new chunk moves by 3 into its second row, and by as much into the first.
    u_0 = (2 / 3) * 1 + (1 / 3) * 3
    u_1 = (1 / 3) * 1 + (2 / 3) * 3
    led = [1 + u_0, 1 + u_0 + u_1]
    missed = 13 - led[1]
    half = 10 * 0.5**3 - 15 * 0.5**4 + 6 * 0.5**5
    assert values_of(rows) == pytest.approx([led[0] + half * missed, 13, 17, 22])


def record_of(*commands: tuple[int, float]) -> Record:
    """Return a record of commands of the arm, each with its instant in ms."""
    record = Record()
    for ms, value in commands:
        record.note({'arm': np.array([value])}, ms * MS)
    return record


@pytest.mark.parametrize(
    ('late_ms', 'moves'), [(100, True), (149, True), (150, True), (151, False)]
)
def test_r14_a_seam_leads_nothing_on_once_the_arm_is_at_rest(late_ms: int, moves: bool) -> None:
    new = arrived(chunk(1, 2, 3, 4), late_ms * MS, record=record_of((-100, 0.0), (0, 1.0)))
    _, rows = joined(None, new, AtArrival(), VelocitySeam(3))
    assert (values_of(rows) != [1, 2, 3, 4]) is moves


@pytest.mark.parametrize('late_ms', [70, 100, 140])
def test_r14_a_seam_goes_by_the_last_two_commands_over_their_own_interval(late_ms: int) -> None:
    # 0.5 in half a row is 1 a row, whatever time has passed since.
    new = arrived(chunk(3, 5, 7), late_ms * MS, record=record_of((-50, 0.5), (0, 1.0)))
    _, rows = joined(None, new, AtArrival(), VelocitySeam(1))
    assert values_of(rows) == [3, 5, 7]
    _, rows = joined(None, new, AtArrival(), VelocitySeam(2))
    led = [
        1 + (2 / 3) * 1 + (1 / 3) * 2,
        1 + (2 / 3) * 1 + (1 / 3) * 2 + (1 / 3) * 1 + (2 / 3) * 2,
    ]
    assert values_of(rows) == pytest.approx([led[0] + 0.5 * (5 - led[1]), 5, 7])


@pytest.mark.parametrize('kind', [Position(), Angle(), Quaternion(), Pose()], ids=lambda k: k.name)
def test_r14_the_first_setpoint_after_standing_is_the_chunks_own(kind: Kind) -> None:
    def turned(angle: float) -> np.ndarray[Any, Any]:
        quaternion = np.array([0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)])
        of = {'quaternion': quaternion, 'pose': np.array([angle, 0, 0, *quaternion])}
        return of.get(kind.name, np.array([angle]))

    record = Record()
    for ms, angle in ((-100, 0.0), (0, 0.06)):
        record.note({'arm': turned(angle)}, ms * MS)
    rows = [{'arm': turned(0.06 * i)} for i in range(1, 6)]
    new = Plan.anchored(Chunk.at_rate(rows, 10), 5000 * MS, 0, 0)
    after = arrived(Chunk.at_rate(rows, 10), 5000 * MS, record=record)
    sewn = VelocitySeam(4).sew(None, new, after, Kinds({'arm': kind}))
    for row, own in zip(sewn.waiting(), rows, strict=True):
        np.testing.assert_array_equal(row.commands['arm'], own['arm'])


@pytest.mark.parametrize(('late_ms', 'left'), [(100, 1.0), (250, 0.5), (400, 0.0), (900, 0.0)])
def test_r14_a_channel_that_comes_to_rest_is_led_on_by_the_speed_it_has_left(
    late_ms: int, left: float
) -> None:
    record = record_of((-100, 0.0), (0, 1.0))
    # 1 a row runs out over 300 ms, from the end of the plan on.
    record.slowing['arm'] = Slowing(np.array([3.0]), 100 * MS, 300 * MS)
    speed = record.speed('arm', late_ms * MS, 100 * MS, Kinds())
    assert (speed is None) is (left == 0)
    assert speed is None or speed[0] * 100 * MS == pytest.approx(left)


def test_a_velocity_seam_leaves_a_first_chunk_and_switches_alone() -> None:
    _, rows = joined(None, arrived(chunk(10, 13), 0), AtArrival(), VelocitySeam(2))
    assert values_of(rows) == [10, 13]
    record = Record()
    record.note({'arm': np.array([0.0])}, -200 * MS)
    record.note({'arm': np.array([1.0])}, -100 * MS)
    kinds = Kinds({'arm': Binary()})
    new = plan(1, 1)
    kept = VelocitySeam(2).sew(None, new, arrived(chunk(1, 1), 0, record=record), kinds)
    assert [row.commands['arm'][0] for row in kept.waiting()] == [1, 1]


def test_an_ensemble_weighs_the_oldest_chunk_most() -> None:
    decay = 0.5
    hand = Replace(AtObservation(), Ensemble(decay))
    old: Plan | None = None
    for number, value in enumerate((0.0, 1.0, 5.0)):
        t = number * 100 * MS
        old = hand.join(old, arrived(chunk(*[value] * 5), t, asked=t)).plan
    assert old is not None
    weights = [math.exp(-decay * i) for i in range(3)]
    expected = (weights[1] * 1 + weights[2] * 5) / sum(weights)
    assert old.waiting()[0].commands['arm'] == pytest.approx(expected)
    # At 500 ms the first chunk says nothing any more, so that the second is the oldest.
    late = (weights[0] * 1 + weights[1] * 5) / sum(weights[:2])
    assert old.waiting()[3].commands['arm'] == pytest.approx(late)


def ensembled(kind: Kind, chunks: Sequence[Chunk], decay: float = 0.01) -> Plan:
    """Return what chunks that come 100 ms apart make together."""
    hand = Replace(AtObservation(), Ensemble(decay), Kinds({'arm': kind}))
    old: Plan | None = None
    for number, new in enumerate(chunks):
        t = number * 100 * MS
        old = hand.join(old, arrived(new, t, asked=t)).plan
    if old is None:
        raise AssertionError('no plan was made')
    return old


@pytest.mark.parametrize(
    ('switches', 'says'),
    [
        ([0, 1, 1, 1, 1, 1, 1, 1, 1, 1], 1),
        ([1, 0, 0, 1, 0], 0),
        ([0, 1], 0),
        ([1, 1, 1, 0, 0], 1),
        ([0.08, 0.0, 0.0], 0.0),
    ],
)
def test_of_a_switch_an_ensemble_says_what_most_of_its_weight_says(
    switches: list[float], says: float
) -> None:
    plan = ensembled(Binary(), [chunk(*[value] * 12) for value in switches])
    assert plan.waiting()[0].commands['arm'].tolist() == [says]


def test_evenly_weighed_an_ensemble_of_a_switch_says_the_newer_and_each_joint_for_itself() -> None:
    both = [
        Chunk.at_rate([{'arm': np.array(value)}] * 4, 10) for value in ([0.0, 1.0], [1.0, 1.0])
    ]
    assert ensembled(Binary(), both, 0.0).waiting()[0].commands['arm'].tolist() == [1, 1]
    other = [both[1], both[0]]
    assert ensembled(Binary(), other, 0.0).waiting()[0].commands['arm'].tolist() == [0, 1]


def one_by_one(kind: Kind, chunks: Sequence[Plan], at_ns: int, decay: float) -> Any:
    """Return the mean of what chunks say, oldest first, by the kind's own blend."""
    mean, total = None, 0.0
    said = [value for each in chunks if (value := each.value_at('arm', at_ns, kind)) is not None]
    for i, value in enumerate(said):
        total += math.exp(-decay * i)
        share = math.exp(-decay * i) / total
        mean = value if mean is None else kind.blend(mean, value, share)
    return mean


@pytest.mark.parametrize('name', ['position', 'angle', 'velocity', 'pose', 'quaternion'])
@pytest.mark.parametrize('shift', [0, 37 * MS])
def test_an_ensemble_is_the_mean_of_what_each_chunk_says_on_its_own(name: str, shift: int) -> None:
    kind, random = kind_named(name), np.random.default_rng(3)
    width = kind.width(3)
    placed: list[Plan] = []
    made: Plan | None = None
    for number in range(6):
        values = 0.1 * random.normal(size=(5 + number % 3, width))
        if name in ('pose', 'quaternion'):
            values[:, -1] = 1.0
            values[:, -4:] /= np.linalg.norm(values[:, -4:], axis=1, keepdims=True)
        if name == 'angle':
            values += math.pi
        new = Chunk.at_rate([{'arm': value} for value in values], 10)
        t = number * 100 * MS + number * shift
        placed.append(Plan.anchored(new, t, 0, t))
        kinds = Kinds({'arm': kind})
        made = Ensemble(0.3).sew(made, placed[-1], arrived(new, t), kinds)
    if made is None:
        raise AssertionError('no plan was made')
    for row in made.waiting():
        expected = one_by_one(kind, placed, row.due_ns, 0.3)
        apart = np.abs(kind.difference(expected, row.commands['arm']))
        assert apart.max() < (1e-9 if name in ('position', 'angle', 'velocity') else 5e-3)


@pytest.mark.parametrize(
    'chunks',
    [
        # The first holds its last row past the last instant of the second.
        [(0, 2, 400), (100, 4, 500), (100, 4, 500)],
        # The second stands on other instants, and says more only after the first's end.
        [(0, 4, 310), (170, 4, 570), (170, 4, 570)],
    ],
)
def test_an_ensemble_goes_on_as_what_its_chunks_say(chunks: Sequence[tuple[int, ...]]) -> None:
    kinds = Kinds({'arm': kind_named('position')})
    placed: list[Plan] = []
    made: Plan | None = None
    for number, (at, count, end) in enumerate(chunks):
        rows = [
            {'timestamp': 0.1 * i, 'arm': np.array([i * (1.0 + number)])} for i in range(count)
        ]
        new = Chunk.stamped([*rows, {'timestamp': (end - at) / 1e3}])
        placed.append(Plan.anchored(new, at * MS, 0, at * MS))
        made = Ensemble(0.3).sew(made, placed[-1], arrived(new, at * MS), kinds)
    if made is None:
        raise AssertionError('no plan was made')
    for row in made.waiting():
        expected = one_by_one(kinds['arm'], placed, row.due_ns, 0.3)
        assert row.commands['arm'] == pytest.approx(expected)


def test_an_ensemble_leaves_out_what_a_chunk_does_not_name() -> None:
    def mixed(value: float) -> Chunk:
        named = [{'arm': np.array([value])}, {'grip': np.array([value])}]
        return Chunk.at_rate(named * 2, 10)

    plan = ensembled(kind_named('position'), [mixed(0.0), mixed(1.0)], 0.0)
    said = [{name: float(v[0]) for name, v in row.commands.items()} for row in plan.waiting()]
    # At 100 ms the older chunk names the other channel, and at 200 ms again.
    assert said == [{'arm': 1.0}, {'grip': 1.0}, {'arm': 1.0}, {'grip': 1.0}]


@pytest.mark.parametrize(
    ('how', 'value'),
    [('weighted', 0.7), ('latest', 1.0), ('average', 0.5), ('conservative', 0.3)],
)
def test_an_aggregate_weighs_old_and_new_at_every_instant(how: str, value: float) -> None:
    assert how in AGGREGATES
    old = plan(0, 0, 0)
    new = arrived(chunk(1, 1, 1, 1), t=0)
    _, rows = joined(old, new, AtArrival(), Aggregate(how))
    assert values_of(rows) == pytest.approx([value, value, value, 1.0])
