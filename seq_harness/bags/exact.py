"""Replay an exact record: the same readings to the same code, and the setpoints compared."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from seq_harness.bags.blanks import serialised
from seq_harness.bags.commands import commanding
from seq_harness.bags.record_format import RECORDED, RULES
from seq_harness.bags.record_giving import Difference, Differs, GivingTape
from seq_harness.bags.record_reading import read_record, RunRecord
from seq_harness.bags.record_values import declaration_of, settings_of
from seq_harness.bags.records import BagError
from seq_harness.bags.setpoint_hash import SetpointHash
from seq_harness.bags.taping import taped, taped_start, TapedRequests, TapedScope
from seq_harness.bags.versions import versions
from seq_harness.harness import Harness, Limits, OnInstruction, Opened, Parts
from seq_harness.inputs import Inputs
from seq_harness.outputs import Output, Outputs
from seq_harness.pipeline import Pipeline
from seq_harness.playback.uplink import Queued, Step
from seq_harness.settings import ChannelSettings, Settings


@dataclass(frozen=True)
class Exact:
    """What came of an exact replay."""

    difference: Difference | None
    """The first one; None where every setpoint was the same to the bit."""
    rounds: int
    """How many rounds were done."""
    setpoints: int
    """How many setpoints were the same."""
    hash: str
    """The SHA-256 of those, in hex."""
    recorded_hash: str
    """Of those that the record holds; what the recorder said when it was closed, if it was."""
    reason: str
    """Why the last episode ended; empty where the record breaks off before."""
    broken: str
    """How the record breaks off; what is whole before was replayed."""
    damaged: bool
    """Whether it breaks off for bytes that changed, and not as a killed process leaves it."""
    elsewhere: dict[str, tuple[str, str]]
    """What was otherwise when it was recorded: a name, then and here."""


def replay_exact(record: RunRecord | Path | str) -> Exact:
    """
    Replay a record without a worker, in no time, and compare every setpoint.

    Raises
    ------
    BagError
        It cannot be read, was played by other rules, or lacks something that the rounds need.

    """
    held = record if isinstance(record, RunRecord) else read_record(record)
    _refuse_other_rules(held)
    whole = _whole(held)
    return _Replay(whole).run()


def _refuse_other_rules(record: RunRecord) -> None:
    """Refuse a record that was played by other rules: its setpoints would differ by them."""
    rules = record.begin.rules
    if rules == RULES:
        return
    ours = record.begin.versions.get('seq_harness', 'unknown')
    raise BagError(
        f'{record.path} was played by the rules {rules} of playback, by seq_harness {ours}; this '
        f'version plays by the rules {RULES}: replay it exactly with one that plays by {rules}'
    )


def _whole(record: RunRecord) -> RunRecord:
    """Return a record up to its last round; refuse one with a gap."""
    dropped = [kind for kind in (record.end.dropped if record.end else {}) if _needed(kind)]
    if dropped:
        raise BagError(
            f'{record.path} cannot be replayed exactly, for its recorder had to drop '
            f'{", ".join(dropped)}'
        )
    for place, numbers in (
        ('round', [item.number for item in record.rounds]),
        ('setpoint', [item.number for item in record.setpoints]),
        ('act', [item.act for item in record.asks]),
    ):
        gap = next((want for want, number in enumerate(numbers) if want != number), None)
        if gap is not None:
            raise BagError(
                f'{record.path} lacks {place} {gap}, which its recorder had to drop or the file '
                f'does not hold: it cannot be replayed exactly'
            )
    if not record.rounds:
        broken = f': {record.broken}' if record.broken else ''
        raise BagError(f'{record.path} holds no round that could be replayed{broken}')
    last = record.rounds[-1].number
    return replace(record, setpoints=[item for item in record.setpoints if item.round <= last])


def _needed(kind: str) -> bool:
    return kind.startswith(('round', 'setpoint', 'ask', 'answer'))


class _Replay:
    """One record on its way through one harness."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._settings = settings_of(record.begin.settings)
        declaration = declaration_of(record.begin.declaration)
        # In a replay a frozen state ended nothing.
        on_frozen = _ignore if record.begin.playback_clock == RECORDED else None
        self._pipeline = Pipeline(self._settings, declaration, on_frozen=on_frozen)
        self._tape = GivingTape(record, [item.name for item in self._settings.inputs])
        self._harness = self._made()

    def run(self) -> Exact:
        difference, done = None, 0
        try:
            for held in self._record.rounds:
                self._tape.begin(held)
                self._tape.end(self._turn(held.prepared_ns, held.ended))
                done += 1
        except Differs as error:
            difference = error.difference
        said = self._record.end.hash if self._record.end else _hash_of(self._record)
        found = self._tape.hash
        return Exact(
            difference,
            done,
            found.count,
            found.digest,
            said,
            self._harness.report().reason if self._idle and difference is None else '',
            self._record.broken,
            self._record.damaged,
            _elsewhere(self._record.begin.versions),
        )

    def _turn(self, prepared_ns: int | None, ended: str) -> int | None:
        if prepared_ns is not None:
            self._harness.prepare(prepared_ns)
        if not ended:
            return self._harness.round()
        self._harness.close(ended)
        return None

    @property
    def _idle(self) -> bool:
        """Whether the last round was that of no live episode."""
        return bool(self._record.rounds[-1].ended) or self._harness.expected_ns is None

    def _made(self) -> Harness:
        settings, pipeline, tape = self._settings, self._pipeline, self._tape
        inputs = Inputs(settings.inputs, max_camera_spread_s=settings['max_camera_spread_s'])
        parts = Parts(
            clock=_NoClock(),
            inputs=inputs,
            outputs=_outputs(settings, pipeline.period_ns, tape),
            spec=pipeline.spec,
            open_episode=self._open,
            limits=limits_of(settings),
            instruction=self._record.begin.instruction,
            look=inputs.snapshot,
            unavailable=lambda snapshot: None,
            on_instruction=OnInstruction(settings['on_instruction']),
            manual=pipeline.by_hand() if settings['manual_commands'] else None,
            requests=TapedRequests(tape),
        )
        return taped(parts, tape).harness()

    def _open(self) -> Opened:
        with ExitStack() as stack:
            scope = TapedScope(self._tape, _NoPolicy())
            opened = self._pipeline.open(scope, taped_start(self._tape, _start_nothing), stack)
            opened.stack = stack.pop_all()
            return opened


