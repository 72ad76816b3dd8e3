"""The rows of a page as one figure of plotly's, over one axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from seq_harness.bags.report.data import EventKind, ReportData
from seq_harness.bags.report.rows import Row

GAP_PX, TOP_PX, LEGEND_PX, BOTTOM_PX = 16, 100, 22, 50

MOST_MARKS = 80
"""Vertical marks through all rows; more would hide what they mark."""

MARKED = (EventKind.STATE, EventKind.INSTRUCTION, EventKind.FAULT, EventKind.GUARD,
          EventKind.STARVED)  # fmt: skip


def figure(rows: Sequence[Row], data: ReportData) -> dict[str, Any]:
    """
    Return the figure as plain data; vertical marks are of the events of `data`.

    The script of the page puts the arrays in where the traces name them.
    """
    height = max(1, sum(row.height for row in rows) + GAP_PX * max(0, len(rows) - 1))
    layout: dict[str, Any] = {
        'height': height + TOP_PX + BOTTOM_PX,
        'margin': {'l': 90, 'r': 40, 't': TOP_PX, 'b': BOTTOM_PX},
        'hovermode': 'closest',
        'dragmode': 'zoom',
        'modebar': {'orientation': 'v'},
        'font': {'size': 11},
        'plot_bgcolor': '#fbfbfc',
        'legend': {'orientation': 'h', 'y': 1 + LEGEND_PX / height, 'yanchor': 'bottom', 'x': 0},
        'xaxis': _time_axis(rows),
        'xaxis2': {
            'matches': 'x',
            'anchor': 'y',
            'side': 'top',
            'showgrid': False,
            'zeroline': False,
            'tickformat': '~r',
        },
        'shapes': list(_marks(data)),
    }
    # Times are written above the first row too, by an axis that a trace without points keeps.
    traces: list[dict[str, Any]] = [
        {'type': 'scatter', 'xaxis': 'x2', 'yaxis': 'y', 'showlegend': False, 'hoverinfo': 'skip'}
    ]
    top_px = float(height)
    for number, row in enumerate(rows, 1):
        name = '' if number == 1 else str(number)
        bottom_px = top_px - row.height
        layout[f'yaxis{name}'] = _axis(row, max(0.0, bottom_px) / height, top_px / height)
        traces += [{**trace, 'xaxis': 'x', 'yaxis': f'y{name}'} for trace in row.traces]
        top_px = bottom_px - GAP_PX
    return {'data': traces, 'layout': layout}


def _time_axis(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        'title': {'text': 'time / s'},
        'anchor': f'y{len(rows)}' if len(rows) > 1 else 'y',
        'gridcolor': '#e4e6ea',
        'zeroline': False,
        'showspikes': True,
        'spikemode': 'across',
        'spikethickness': 1,
        'spikecolor': '#999999',
        'tickformat': '~r',
    }


def _axis(row: Row, bottom: float, top: float) -> dict[str, Any]:
    unit = f' / {row.unit}' if row.unit else ''
    title = '<br>'.join(_wrapped(f'{row.title}{unit}', max(12, row.height // 6)))
    axis: dict[str, Any] = {
        'domain': [bottom, min(1.0, top)],
        'title': {'text': title, 'font': {'size': 10}},
        'gridcolor': '#e4e6ea',
        'zeroline': False,
        'automargin': False,
    }
    if row.span is not None:
        axis['range'] = list(row.span)
    if row.ticks:
        places = sorted(row.ticks)
        axis.update(
            tickvals=places,
            ticktext=[row.ticks[place] for place in places],
            range=[places[0] - 0.8, places[-1] + 0.8],
            fixedrange=True,
        )
    return axis


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a title, cut where it is far too long, escaped."""
    line = ''
    for word in text[: 3 * width].split():
        if line and len(line) + len(word) >= width:
            yield escape(line)
            line = word
        else:
            line = f'{line} {word}'.strip()
    yield escape(line)


def _marks(data: ReportData) -> Iterator[dict[str, Any]]:
    """Yield a vertical line for each event that matters, the kinds that matter most first."""
    events = [each for kind in MARKED for each in data.events if each.kind is kind]
    for event in events[:MOST_MARKS]:
        grave = event.kind in (EventKind.FAULT, EventKind.GUARD)
        colour = '#d12f2f' if grave else '#8a8f98'
        yield {
            'type': 'line',
            'x0': event.at_s,
            'x1': event.at_s,
            'y0': 0,
            'y1': 1,
            'yref': 'paper',
            'layer': 'below',
            'line': {'color': colour, 'width': 1, 'dash': 'dot'},
        }
