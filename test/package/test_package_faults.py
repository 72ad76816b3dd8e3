"""The table of faults and the tests that it names."""

from __future__ import annotations

import ast
import re

import pytest
from support.sources import ROOT, sources

TABLE = (ROOT / 'docs' / 'faults.md').read_text(encoding='utf-8')
FAULTS = 64
"""How many reports there are."""

ROW = re.compile(r'^\| (G\d+) \|.*\|$', re.MULTILINE)


def _tests() -> set[str]:
    trees = (ast.parse((ROOT / path).read_text(encoding='utf-8')) for path in sources('test'))
    return {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith('test_')
    }


def test_every_test_that_the_table_names_is_there() -> None:
    named = set(re.findall(r'`(test_\w+)`', TABLE))
    assert named
    assert named <= _tests()


def test_every_fault_stands_once_and_in_order() -> None:
    numbers = [int(row[1][1:]) for row in ROW.finditer(TABLE)]
    assert numbers == list(range(1, FAULTS + 1)), 'each is in the table, as each touches this node'
    assert f'all {FAULTS} of them touch this node' in TABLE


@pytest.mark.parametrize('row', ROW.finditer(TABLE), ids=lambda row: str(row[1]))
def test_every_fault_has_a_test_that_carries_its_number(row: re.Match[str]) -> None:
    assert re.search(rf'`test_(?:g\d+_)*{row[1].lower()}_', row[0])


def test_every_test_that_carries_a_number_stands_in_the_table() -> None:
    numbered = {name for name in _tests() if re.match(r'test_g\d', name)}
    for name in sorted(numbered):
        rows = [row[0] for row in ROW.finditer(TABLE) if f'`{name}`' in row[0]]
        assert rows, name
