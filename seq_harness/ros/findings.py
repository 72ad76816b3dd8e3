"""What a check before motion finds: how bad it is, what was seen, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is; the worst one is the exit status."""

    OK = 0
    WARNING = 1
    """It will run, and something is amiss."""
    FAULT = 2
    """It will not run, or not as it should."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    severity: Severity
    subject: str
    """What was looked at: an input, a channel, the worker, the process."""
    said: str
    remedy: str = ''


def ok(subject: str, said: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(Severity.OK, subject, said)


def warning(subject: str, said: str, remedy: str) -> Finding:
    """Return a finding of something amiss."""
    return Finding(Severity.WARNING, subject, said, remedy)


def fault(subject: str, said: str, remedy: str) -> Finding:
    """Return a finding of what keeps the harness from running."""
    return Finding(Severity.FAULT, subject, said, remedy)


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the worst severity of all."""
    return max((finding.severity for finding in findings), default=Severity.OK)


def table(findings: Sequence[Finding]) -> str:
    """Return the findings for people, the worst first."""
    lines = []
    for finding in sorted(findings, key=lambda item: -item.severity):
        lines.append(f'{finding.severity.name:<8} {finding.subject}: {finding.said}')
        if finding.remedy:
            lines.append(f'{"":<8}   -> {finding.remedy}')
    return '\n'.join(lines)
