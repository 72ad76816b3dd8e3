"""The figures of a harness as diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from seq_harness.harness import Report, State

_WANTED_ENDS = ('stop', 'policy:', 'deadline', 'signal', 'deactivated')


def diagnostics(
    name: str, stamp: Time, report: Report, facts: Mapping[str, Any], faults: Mapping[str, str]
) -> DiagnosticArray:
    """
    Return one status: its level from the state, its values from the figures.

    ERROR after an episode that ended by a fault, WARN while an input is refused, else OK.
    """
    status = DiagnosticStatus(name=name, hardware_id='')
    status.level, status.message = _verdict(report, faults)
    pairs = {**facts, 'state': report.state.value, 'episode': report.number, **report.figures}
    pairs.update({f'input.{key}': text for key, text in faults.items()})
    status.values = [KeyValue(key=key, value=str(value)) for key, value in flat(pairs)]
    array = DiagnosticArray(status=[status])
    array.header.stamp = stamp
    return array


def _verdict(report: Report, faults: Mapping[str, str]) -> tuple[bytes, str]:
    ended = report.state is State.IDLE and report.reason
    if ended and not report.reason.startswith(_WANTED_ENDS):
        return DiagnosticStatus.ERROR, f'the last episode ended: {report.reason}'
    if faults:
        name, fault = next(iter(faults.items()))
        return DiagnosticStatus.WARN, f'{name}: {fault}'
    return DiagnosticStatus.OK, report.reason or report.state.value


def flat(values: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested mappings under dotted names."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value
