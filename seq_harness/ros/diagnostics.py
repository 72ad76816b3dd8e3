"""The figures of a harness as diagnostics: what each level means, and that it recovers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from seq_harness.harness import Report, State

_WANTED_ENDS = ('stop', 'policy:', 'deadline', 'signal', 'deactivated')
_UNWANTED_ENDS = ('stop_input',)


def is_wanted_end(reason: str) -> bool:
    """Tell whether an episode that ended for this reason ended as somebody wished."""
    return reason.startswith(_WANTED_ENDS) and not reason.startswith(_UNWANTED_ENDS)


STARVED_S, LATE_MS = 0.5, 20.0
"""More starvation, or a larger p99 of lateness, than this is a warning."""

Level = tuple[bytes, str]


@dataclass(frozen=True)
class Facts:
    """What is told at once."""

    node: str
    report: Report
    forgiven: int
    """The number of the newest episode whose fault was reset."""
    connected: bool
    more: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, Any]]
    """By input: `rate_hz`, `age_ms`, `refused`."""
    faults: Mapping[str, str]
    kept: str | None
    """Why nothing may move; None if it may."""


def array(facts: Facts, stamp: Time) -> DiagnosticArray:
    """
    Return a status for each of: the episode, the inputs, the worker, the setpoints, the record.

    ERROR where nothing can be played until somebody acts, WARN where something is amiss, else OK.
    """
    report, figures = facts.report, dict(facts.report.figures)
    timing = {name: figures.pop(name, None) for name in _TIMING}
    others = dict(facts.more)
    policy, record = others.pop('policy', {}), others.pop('record', None)
    told = {'state': report.state.value, 'episode': report.number, **others, **figures}
    found = DiagnosticArray(
        status=[
            _status(facts, 'episode', _episode(facts), told),
            _status(facts, 'inputs', _inputs(facts), {**facts.inputs, 'fault': facts.faults}),
            _status(facts, 'worker', _worker(facts), policy),
            _status(facts, 'setpoints', _setpoints(timing, figures), timing),
        ]
    )
    if record is not None:
        found.status.append(_status(facts, 'record', _record(record), record))
    found.header.stamp = stamp
    return found


_TIMING = (
    'lateness_ms',
    'period_jitter_ms',
    'observation_age_ms',
    'setpoint_age_ms',
    'answer_to_setpoint_ms',
    'answer_delay_ms',
    'largest_gap_ms',
)


def _status(facts: Facts, part: str, level: Level, values: Mapping[str, Any]) -> DiagnosticStatus:
    status = DiagnosticStatus(name=f'{facts.node}: {part}', hardware_id='')
    status.level, status.message = level
    status.values = [KeyValue(key=key, value=str(value)) for key, value in flat(values)]
    return status


def _episode(facts: Facts) -> Level:
    report = facts.report
    if facts.kept is not None:
        return DiagnosticStatus.ERROR, facts.kept
    ended = report.state is State.IDLE and report.reason and report.number > facts.forgiven
    if ended and not is_wanted_end(report.reason):
        return DiagnosticStatus.ERROR, f'the last episode ended: {report.reason}'
    return DiagnosticStatus.OK, report.reason or report.state.value


def _inputs(facts: Facts) -> Level:
    if facts.faults:
        name, fault = next(iter(facts.faults.items()))
        return DiagnosticStatus.WARN, f'{name}: {fault}'
    silent = [name for name, figures in facts.inputs.items() if not figures['rate_hz']]
    if silent:
        return DiagnosticStatus.WARN, f'nothing arrives of {", ".join(silent)}'
    return DiagnosticStatus.OK, 'all arrive'


def _worker(facts: Facts) -> Level:
    if not facts.connected:
        return DiagnosticStatus.ERROR, 'no worker is connected'
    return DiagnosticStatus.OK, 'connected'


def _setpoints(timing: Mapping[str, Any], figures: Mapping[str, Any]) -> Level:
    late_ms = (timing.get('lateness_ms') or {}).get('p99')
    if late_ms is not None and late_ms > LATE_MS:
        return DiagnosticStatus.WARN, f'one setpoint in a hundred is {late_ms:g} ms late or more'
    if figures.get('starved_s', 0) > STARVED_S:
        return DiagnosticStatus.WARN, f'without rows for {figures["starved_s"]:g} s so far'
    return DiagnosticStatus.OK, 'punctual'


def _record(record: Mapping[str, Any]) -> Level:
    if 'error' in record:
        return DiagnosticStatus.WARN, f'nothing is recorded any more: {record["error"]}'
    dropped = sum(record['dropped'].values())
    if dropped:
        return DiagnosticStatus.WARN, f'the record lacks {dropped} items: the disk is too slow'
    return DiagnosticStatus.OK, 'whole'


def flat(values: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested mappings under dotted names."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value
