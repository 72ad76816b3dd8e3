"""What the settings make of the way chunks are played."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from seq_harness.contract import Actions, WorkerDeclaration
from seq_harness.pipeline import AnswerRefused, DeclarationRefused, Pipeline
from seq_harness.pipeline.playing import Playing
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.uplink import ActAbandoned, Step
from seq_harness.settings.parameters import SettingsError
from support.robots import Bench, MS, S, settings_of

T0 = 100 * S
MODES = [
    {'asking': 'drain', 'handoff': 'arrival'},
    {'asking': 'threshold', 'ask_threshold': 0.3},
    {'asking': 'every', 'ask_rows': 2},
    {'handoff': 'observation'},
    {'handoff': 'append'},
    {'handoff': 'replace', 'anchor': 'arrival'},
    {'handoff': 'crossfade', 'blend_rows': 2},
    {'handoff': 'velocity_seam'},
    {'handoff': 'ensemble'},
    {'handoff': 'aggregate', 'aggregate': 'average'},
    {'output_hz': 50.0, 'interpolation': 'cubic', 'row_means': 'target_from'},
    {'delay_estimate': 'percentile', 'delay_percentile': 75.0},
]


def playing(rows: int | None = None, **changes: Any) -> Playing:
    return Playing(settings_of(preview=False, **changes), 100 * MS, rows)


@pytest.mark.parametrize('changes', MODES, ids=str)
def test_every_mode_plays_in_the_loop(changes: dict[str, Any]) -> None:
    bench = Bench(preview=False, **changes)
    bench.begin()
    for _ in range(4):
        bench.clock.now += 20 * MS
        bench.give(*[0.001 * i for i in range(6)])
        asked = len(bench.answers)
        until = bench.clock.now + 2 * S
        while bench.live and len(bench.answers) == asked and bench.clock.now < until:
            bench.until(bench.clock.now + 50 * MS)
    assert bench.live, bench.reason
    assert len(bench.sent) > 5


def test_the_shorter_of_the_declared_and_the_set_horizon_counts() -> None:
    assert playing(rows=8).mode.horizon == Horizon(8, None)
    assert playing(rows=8, horizon_rows=5, horizon_s=0.25).mode.horizon == Horizon(5, 250 * MS)


def test_a_preview_leads_no_velocity_on() -> None:
    assert playing().mode.seam_rows == 4
    assert Playing(settings_of(preview=True), 100 * MS, None).mode.seam_rows == 0


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'channels__arm__kind': 'delta'}, "'channels.arm.delta_of' must say of what"),
        ({'channels__arm__delta_of': 'previous'}, 'belongs to kind delta alone'),
        ({'channels__arm__kind': 'velocity'}, "'channels.arm.controller_timeout_s' must be above"),
        ({'channels__arm__horizon': 'chunk'}, 'may be chunk for a joint_trajectory alone'),
        ({'channels__arm__starvation': 'zero'}, 'zero is a place to go to'),
        ({'handoff': 'append', 'anchor': 'observation'}, "'append' anchors by itself"),
        ({'asking': 'rtc', 'handoff': 'ensemble'}, "asking 'rtc' takes hand-off 'continue'"),
        (
            {
                'output_hz': 50.0,
                'channels__arm__kind': 'delta',
                'channels__arm__delta_of': 'previous',
            },
            'cannot be up-sampled',
        ),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        playing(**changes)


def test_g30_deltas_of_the_observation_are_added_to_the_state_that_was_sent() -> None:
    absolute = playing(channels__arm__kind='delta', channels__arm__delta_of='observation').absolute
    assert absolute is not None
    inputs = Bench()
    inputs.state([0.5, -0.5])
    snapshot = inputs.inputs.snapshot()
    sent = inputs.pipeline.spec.observe(snapshot, T0, 'go')
    policy = absolute.wrap_infer(lambda step, plan=None: {'arm': np.array([0.01, 0.02])})
    assert policy(Step(0, T0, sent))['arm'].tolist() == pytest.approx([0.51, -0.48])
    assert playing().absolute is None


def test_an_arm_that_does_not_follow_ends_the_episode() -> None:
    bench = Bench(
        preview=False, asking='drain', channels__arm__max_tracking_error=0.05, tracking_error_s=0.3
    )
    bench.begin()
    bench.give(*[0.15] * 20)
    bench.until(T0 + 1 * S)
    assert 'guard: tracking error: j1 of arm is 0.15 from its command' in bench.reason


STARVING: dict[str, Any] = {'preview': False, 'asking': 'drain', 'max_request_age_s': 0.1}


def test_starved_for_too_long_the_episode_ends() -> None:
    bench = Bench(
        preview=False, asking='drain', max_starved_s=0.4, act_timeout_s=0.2, max_request_age_s=0.1
    )
    bench.begin()
    bench.give(0.0, 0.1)
    bench.until(T0 + 1 * S)
    assert bench.reason == 'starved: no rows for 0.4 s: an act takes longer than act_timeout_s'
    assert bench.harness.report().figures['starved_s'] == pytest.approx(0.6, abs=0.01)


def test_without_any_rows_the_figures_tell_the_starved_time_and_the_limit_ends_it() -> None:
    bench = Bench(preview=False, asking='drain')
    bench.begin()
    bench.give()
    bench.until(T0 + 1 * S)
    assert bench.harness.report().figures['starved_s'] > 0.5
    bench = Bench(
        preview=False, asking='drain', max_starved_s=0.4, act_timeout_s=0.1, max_request_age_s=0.1
    )
    bench.begin()
    bench.give()
    bench.until(T0 + 1 * S)
    assert bench.reason == (
        'starved: no rows for 0.4 s: 1 answer without rows, an act takes longer than act_timeout_s'
    )


@pytest.mark.parametrize('rate_hz', [10.0, 50.0])
def test_g31_rows_play_at_the_rate_that_the_policy_declares(rate_hz: float) -> None:
    pipeline = Pipeline(
        settings_of(rate_hz=rate_hz), WorkerDeclaration(instance='one', actions=Actions(hz=20))
    )
    assert pipeline.period_ns == 50 * MS
    assert pipeline.describe().startswith('20 rows/s')
    plain = Pipeline(settings_of(rate_hz=rate_hz), WorkerDeclaration(instance='one'))
    assert plain.rate_hz == rate_hz


def test_g31_no_more_rows_of_a_chunk_play_than_the_policy_declares() -> None:
    actions = Actions(hz=10, open_loop_horizon=3)
    bench = Bench(asking='drain', declaration=WorkerDeclaration(instance='one', actions=actions))
    bench.begin()
    bench.give(*[0.0] * 8)
    bench.until(T0 + 1 * S)
    assert len(bench.sent) == 3


def test_g27_a_slow_first_act_is_no_starvation_and_one_that_is_given_up_begins_it() -> None:
    bench = Bench(
        preview=False, asking='drain', max_starved_s=0.4, act_timeout_s=3.0, max_request_age_s=0.1
    )
    bench.begin()
    for second in (2, 4):
        bench.until(T0 + second * S)
        assert bench.live, 'act_timeout_s bounds an act that is under way'
        bench.answers[-1].fail(ActAbandoned('no answer within 2 s'))
    bench.until(T0 + 5 * S)
    assert bench.reason == 'starved: no rows for 2 s: 2 acts given up'


def test_a_plan_is_sent_only_to_a_policy_that_takes_one() -> None:
    settings = settings_of(asking='rtc')
    with pytest.raises(DeclarationRefused, match='no argument `plan`'):
        Pipeline(settings, WorkerDeclaration(instance='one', actions=Actions(hz=10)))
    taking = WorkerDeclaration(instance='one', actions=Actions(hz=10), rtc=True)
    assert Pipeline(settings, taking).period_ns == 100 * MS


@pytest.mark.parametrize('rows', [8, 7])
def test_rtc_that_leaves_no_row_of_a_chunk_to_go_on_from_is_refused(rows: int) -> None:
    declared = WorkerDeclaration(
        instance='one', actions=Actions(hz=10, open_loop_horizon=rows), rtc=True
    )
    with pytest.raises(DeclarationRefused, match=f'set ask_rows to at most {rows - 1}'):
        Pipeline(settings_of(asking='rtc', ask_rows=8), declared)
    plain = WorkerDeclaration(instance='one', actions=Actions(hz=10), rtc=True)
    pipeline = Pipeline(settings_of(asking='rtc', ask_rows=8), plain)
    with pytest.raises(AnswerRefused, match='delay <= horizon - executed'):
        pipeline.check_answer([[0.0, 0.0]] * rows)
    assert pipeline.check_answer([[0.0, 0.0]] * 9) == ''


def test_a_plan_that_lacks_a_column_is_refused() -> None:
    taking = WorkerDeclaration(
        instance='one', actions=Actions(hz=10), rtc=True, columns=['j1', 'j2', 'spare']
    )
    with pytest.raises(DeclarationRefused, match='every column must be commanded'):
        Pipeline(settings_of(asking='rtc'), taking)


@pytest.mark.parametrize(
    ('changes', 'shown'),
    [
        ({}, 'an episode without rows for 10 s ends (max_starved_s, automatic)'),
        (
            {'reconnect_s': 30.0},
            'an episode without rows for 35 s ends (max_starved_s, automatic)',
        ),
        ({'max_starved_s': 2.5}, 'an episode without rows for 2.5 s ends (max_starved_s)'),
        ({'max_starved_s': 0}, 'an episode without rows goes on (max_starved_s is 0)'),
    ],
)
def test_how_long_an_episode_may_starve_is_shown(changes: dict[str, Any], shown: str) -> None:
    pipeline = Pipeline(settings_of(**changes), WorkerDeclaration(instance='one'))
    assert shown in pipeline.describe()


def test_a_bound_between_automatic_and_none_is_refused() -> None:
    with pytest.raises(SettingsError, match=r'-1 \(automatic\), 0 \(no bound\) or more; got -0.5'):
        settings_of(max_starved_s=-0.5)


def starve(bench: Bench, seconds: float) -> None:
    """Answer every act without rows for so long."""
    for _ in range(round(seconds * 10)):
        if not bench.answers[-1].done():
            bench.give()
        bench.until(bench.clock.now + S // 10)


def test_by_default_an_episode_without_rows_ends_after_10_s_and_a_pause_does_not_count() -> None:
    bench = Bench(asking='drain')
    bench.begin()
    starve(bench, 8)
    bench.harness.pause()
    bench.until(bench.clock.now + 20 * S)
    assert bench.harness.resume().accepted
    starve(bench, 8)
    assert bench.live
    starve(bench, 3)
    assert re.fullmatch(r'starved: no rows for 10 s: \d+ answers without rows', bench.reason)
