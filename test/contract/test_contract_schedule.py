"""The observation schedule against the oracle beside this file."""

from collections.abc import Iterable
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
import pytest
from seq_harness.contract import check_reach, obs_schedule, Observations, ReachRefused, Schedule
from seq_harness.contract.obs_schedule import Keys

ORACLE = json.loads(Path(__file__).with_name('schedule_cases.json').read_text(encoding='utf-8'))
CASES = [
    pytest.param(case, id=f'{group}-{i}')
    for group in ('worked', 'random')
    for i, case in enumerate(ORACLE[group])
]


def as_json(schedule: Schedule | None) -> dict[str, Any] | None:
    """Write a schedule as the oracle does."""
    if schedule is None:
        return None
    return {
        'windows': {key: list(offsets) for key, offsets in schedule.windows.items()},
        'fed': dict(schedule.fed),
        'alone': list(schedule.alone),
        'every': schedule.every,
        'whole': schedule.whole,
        'pad': schedule.pad,
    }


def listed(picked: Iterable[tuple[int, Keys]]) -> list[list[Any]]:
    """Write picks as the oracle does."""
    return [[step, None if keys is None else list(keys)] for step, keys in picked]


def model_of(declared: Any) -> Observations | None:
    """Make the model of a declaration's JSON."""
    return None if declared is None else Observations.model_validate(declared)


@pytest.mark.parametrize('case', CASES)
@pytest.mark.parametrize('as_model', [False, True], ids=['json', 'model'])
def test_every_case_of_the_oracle_holds(case: dict[str, Any], as_model: bool) -> None:
    declared = model_of(case['observations']) if as_model else case['observations']
    schedule = obs_schedule.of(declared, case['rate'])
    t, t_prev, t_next = case['t'], case['t_prev'], case['t_next']
    assert as_json(schedule) == case['schedule']
    assert listed(obs_schedule.picks(schedule, t, t_prev)) == case['picks']
    assert sorted(obs_schedule.needed(schedule, t, t_prev)) == case['needed']
    assert obs_schedule.keeps_from(schedule, t) == case['keeps_from']
    assert listed(obs_schedule.wanted(schedule, t, t_next).items()) == case['wanted']
    assert obs_schedule.reads_past(schedule) is case['reads_past_schedule']
    assert obs_schedule.reads_past(declared) is case['reads_past_declaration']


@pytest.mark.parametrize('case', ORACLE['before_first_act'])
def test_the_gap_before_the_first_act_is_that_after_step_minus_one(case: dict[str, Any]) -> None:
    schedule = obs_schedule.of(case['observations'], case['rate'])
    assert as_json(schedule) == case['schedule']
    assert listed(obs_schedule.wanted(schedule, -1, case['t_next']).items()) == case['wanted']
    assert obs_schedule.keeps_from(schedule, -1) == case['keeps_from']


@pytest.mark.parametrize('case', ORACLE['envelope'], ids=lambda case: str(case['name']))
def test_a_policy_is_handed_what_was_picked(case: dict[str, Any]) -> None:
    schedule = obs_schedule.of(case['observations'], case['rate'])
    picked = obs_schedule.picks(schedule, case['t'], case['t_prev'])
    assert listed(picked) == case['picks']
    frames = dict(case['frames'])
    if 'raises' in case:
        with pytest.raises(KeyError) as caught:
            obs_schedule.envelope(picked, frames, case['own'], case['t'])
        assert caught.value.args == (case['raises']['missing_step'],)
        return
    handed = obs_schedule.envelope(picked, frames, case['own'], case['t'])
    assert handed == case['envelope']
    assert list(handed) == ['observations', 'steps']


@pytest.mark.parametrize('case', ORACLE['of_errors'])
def test_seconds_need_a_rate_where_a_count_is_converted(case: dict[str, Any]) -> None:
    if 'raises' in case:
        with pytest.raises(ValueError, match='rate'):
            obs_schedule.of(case['observations'], case['rate'])
    else:
        assert as_json(obs_schedule.of(case['observations'], case['rate'])) == case['schedule']


@pytest.mark.parametrize('case', ORACLE['declaration_validation'])
def test_a_declaration_is_taken_or_refused_where_the_oracle_does(case: dict[str, Any]) -> None:
    if case['accepted']:
        model = Observations.model_validate(case['observations'])
        assert model.model_dump(exclude_none=True) == case['normalized']
        return
    with pytest.raises(ValidationError) as caught:
        Observations.model_validate(case['observations'])
    errors = caught.value.errors()
    assert [error['type'] for error in errors] == case['error_types']
    assert ['.'.join(map(str, error['loc'])) for error in errors] == case['where']


def test_nothing_is_declared_reads_the_acts_own_observation() -> None:
    assert obs_schedule.of(None) is None
    assert obs_schedule.picks(None, 3) == [(3, None)]
    assert not obs_schedule.reads_past(None)


def test_a_window_as_long_as_what_is_kept_is_accepted() -> None:
    check_reach(obs_schedule.of({'streams': {'cam': {'at': [-1023, 0]}}}))
    check_reach(obs_schedule.of({'every': 5000}))
    check_reach(None)


@pytest.mark.parametrize(
    ('declared', 'rate'),
    [
        ({'streams': {'cam': {'at': [-1024, 0]}}}, None),
        ({'streams': {'cam': {'at': [-60.0]}}, 'unit': 'seconds'}, 30.0),
    ],
)
def test_a_window_longer_than_what_is_kept_is_refused_by_name(declared: Any, rate: Any) -> None:
    with pytest.raises(ReachRefused, match=r"'cam' reaches .* 1023 steps"):
        check_reach(obs_schedule.of(declared, rate))


def test_the_reach_is_judged_by_the_limit_of_the_worker() -> None:
    schedule = obs_schedule.of({'streams': {'cam': {'at': [-10, 0]}}})
    check_reach(schedule, kept=11)
    with pytest.raises(ReachRefused):
        check_reach(schedule, kept=10)