def limits_of(settings: Settings) -> Limits:
    """Return how long things may take, as the parameters say."""
    return Limits(
        episode_ns=round(settings['episode_s'] * 1e9) or None,
        inputs_ns=round(settings['inputs_timeout_s'] * 1e9),
    )


def _outputs(settings: Settings, period_ns: int, tape: GivingTape) -> Outputs:
    """Return outputs that make the messages of a node and send them to nobody."""

    def stamp_ns() -> int:
        return tape.read('ros_ns', lambda: 0, 0)

    def output(item: ChannelSettings) -> Output:
        encode = commanding(item, period_ns, stamp_ns)
        return Output(lambda value: serialised(encode(value)), lambda message: None)

    return Outputs({item.name: output(item) for item in settings.channels})


def _ignore(topic: str, text: str) -> None:
    """Take no notice."""


def _elsewhere(then: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    pairs = {name: (then.get(name, ''), here) for name, here in versions().items() if here}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _hash_of(record: RunRecord) -> str:
    found = SetpointHash()
    for setpoint in record.setpoints:
        found.add(setpoint, record.messages[setpoint.number])
    return found.digest


class _NoClock:
    """Stands for a clock whose readings a tape gives."""

    def now_ns(self) -> int:
        return 0


class _NoPolicy:
    """Stands for a policy whose answers a tape gives."""

    def infer(self, step: Step, plan: Any = None) -> Any:
        raise BagError('an exact replay asks no policy')

    def observe(self, step: Step) -> Queued:
        return Queued.ACCEPTED

    def skip(self, number: int) -> None:
        """Take no notice."""

    def expect(self, next_ask: int) -> None:
        """Take no notice."""

    def retire(self) -> None:
        """Give up nothing."""

    def close(self) -> None:
        """Close nothing."""


def _start_nothing(work: Any) -> NoReturn:
    raise BagError('an exact replay asks no policy')
