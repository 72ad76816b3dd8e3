"""Faults that scripts/bench faults injects into real processes: some of each family."""

from __future__ import annotations

from collections import Counter
import re

from faults import Case, chosen, run_apart
from injections.injection import Family
from injections.limits import is_beyond, START_DISTANCE, STEP, UPPER
import pytest
from support.sources import ROOT

FAULTS, TESTED_OF_EACH = 60, 3

TESTED = [case for case in chosen('') if case[1].tested]


def test_every_injection_has_a_name_of_its_own_and_a_reason_that_is_a_pattern() -> None:
    names = Counter((family, injection.name) for family, injection in chosen(''))
    assert len(names) >= FAULTS
    assert set(names.values()) == {1}
    for _, injection in chosen(''):
        assert re.compile(injection.expected)
        assert re.fullmatch(injection.expected, '') is None, 'no reason is none'


def test_the_document_has_a_row_for_each_and_for_nothing_else() -> None:
    text = (ROOT / 'docs' / 'reliability.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (\w+) \| (.+?) \| .+ \| (?:-|\d+ ms) \| 0 \|$', text, re.MULTILINE)
    assert rows == [(family.value, injection.name) for family, injection in chosen('')]


def test_some_of_each_family_are_tests() -> None:
    tested = Counter(family for family, _ in TESTED)
    assert tested == Counter(dict.fromkeys(Family, TESTED_OF_EACH))


@pytest.mark.parametrize(
    ('value', 'before', 'measured', 'beyond'),
    [
        (0.0, 0.0, None, False),
        (0.99 * STEP, 0.0, None, False),
        (1.01 * STEP, 0.0, None, True),
        (UPPER + 0.01, UPPER, None, True),
        (float('nan'), 0.0, None, True),
        (0.99 * START_DISTANCE, None, 0.0, False),
        (START_DISTANCE + 1.01 * STEP, None, 0.0, True),
        (1.0, None, None, False),
    ],
)
def test_a_setpoint_is_beyond_its_limits_by_its_place_or_by_its_step(
    value: float, before: float | None, measured: float | None, beyond: bool
) -> None:
    def three(number: float | None) -> list[float] | None:
        return None if number is None else [0.0, 0.0, number]

    assert is_beyond([0.0, 0.0, value], three(before), three(measured)) is beyond


def test_a_setpoint_of_another_width_is_beyond_its_limits() -> None:
    assert is_beyond([0.0, 0.0], [0.0, 0.0, 0.0], None)


@pytest.mark.parametrize('case', TESTED, ids=lambda case: f'{case[0].value}: {case[1].name}')
def test_a_fault_ends_by_its_name_and_within_the_limits(case: Case) -> None:
    outcome = run_apart(case)
    assert outcome.named, f'expected {outcome.expected!r}, got {outcome.reason!r}'
    assert outcome.beyond == 0
