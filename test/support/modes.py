"""One script for every mode of playing, on a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from seq_harness.playback.ahead import Ahead
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.guard import Guard, Limits
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.modes import Mode, parts_of
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.session import Observation
from support.uplinks import HandAnswer, MS

PERIOD_NS = 100 * MS
ROWS = 8
DELAYS_MS = (100, 150, 150, 250, 150, 50)
"""How long each answer of the script takes; the last one goes on."""

LEAD_NS = 250 * MS
MODES: dict[str, Mode] = {
    'drain': Mode(asking='drain', handoff='arrival'),
    'lead_continue': Mode(lead_ns=LEAD_NS, seam_rows=0),
    'lead_measured': Mode(lead_margin_ns=100 * MS, lead_cap_ns=400 * MS),
    'lead_arrival': Mode(lead_ns=LEAD_NS, handoff='arrival'),
    'lead_observation': Mode(lead_ns=LEAD_NS, handoff='replace', anchor='observation'),
    'append': Mode(lead_ns=LEAD_NS, handoff='append'),
    'threshold': Mode(asking='threshold', threshold=0.5, seam_rows=0),
    'every': Mode(asking='every', every_rows=3, seam_rows=0),
    'rtc': Mode(asking='rtc', every_rows=4, blend_rows=2),
    'crossfade': Mode(asking='threshold', handoff='crossfade', blend_rows=3),
    'velocity_seam': Mode(asking='threshold', handoff='velocity_seam', blend_rows=3),
    'ensemble': Mode(asking='every', every_rows=2, handoff='ensemble'),
    'aggregate': Mode(asking='threshold', handoff='aggregate'),
    'horizon': Mode(lead_ns=LEAD_NS, seam_rows=0, horizon=Horizon(rows=6, span_ns=450 * MS)),
    'upsample_hold': Mode(
        lead_ns=LEAD_NS, seam_rows=0, output_period_ns=50 * MS, interpolation='hold'
    ),
    'upsample_linear': Mode(lead_ns=LEAD_NS, seam_rows=0, output_period_ns=50 * MS),
    'upsample_cubic': Mode(
        lead_ns=LEAD_NS,
        seam_rows=0,
        output_period_ns=50 * MS,
        interpolation='cubic',
        row_means='target_from',
    ),
}

LIMITS = Limits(('arm',), np.array([-1e4]), np.array([1e4]), np.array([1e5]), np.array([1e4]))


def row_value(chunk: int, row: int) -> float:
    """Return what the script's chunk says for a row: the hundreds tell the chunk."""
    return 100.0 * chunk + row


def chunk_of(number: int, rows: int = ROWS) -> Chunk:
    """Return the script's chunk of that number."""
    commands = [{'arm': np.array([row_value(number, i)])} for i in range(rows)]
    return Chunk.at_rate(commands, 1e9 / PERIOD_NS)


@dataclass
class Trace:
    """What a run did, in order of time."""

    asked: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    sent: list[tuple[int, float]] = field(default_factory=list)
    due: list[int] = field(default_factory=list)
    resumes: list[tuple[int, int]] = field(default_factory=list)

    def text(self) -> str:
        """Return the run as lines, to the nanosecond."""
        events = [(t, 0, 'ask') for t in self.asked]
        events += [(t, 1, 'answer') for t in self.arrived]
        events += [(t, 2, f'emit {value:.9g}') for t, value in self.sent]
        return ''.join(f'{t:>12} {what}\n' for t, _, what in sorted(events))


class ScriptUplink:
    """Answers ask after ask with the script's chunks, each visible after its delay."""

    def __init__(
        self, delays_ns: list[int], make: Callable[[int], Chunk | None], inline: bool
    ) -> None:
        self._delays = delays_ns
        self._make = make
        self._inline = inline
        self.trace = Trace()
        self.pending: tuple[int, HandAnswer, int] | None = None
        self.aheads: list[Ahead | None] = []

    def ask(self, observation: Observation, t: int, ahead: Ahead | None = None) -> HandAnswer:
        number = len(self.trace.asked)
        self.trace.asked.append(t)
        self.aheads.append(ahead)
        answer = HandAnswer()
        delay = self._delays[min(number, len(self._delays) - 1)]
        if delay == 0 and self._inline:
            answer.give(self._make(number))
            self.trace.arrived.append(t)
        else:
            self.pending = (t + delay, answer, number)
        return answer

    def commit(self, at_ns: int) -> int:
        return at_ns

    def show(self, t: int) -> bool:
        """Make visible what is due by `t`; tell whether there was anything."""
        if self.pending is None or self.pending[0] > t:
            return False
        _, answer, number = self.pending
        self.pending = None
        answer.give(self._make(number))
        self.trace.arrived.append(t)
        return True


def player_in(
    mode: Mode, uplink: ScriptUplink, kinds: Kinds | None = None, **others: Any
) -> ChunkPlayer:
    """Return a player of that mode, with a guard that lets the script pass."""
    others.setdefault('guard', Guard({'arm': LIMITS}, PERIOD_NS, kinds))
    return ChunkPlayer(
        uplink,
        **parts_of(mode, PERIOD_NS, kinds),
        measured=lambda observation: {'arm': np.zeros(1)},
        **others,
    )


def run(
    mode: Mode,
    until_ns: int,
    *,
    delays_ns: list[int] | None = None,
    make: Callable[[int], Chunk | None] = chunk_of,
    start_ns: int = 0,
    inline: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> tuple[Trace, ChunkPlayer, ScriptUplink]:
    """
    Play a script: rounds at the instants the player asks for, and where an answer wakes it.

    An answer without delay is there within the call (`inline`), or wakes the loop right after it.
    """
    delays = delays_ns if delays_ns is not None else [ms * MS for ms in DELAYS_MS]
    uplink = ScriptUplink(delays, make, inline)
    player = player_in(mode, uplink, **(extra or {}))
    trace, t = uplink.trace, start_ns
    while t < until_ns and player.finished is None:
        uplink.show(t)
        resume = _round(player, trace, t)
        while uplink.show(t):
            resume = _round(player, trace, t)
        trace.resumes.append((t, resume))
        t = min(resume, uplink.pending[0]) if uplink.pending else resume
    return trace, player, uplink


def _round(player: ChunkPlayer, trace: Trace, t: int) -> int:
    commands, resume = player({}, t)
    if 'arm' in commands:
        trace.sent.append((t, float(commands['arm'][0])))
        if player.last_due_ns is not None:
            trace.due.append(player.last_due_ns)
    return resume


CELL_MS = 50
CELL = 6


def drawing(mode: Mode, until_ms: int = 1300) -> str:
    """
    Draw a run as lines of cells, one each 50 ms.

    What falls between two cells stands in the cell before it.
    """
    trace, _, _ = run(mode, until_ms * MS)
    cells = until_ms // CELL_MS
    lines = {
        't/ms': [str(i * CELL_MS) if i % 2 == 0 else '' for i in range(cells)],
        'ask': [''] * cells,
        'answer': [''] * cells,
        'emit': [''] * cells,
    }
    for name, instants in (('ask', trace.asked), ('answer', trace.arrived)):
        for number, t in enumerate(instants):
            lines[name][t // (CELL_MS * MS)] = chr(ord('A') + number)
    for t, value in trace.sent:
        lines['emit'][t // (CELL_MS * MS)] = f'{value:.4g}'
    drawn = (
        f'{name:<7}' + ''.join(cell.ljust(CELL) for cell in row) for name, row in lines.items()
    )
    return '\n'.join(line.rstrip() for line in drawn)
