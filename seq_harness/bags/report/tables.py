"""The tables of a page; whatever comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from seq_harness.bags.report.data import Event, EventKind, ReportData
from seq_harness.bags.report.figures import counted, Figure, figures, Value
from seq_harness.bags.report.moments import Moment

MOST_EVENTS = 1_000
"""Joins apart, which the plot shows."""


def link(at_s: float, around_s: float = 1.0) -> str:
    """Return a time that moves the plot there."""
    # Adding 0 makes a 0 of what is written as -0.
    shown_s = round(at_s, 3) + 0.0
    return f'<a data-at="{at_s:.6f}" data-around="{around_s:g}">{shown_s:.3f} s</a>'


def moments_table(found: Sequence[Moment]) -> str:
    """Return the largest jumps with their causes."""
    if not found:
        return '<p>No command jumped: nothing moved, or nothing was commanded.</p>'
    rows = [
        f'<tr><td class="number">{number}</td><td>{link(each.at_s)}</td>'
        f'<td>{escape(each.joint)}</td><td class="number">{each.jump:.3g}</td>'
        f'<td class="number">{each.usual:.2g}</td><td>{escape(each.unit)}</td>'
        f'<td>{_causes(each)}</td></tr>'
        for number, each in enumerate(found, 1)
    ]
    return (
        '<table><tr><th></th><th>when</th><th>joint</th><th class="number">jump</th>'
        '<th class="number">usual</th><th></th>'
        f'<th>what happened</th></tr>{"".join(rows)}</table>'
    )


def _causes(moment: Moment) -> str:
    said = '<br>'.join(escape(cause) for cause in moment.causes)
    return said or 'nothing else: the rows of one chunk say so'


def figures_table(runs: Sequence[tuple[str, ReportData]]) -> str:
    """Return the figures of one run, or of two with their differences."""
    heads = ''.join(f'<th class="number">{escape(label or "value")}</th>' for label, _ in runs)
    if len(runs) > 1:
        heads += '<th class="number">B - A</th>'
    parts = [f'<table><tr><th>figure</th>{heads}<th>unit</th><th>when</th></tr>']
    for title, of in (('', figures), ('what the run counted itself', counted)):
        columns = [{each.name: each for each in of(data)} for _, data in runs]
        names = dict.fromkeys(name for column in columns for name in column)
        if title and names:
            parts.append(f'<tr><th colspan="{len(runs) + 4}">{title}</th></tr>')
        parts += [_row(name, [column.get(name) for column in columns]) for name in names]
    return ''.join([*parts, '</table>'])


def _row(name: str, found: Sequence[Figure | None]) -> str:
    cells = ''.join(
        f'<td class="number">{"" if each is None else escape(_text(each.value))}</td>'
        for each in found
    )
    if len(found) > 1:
        cells += f'<td class="number">{_difference(found)}</td>'
    unit = next((each.unit for each in found if each is not None), '')
    at = ' '.join(link(each.at_s) for each in found if each is not None and each.at_s is not None)
    return f'<tr><td>{escape(name)}</td>{cells}<td>{escape(unit)}</td><td>{at}</td></tr>'


def _difference(found: Sequence[Figure | None]) -> str:
    values = [None if each is None else each.value for each in found]
    before, after = values
    if isinstance(before, str | bool | None) or isinstance(after, str | bool | None):
        return ''
    return f'{after - before:+.5g}'


def _text(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f'{value:.5g}'


def events_table(events: Sequence[Event]) -> str:
    """Return what happened, without the joins."""
    told = [each for each in events if each.kind is not EventKind.JOIN]
    rows = [
        f'<tr><td>{link(each.at_s)}</td><td>{each.kind.value}</td>'
        f'<td>{escape(each.text)}</td></tr>'
        for each in told[:MOST_EVENTS]
    ]
    more = len(told) - MOST_EVENTS
    rest = f'<p class="note">{more} more are not listed.</p>' if more > 0 else ''
    return f'<table>{"".join(rows)}</table>{rest}'
