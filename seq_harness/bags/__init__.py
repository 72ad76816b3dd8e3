"""Reading, writing and replaying rosbag2 recordings."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from seq_harness.bags.charges import charged, charged_as_recorded, charged_real, uncharged
    from seq_harness.bags.exact import Exact, replay_exact
    from seq_harness.bags.faults import BagFault, Fault, FaultKind, OnFault
    from seq_harness.bags.record_reading import read_record, RunRecord
    from seq_harness.bags.replaying import replay, ReplayOptions, Run
    from seq_harness.bags.setpoints import Setpoints

_HOMES = {
    'charges': ('charged', 'charged_as_recorded', 'charged_real', 'uncharged'),
    'exact': ('Exact', 'replay_exact'),
    'faults': ('BagFault', 'Fault', 'FaultKind', 'OnFault'),
    'record_reading': ('RunRecord', 'read_record'),
    'replaying': ('replay', 'ReplayOptions', 'Run'),
    'setpoints': ('Setpoints',),
}

__all__ = [
    'BagFault',
    'Exact',
    'Fault',
    'FaultKind',
    'OnFault',
    'ReplayOptions',
    'Run',
    'RunRecord',
    'Setpoints',
    'charged',
    'charged_as_recorded',
    'charged_real',
    'read_record',
    'replay',
    'replay_exact',
    'uncharged',
]


def __getattr__(name: str) -> Any:
    """Import a name on its first use, so that what only reads bags loads no harness."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f'{__name__}.{module}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
