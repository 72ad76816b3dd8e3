"""How texts from outside are shown: in one line, without control characters, and not too long."""

from __future__ import annotations

SHOWN = 200
"""The most characters of a text from outside in a reason, a topic or a service's answer."""

LOGGED = 4000
"""The most characters of one in the log."""

_TRACEBACK = 'Traceback (most recent call last)'


def excerpt(text: object, limit: int = SHOWN) -> str:
    """
    Return what a text comes to, in one line of at most `limit` characters.

    Of a traceback that is its last line, which names the error; the line that raised it comes
    nowhere. Control characters are escaped, so that no text writes to a terminal what it likes.
    """
    lines = [line for line in str(text).splitlines() if line.strip()]
    if any(_TRACEBACK in line for line in lines):
        lines = lines[-1:]
    return _cut(escaped('\n'.join(lines).strip()), limit)


def logged(text: object) -> str:
    """Return a text for the log: at most `LOGGED` characters, its lines kept, the rest escaped."""
    lines = str(text)[: LOGGED + 1].splitlines()
    return _cut('\n'.join(escaped(line.replace('\t', '    ')) for line in lines), LOGGED)


def escaped(text: str) -> str:
    """Return a text whose characters that cannot be printed are escaped, as repr writes them."""
    if text.isprintable():
        return text
    return ''.join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f'{text[: limit - 3]}...'
