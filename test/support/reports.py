"""Runs for reports that a test makes up, and what a page of them holds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
import json
from typing import Any

import numpy as np
from seq_harness.bags.report.data import Act, Channel, Event, EventKind, Lines, ReportData

ENDLESS = ('meta', 'link', 'img', 'br', 'input')
"""Elements that have no end tag."""


def run(seconds: float = 4.0, hz: float = 50.0, **changes: Any) -> ReportData:
    """Return a run of two joints in slow motion, sent as it was due, and measured late."""
    t_s = np.arange(round(seconds * hz)) / hz
    values = np.stack([np.sin(t_s), 0.02 * np.cos(t_s)], axis=1)
    names = ('shoulder', 'gripper')
    channel = Channel(
        name='arm',
        unit='rad',
        commanded=Lines(names, t_s, values),
        measured=Lines(names, t_s + 0.01, values),
        due_s=t_s,
    )
    made = ReportData(
        title='made up',
        source='a test',
        start_ns=1_700_000_000_000_000_000,
        length_s=seconds,
        reason='deadline',
        channels=[channel],
    )
    return replace(made, **changes)


def with_step(data: ReportData, at_s: float, size: float, joint: int = 0) -> ReportData:
    """Return a run in which one joint is commanded `size` further from an instant on."""
    (channel,) = data.channels
    lines = channel.commanded
    values = lines.values.copy()
    values[lines.t_s >= at_s - 1e-9, joint] += size
    moved = Lines(lines.names, lines.t_s, values)
    return replace(data, channels=[replace(channel, commanded=moved)])


def join(at_s: float, text: str = 'the chunk of act 7 takes over') -> Event:
    """Return a join."""
    return Event(at_s, EventKind.JOIN, text)


def act(asked_s: float, outcome: str = '') -> Act:
    """Return an act of 100 ms, or one without an answer."""
    parts = {} if outcome else {'network': 20.0, 'inference': 80.0}
    return Act('act 1', asked_s, None if outcome else asked_s + 0.1, parts, outcome)


@dataclass
class Page(HTMLParser):
    """What stands in a page."""

    text: str = ''
    """All that is read as text, scripts apart."""
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    """What the page's own script draws."""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ENDLESS:
            self._open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, attributes = self._open[-1] if self._open else ('', {})
        if attributes.get('id') == 'page-data':
            self.data = json.loads(data)
        elif tag not in ('script', 'style'):
            self.text += data

    def values(self, *names: str) -> list[str]:
        """Return the values of attributes, of all elements."""
        return [
            value
            for _, attributes in self.tags
            for name, value in attributes.items()
            if name in names and value is not None
        ]

    def traces(self, name: str) -> list[dict[str, Any]]:
        """Return the traces of a name."""
        return [each for each in self.data['figure']['data'] if each.get('name') == name]


def parsed(html: str) -> Page:
    """Return what stands in a page."""
    page = Page()
    page.feed(html)
    return page
