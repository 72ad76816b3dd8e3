"""The list of mutations is one that can be run, and running it tells what is not caught."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
import shutil

import pytest
from support.mutating import Outcome, tried
from support.mutations import listed, Mutation
from support.sources import PACKAGE, ROOT

MUTATIONS = listed()
AT_LEAST = 40
CHUNK = Path(PACKAGE) / 'playback' / 'chunk.py'

TEST = """
from seq_harness.playback.chunk import to_ns

def test_an_offset_is_rounded() -> None:
    assert to_ns(0.6e-9) == 1
"""


def _functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding='utf-8'))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_r96_there_are_enough_mutations_each_with_a_name_of_its_own() -> None:
    names = Counter(mutation.name for mutation in MUTATIONS)
    assert len(names) >= AT_LEAST
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize('mutation', MUTATIONS, ids=lambda mutation: mutation.name)
def test_r96_a_mutation_changes_one_place_into_other_code(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding='utf-8')
    mutated = mutation.applied(text)
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(text))
    assert mutation.breaks
    assert mutation.file.startswith(PACKAGE)


@pytest.mark.parametrize('mutation', MUTATIONS, ids=lambda mutation: mutation.name)
def test_r96_a_mutation_names_tests_that_are_there(mutation: Mutation) -> None:
    assert mutation.tests
    for test in mutation.tests:
        file, _, function = test.partition('::')
        assert function in _functions(file), test


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give a checkout with one module and its test."""
    for path in (Path(PACKAGE) / '__init__.py', CHUNK, CHUNK.with_name('session.py')):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, tmp_path / path)
    (tmp_path / 'test_offset.py').write_text(TEST, encoding='utf-8')
    return tmp_path


@pytest.mark.parametrize(
    ('before', 'after', 'expected'),
    [
        ('round(seconds', 'int(seconds', Outcome.CAUGHT),
        ('rate * MAX_PERIOD_S < 1', 'rate < 0', Outcome.SURVIVED),
        ('round(seconds', 'round((seconds', Outcome.NOT_RUN),
        ('no such text', '', Outcome.NOT_RUN),
        ('ChunkRefused', '', Outcome.NOT_RUN),
    ],
)
def test_finding_8_only_a_test_that_fails_catches_a_mutation(
    copy: Path, before: str, after: str, expected: Outcome
) -> None:
    original = (copy / CHUNK).read_text(encoding='utf-8')
    tests = ('test_offset.py::test_an_offset_is_rounded',)
    outcome, detail = tried(Mutation('m', 'R16', str(CHUNK), before, after, tests), copy)
    assert outcome is expected, detail
    assert (copy / CHUNK).read_text(encoding='utf-8') == original
