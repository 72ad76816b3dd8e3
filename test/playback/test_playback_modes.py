"""Every mode of playing: golden traces, drawings, and what holds in all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import re

from hypothesis import given, settings, strategies
import numpy as np
import pytest
from seq_harness.playback.chunk import Chunk
from seq_harness.playback.modes import Mode, ModeRefused
from support.modes import chunk_of, drawing, MODES, PERIOD_NS, row_value, run
from support.uplinks import MS

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / 'docs' / 'playback.md'
EPOCH = 1_764_000_000_123_456_789

BETWEEN = {
    name: mode for name, mode in MODES.items() if name not in ('velocity_seam', 'lead_measured')
}
"""Modes in which every value is a row or lies between two."""

delays = strategies.lists(strategies.integers(0, 900), min_size=1, max_size=12)


@pytest.mark.parametrize('name', MODES)
def test_a_mode_plays_as_its_golden_trace_says(name: str) -> None:
    golden = HERE / 'golden' / f'{name}.txt'
    trace, _, _ = run(MODES[name], 3_000 * MS)
    assert trace.text().encode() == golden.read_bytes()


@pytest.mark.parametrize('name', MODES)
def test_a_mode_plays_as_its_drawing_shows(name: str) -> None:
    drawn = dict(re.findall(r'```timing (\w+)\n(.*?)\n```', DOCS.read_text(), re.DOTALL))
    assert drawn[name] == drawing(MODES[name])


@pytest.mark.parametrize('name', MODES)
def test_r12_r30_inline_and_remote_play_the_same_rows_at_the_same_instants(name: str) -> None:
    inline, _, _ = run(MODES[name], 5_000 * MS, delays_ns=[0], inline=True)
    remote, _, _ = run(MODES[name], 5_000 * MS, delays_ns=[0])
    assert inline.sent == remote.sent
    assert inline.asked == remote.asked
    assert len(remote.sent) > 40


@pytest.mark.parametrize('name', MODES)
def test_r30_a_chunk_made_on_another_thread_plays_the_same(name: str) -> None:
    with ThreadPoolExecutor(1) as pool:

        def elsewhere(number: int) -> Chunk:
            return pool.submit(chunk_of, number).result(timeout=10)

        remote, _, _ = run(MODES[name], 3_000 * MS, make=elsewhere)
    inline, _, _ = run(MODES[name], 3_000 * MS)
    assert inline.text() == remote.text()


@pytest.mark.parametrize('name', MODES)
def test_r15_a_trace_at_epoch_scale_is_the_same_trace(name: str) -> None:
    near, _, _ = run(MODES[name], 3_000 * MS)
    far, _, _ = run(MODES[name], EPOCH + 3_000 * MS, start_ns=EPOCH)
    assert [(t - EPOCH, value) for t, value in far.sent] == near.sent


@pytest.mark.parametrize('name', MODES)
@settings(max_examples=15)
@given(delays)
def test_r2_r31_whatever_the_delays_no_row_is_lost_or_played_twice(
    name: str, delays_ms: list[int]
) -> None:
    trace, player, _ = run(MODES[name], 6_000 * MS, delays_ns=[ms * MS for ms in delays_ms])
    assert all(resume > t for t, resume in trace.resumes)
    assert trace.due == sorted(trace.due)
    assert len(set(trace.due)) == len(trace.due)
    counts = player.statistics
    kept = counts.emitted + counts.merged + sum(counts.dropped.values()) + player.held
    assert counts.scheduled == kept


@pytest.mark.parametrize('name', BETWEEN)
@settings(max_examples=15)
@given(delays, strategies.integers(0, 2**32 - 1))
def test_every_value_is_a_row_or_lies_between_two(
    name: str, delays_ms: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows: list[float] = []

    def noisy(number: int) -> Chunk:
        values = rng.normal(size=8)
        rows.extend(values)
        return Chunk.at_rate([{'arm': np.array([v])} for v in values], 1e9 / PERIOD_NS)

    trace, _, _ = run(
        BETWEEN[name], 4_000 * MS, delays_ns=[ms * MS for ms in delays_ms], make=noisy
    )
    low, high = min(rows, default=0.0), max(rows, default=0.0)
    assert all(low - 1e-9 <= value <= high + 1e-9 for _, value in trace.sent)


@settings(max_examples=15)
@given(delays)
def test_g26_a_continued_plan_plays_every_row_number_once_and_in_order(
    delays_ms: list[int],
) -> None:
    mode = Mode(lead_ns=400 * MS, seam_rows=0)
    trace, _, _ = run(mode, 6_000 * MS, delays_ns=[ms * MS for ms in delays_ms])
    chunks = [int(value) // 100 for _, value in trace.sent]
    assert chunks == sorted(chunks)
    values = [value for _, value in trace.sent]
    assert len(set(values)) == len(values)
    assert set(values) <= {row_value(n, i) for n in range(chunks[-1] + 1) for i in range(8)}


def test_parts_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ModeRefused, match="'append' anchors by itself, not at 'observation'"):
        Mode(handoff='append', anchor='observation')
    with pytest.raises(ModeRefused, match="asking 'rtc' takes hand-off 'continue'"):
        Mode(asking='rtc', handoff='ensemble')
