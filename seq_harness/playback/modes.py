"""How a player asks, joins and times, chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from seq_harness.playback.ahead import LookAhead
from seq_harness.playback.anchors import Anchor, AtArrival, AtEnd, AtObservation, AtRowsEmitted
from seq_harness.playback.asking import (
    Asking,
    ContinuingLead,
    Drain,
    Every,
    Lead,
    Reached,
    Threshold,
)
from seq_harness.playback.blending import Crossfade, FadeWhenLate, VelocitySeam
from seq_harness.playback.delays import Delays, ESTIMATES
from seq_harness.playback.ensembling import Aggregate, AGGREGATES, Ensemble
from seq_harness.playback.handoff import Append, Cut, HandOff, Replace, Seam
from seq_harness.playback.horizon import Horizon
from seq_harness.playback.kinds import Kinds
from seq_harness.playback.upsampling import Interpolation, RowMeans, Upsampling

DRAIN, LEAD, THRESHOLD, EVERY, RTC = 'drain', 'lead', 'threshold', 'every', 'rtc'
ASKING = (LEAD, DRAIN, THRESHOLD, EVERY, RTC)

CONTINUE, ARRIVAL, OBSERVATION = 'continue', 'arrival', 'observation'
ANCHORS = (CONTINUE, ARRIVAL, OBSERVATION)

REPLACE, APPEND = 'replace', 'append'
SEAMS: dict[str, Callable[[Mode], Seam]] = {
    REPLACE: lambda mode: Cut(),
    'crossfade': lambda mode: Crossfade(mode.blend_rows),
    'velocity_seam': lambda mode: VelocitySeam(mode.blend_rows),
    'ensemble': lambda mode: Ensemble(mode.ensemble_decay),
    'aggregate': lambda mode: Aggregate(mode.aggregate),
}
HANDOFFS = (CONTINUE, ARRIVAL, APPEND, *SEAMS)

ESTIMATE_NAMES = (*ESTIMATES, 'percentile')
INTERPOLATIONS = tuple(item.value for item in Interpolation)
ROW_MEANINGS = tuple(item.value for item in RowMeans)
AGGREGATE_NAMES = tuple(AGGREGATES)


WHOLE = Horizon()
"""No horizon: every row of a chunk may play."""


class ModeRefused(ValueError):
    """The chosen parts do not fit together; says which, and what would."""


@dataclass(frozen=True)
class Mode:
    """One way to play; names are among those of this module."""

    asking: str = LEAD
    lead_ns: int | None = None
    """The lead; None measures it."""
    lead_margin_ns: int = 100_000_000
    lead_cap_ns: int = 2_000_000_000
    estimate: str = 'max'
    estimate_window: int = 20
    estimate_percent: float = 90.0
    threshold: float = 0.5
    every_rows: int = 8
    """For `every`: rows from one ask to the next; for `rtc`: the rows of a chunk before one."""
    handoff: str = CONTINUE
    anchor: str | None = None
    """None takes what the hand-off is named after, else `continue`."""
    seam_rows: int = 4
    """For `continue`: over how many rows the old velocity is led into the new; 0 cuts."""
    blend_rows: int = 4
    ensemble_decay: float = 0.01
    aggregate: str = 'weighted'
    horizon: Horizon = WHOLE
    output_period_ns: int | None = None
    """From one command to the next; None emits the rows themselves."""
    interpolation: str = Interpolation.LINEAR.value
    row_means: str = RowMeans.REACHED_AT.value

    def __post_init__(self) -> None:
        """Refuse parts that contradict each other."""
        fixed = self.handoff in (APPEND, *ANCHORS)
        if fixed and self.anchor not in (None, self.handoff):
            raise ModeRefused(
                f'hand-off {self.handoff!r} anchors by itself, not at {self.anchor!r}: leave the '
                f'anchor out, or choose a hand-off among {sorted(SEAMS)}'
            )
        if self.asking == RTC and self.handoff != CONTINUE:
            raise ModeRefused(
                f'asking {RTC!r} takes hand-off {CONTINUE!r}, since the policy itself joins its '
                f'chunk to the plan; got {self.handoff!r}'
            )

    @property
    def anchors_at(self) -> str:
        """Return the anchor of its hand-off; `append` has one of its own."""
        fixed = self.handoff in (APPEND, *ANCHORS)
        return self.handoff if fixed else self.anchor or CONTINUE

    @property
    def leads_on(self) -> bool:
        """Return whether it asks with a lead for chunks that continue the plan row for row."""
        return self.asking == LEAD and self.anchors_at == CONTINUE


class Parts(TypedDict):
    """The arguments of a player that a mode decides."""

    asking: Asking
    handoff: HandOff
    horizon: Horizon
    look_ahead: LookAhead | None
    upsampling: Upsampling | None
    kinds: Kinds


def parts_of(mode: Mode, period_ns: int, kinds: Kinds | None = None) -> Parts:
    """
    Build the parts of one episode's player; `period_ns` is a row's.

    Raises
    ------
    KindRefused
        A channel's kind does not go with the mode.

    """
    kinds = kinds or Kinds()
    return {
        'asking': _asking(mode),
        'handoff': _handoff(mode, kinds),
        'horizon': mode.horizon,
        'look_ahead': LookAhead(period_ns, kinds) if mode.asking == RTC else None,
        'upsampling': _upsampling(mode, kinds),
        'kinds': kinds,
    }


def _asking(mode: Mode) -> Asking:
    delays = Delays(mode.estimate, window=mode.estimate_window, percent=mode.estimate_percent)
    if mode.asking == LEAD:
        lead = ContinuingLead if mode.leads_on else Lead
        return lead(
            cap_ns=mode.lead_cap_ns,
            margin_ns=mode.lead_margin_ns,
            fixed_ns=mode.lead_ns,
            delays=delays,
        )
    if mode.asking == THRESHOLD:
        return Threshold(mode.threshold, delays)
    if mode.asking == EVERY:
        return Every(mode.every_rows, delays)
    if mode.asking == RTC:
        return Reached(mode.every_rows, delays)
    return Drain(delays)


def _handoff(mode: Mode, kinds: Kinds) -> HandOff:
    if mode.handoff == APPEND:
        return Append()
    if mode.asking == RTC:
        return Replace(AtRowsEmitted(), FadeWhenLate(mode.blend_rows), kinds)
    seam = _seam(mode)
    # An early answer waits where its first row would else cut the plan short.
    waits = mode.asking == LEAD and mode.anchors_at == ARRIVAL
    return Replace(AtEnd() if waits else _anchor(mode.anchors_at), seam, kinds, waits=waits)


def _seam(mode: Mode) -> Seam:
    if mode.handoff == CONTINUE:
        return VelocitySeam(mode.seam_rows) if mode.seam_rows else Cut()
    return SEAMS[mode.handoff](mode) if mode.handoff in SEAMS else Cut()


def _anchor(name: str) -> Anchor:
    if name == ARRIVAL:
        return AtArrival()
    return AtObservation() if name == OBSERVATION else AtRowsEmitted()


def _upsampling(mode: Mode, kinds: Kinds) -> Upsampling | None:
    if mode.output_period_ns is None:
        return None
    how, means = Interpolation(mode.interpolation), RowMeans(mode.row_means)
    return Upsampling(mode.output_period_ns, how, means, kinds)
