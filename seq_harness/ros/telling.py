"""What the node tells of its episode, as one object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seq_harness.harness import Report, State
from seq_harness.ros.live_loop import LiveLoop
from seq_harness.ros.starting import WaitedInVain, WAITING


def report_of(loop: LiveLoop | None, in_vain: WaitedInVain) -> Report:
    """Return the report of the loop, or without one of the starts that never reached any."""
    return Report(State.IDLE, *in_vain, {}) if loop is None else loop.harness.report()


def episode_facts(
    loop: LiveLoop | None, report: Report, ready: bool, waits: bool, process: Mapping[str, str]
) -> dict[str, Any]:
    """Return the state, the figures and what is known beside them; a start may wait."""
    told = {
        'ready': ready,
        'state': WAITING if waits else report.state.value,
        'episode': report.number + waits,
        'reason': '' if waits else report.reason,
    }
    if loop is None:
        return told
    missing = loop.inputs.missing(loop.inputs.snapshot())
    return {**told, 'missing_inputs': missing, **report.figures, **loop.facts(), **process}
