"""How long functions and files are: code that a reader takes in at a glance."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.sources import ROOT, sources

FILE_LINES = 400
FUNCTION_LINES = 45
LONG_FILES: dict[str, str] = {}
"""The files that are longer, each with the reason."""


def _lines(path: Path) -> int:
    return len((ROOT / path).read_text(encoding='utf-8').splitlines())


def _functions(path: Path) -> list[tuple[str, int]]:
    """List a file's functions, each with its number of lines."""
    return [
        (f'{path}:{node.lineno} {node.name}', (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding='utf-8')))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_file_is_long_without_a_reason() -> None:
    long = {str(path): _lines(path) for path in sources() if _lines(path) > FILE_LINES}
    assert {path: n for path, n in long.items() if path not in LONG_FILES} == {}
    assert set(LONG_FILES) == set(long), 'a file that is short again needs no reason'


@pytest.mark.parametrize('place', ['seq_harness', 'test'])
def test_nine_functions_in_ten_are_short(place: str) -> None:
    functions = [function for path in sources(place) for function in _functions(path)]
    long = [name for name, lines in functions if lines >= FUNCTION_LINES]
    assert len(long) * 10 <= len(functions), long


def test_every_file_is_ascii_in_its_code() -> None:
    """Signs outside ASCII stand in strings and comments alone, where an editor shows them."""
    for path in sources():
        names = {
            node.id
            for node in ast.walk(ast.parse((ROOT / path).read_text(encoding='utf-8')))
            if isinstance(node, ast.Name)
        }
        assert all(name.isascii() for name in names), path
