"""The table of faults and the tests that it names."""

from __future__ import annotations

import ast
import re

from support.sources import ROOT, sources

TABLE = (ROOT / 'docs' / 'faults.md').read_text(encoding='utf-8')
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


def test_every_fault_stands_once_in_order_and_names_a_test() -> None:
    rows = list(ROW.finditer(TABLE))
    numbers = [int(row[1][1:]) for row in rows]
    assert numbers == sorted(set(numbers))
    assert not [row[1] for row in rows if '`test_' not in row[0]]
