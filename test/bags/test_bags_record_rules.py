"""Exact records and the rules of playback: by which they were played, and loops that were late."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
import pytest
from seq_harness.bags import charged, replay, ReplayOptions, Run
from seq_harness.bags.exact import replay_exact
from seq_harness.bags.lockstep import BagClock
from seq_harness.bags.record_format import Begin, RULES
from seq_harness.bags.record_reading import read_record, RunRecord
from seq_harness.bags.records import BagError
from seq_harness.harness import Parts
from support.recordings import Follow, motion, MS, parameters, START_NS, write


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp('bag') / 'motion', motion())


def _recorded(bag: Path, to: Path, **changes: Any) -> tuple[Run, RunRecord]:
    options = ReplayOptions(cost=charged(0.12), record=to / 'run.mcap')
    run = replay(bag, parameters(inputs__state__max_age_s=1.0, **changes), Follow(), options)
    return run, read_record(to / 'run.mcap')


@pytest.mark.parametrize('rules', [None, 1, RULES + 1])
def test_a_record_that_was_played_by_other_rules_is_refused_by_name(
    bag: Path, tmp_path: Path, rules: int | None
) -> None:
    _, record = _recorded(bag, tmp_path)
    assert record.begin.rules == RULES
    begin = {**asdict(record.begin), 'rules': rules}
    if rules is None:
        # The first records said none.
        del begin['rules']
    other = replace(record, begin=TypeAdapter(Begin).validate_python(begin))
    with pytest.raises(BagError) as caught:
        replay_exact(other)
    said = f'was played by the rules {rules or 1} of playback, by seq_harness '
    assert said in str(caught.value)
    assert f'this version plays by the rules {RULES}: ' in str(caught.value)


@pytest.mark.parametrize(('late_ms', 'stalls'), [(120, 0), (250, 1)])
def test_a_loop_that_was_late_is_replayed_as_it_was(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_ms: int, stalls: int
) -> None:
    _frozen_once(monkeypatch, late_ms)
    run, record = _recorded(bag, tmp_path)
    assert run.figures['stalls'] == stalls
    assert ('late' in run.figures['rows']['dropped']) == bool(stalls)
    exact = replay_exact(record)
    assert exact.difference is None
    assert exact.hash == exact.recorded_hash
    assert exact.reason == run.reason


def test_a_late_loop_of_a_clock_that_leaps_is_replayed_as_it_was(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaping = partial(Parts, clock_step_ns=lambda: 200 * MS)
    monkeypatch.setattr('seq_harness.bags.replaying.Parts', leaping)
    _frozen_once(monkeypatch, 250)
    run, record = _recorded(bag, tmp_path)
    assert run.figures['stalls'] == 0
    assert replay_exact(record).difference is None


def _frozen_once(monkeypatch: pytest.MonkeyPatch, late_ms: int) -> None:
    """Have the clock of a replay go on by so much at once, a second into it."""
    move = BagClock.move
    frozen: list[int] = []

    def late(self: BagClock, to_ns: int) -> None:
        if to_ns > START_NS + 1000 * MS and not frozen:
            frozen.append(to_ns)
            to_ns += late_ms * MS
        move(self, to_ns)

    monkeypatch.setattr(BagClock, 'move', late)
