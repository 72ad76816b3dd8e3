"""One page of HTML about one run or two, with all that it needs in it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from html import escape
import json
from typing import Any

from plotly.offline import get_plotlyjs
from seq_harness.bags.report.arrays import Arrays
from seq_harness.bags.report.data import Frame, ReportData
from seq_harness.bags.report.moments import Moment, moments
from seq_harness.bags.report.plots import figure
from seq_harness.bags.report.rows import PALETTES, Rows, Run
from seq_harness.bags.report.style import CSS, POLICY, SCRIPT
from seq_harness.bags.report.tables import events_table, figures_table, link, moments_table

MOST_FRAMES = 60
"""Of a camera; a strip shows them evenly spread."""

GOOD_ENDS = ('bag_ended', 'deadline', 'deactivated', 'policy:', 'stop')

LABELS = ('A', 'B')


def page(runs: Sequence[ReportData]) -> str:
    """
    Return the page about one run, or about two side by side.

    Raises
    ------
    ValueError
        There are no runs, or more than two.

    """
    if not 1 <= len(runs) <= len(LABELS):
        raise ValueError(f'expected one run or two, got {len(runs)}')
    labels = LABELS if len(runs) > 1 else ('',)
    shown = [
        Run(label, data, moments(data), palette)
        for label, data, palette in zip(labels, runs, PALETTES, strict=False)
    ]
    title = ' and '.join(data.title for data in runs)
    return ''.join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f'<title>{escape(title)}</title><style>{CSS}</style>',
            f'<script>{get_plotlyjs()}</script></head><body>',
            *_body(shown),
            f'<script id="page-data" type="application/json">{_json(_plot(shown))}</script>',
            f'<script>{SCRIPT}</script></body></html>\n',
        )
    )


def _body(runs: Sequence[Run]) -> Iterator[str]:
    yield '<div class="runs">'
    for run in runs:
        yield from _head(run)
    yield '</div>'
    yield from _moments(runs)
    yield '<h2>Over time <button id="whole" type="button">whole run</button></h2>'
    yield (
        '<p class="note">Drag to zoom; double-click, or the button, to see all of it; click a '
        f'name to hide its lines.{_of_chunks(runs)}</p><div id="plot"></div>'
    )
    for run in runs:
        yield from _strips(run)
    yield '<h2>Figures</h2>'
    yield figures_table([(run.label, run.data) for run in runs])
    for run in runs:
        yield from _events(run)


def _of_chunks(runs: Sequence[Run]) -> str:
    origins = dict.fromkeys(run.data.predicted_from for run in runs if run.data.predictions)
    return ''.join(
        f' A chunk is drawn as it was predicted, before seams and guard, from {escape(origin)}.'
        for origin in origins
    )


def _head(run: Run) -> Iterator[str]:
    data = run.data
    yield f'<section><h1>{run.named(data.title)}</h1>'
    if data.reason:
        good = data.reason.startswith(GOOD_ENDS) and not data.reason.startswith('stop_input')
        kind = 'reason' if good else 'reason bad'
        yield f'<p>Ended by <span class="{kind}">{escape(data.reason)}</span></p>'
    else:
        yield '<p>Nothing says why it ended.</p>'
    yield f'<p class="note">{escape(data.source)}, {data.length_s:.3f} s</p>'
    if data.missing:
        yield '<div class="missing">'
        yield from (f'<p>{escape(each)}</p>' for each in data.missing)
        yield '</div>'
    yield '<details><summary>What it was run with</summary><table>'
    for name, text in data.facts.items():
        yield f'<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>'
    yield '</table></details></section>'


def _moments(runs: Sequence[Run]) -> Iterator[str]:
    yield '<h2>Where it jumped most, and what happened there</h2>'
    yield (
        '<p class="note">The largest changes of the commanded velocity from one setpoint to the '
        'next, for the range that each joint was commanded. Click a time to look there.</p>'
        '<div class="runs">'
    )
    for run in runs:
        caption = f'<h3>{escape(run.label)}</h3>' if run.label else ''
        yield f'<section>{caption}{moments_table(run.moments)}</section>'
    yield '</div>'


def _strips(run: Run) -> Iterator[str]:
    cameras = dict.fromkeys(frame.camera for frame in run.data.frames)
    for camera in cameras:
        frames = [frame for frame in run.data.frames if frame.camera == camera]
        shown = _chosen(frames, run.moments)
        count = f', {len(shown)} of {len(frames)} frames' if len(shown) < len(frames) else ''
        yield f'<h2>{run.named(camera)} at the acts{count}</h2><div class="strip">'
        yield from (_picture(frame) for frame in shown)
        yield '</div>'


def _chosen(frames: Sequence[Frame], near: Sequence[Moment]) -> list[Frame]:
    """Return frames spread evenly, and the last one before each of some moments."""
    if len(frames) <= MOST_FRAMES:
        return list(frames)
    step = (len(frames) - 1) / (MOST_FRAMES - 1)
    held = {round(number * step) for number in range(MOST_FRAMES)}
    for moment in near:
        before = [place for place, frame in enumerate(frames) if frame.at_s <= moment.at_s]
        held.update(before[-1:])
    return [frames[place] for place in sorted(held)]


def _picture(frame: Frame) -> str:
    data = base64.b64encode(frame.data).decode('ascii')
    picture = f'<img alt="" src="data:{escape(frame.media)};base64,{data}">'
    at = f'{link(frame.at_s)}<br>{escape(frame.name)}'
    return f'<figure>{picture}{at}</figure>'


def _events(run: Run) -> Iterator[str]:
    if run.data.events:
        yield f'<h2>{run.named("Events")}</h2><div class="events">'
        yield events_table(run.data.events)
        yield '</div>'


def _plot(runs: Sequence[Run]) -> dict[str, Any]:
    arrays = Arrays()
    drawn = figure(Rows(runs, arrays).all(), runs[0].data)
    return {'arrays': arrays.plain(), 'figure': drawn}


def _json(value: Any) -> str:
    """Return JSON that no text in it can end the element of."""
    text = json.dumps(value, separators=(',', ':'), allow_nan=False)
    return text.replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')
