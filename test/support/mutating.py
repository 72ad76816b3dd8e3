"""Apply each mutation in a scratch copy of the checkout, and show that its tests fail on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
import os
from pathlib import Path
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

from support.mutations import listed, Mutation
from support.sources import ROOT

WITHIN_S = 180.0
"""How long the tests of one mutation may take."""

LEFT_OUT = shutil.ignore_patterns('.*', '__pycache__', 'build', 'install', 'log')
FAILED = re.compile(r'^(?:FAILED|ERROR) ([^\s\[]+)', re.MULTILINE)
TESTS_PASSED, TESTS_FAILED = 0, 1


class Outcome(Enum):
    """What became of a mutation."""

    CAUGHT = 'caught'
    SURVIVED = 'SURVIVED'
    """A test that it names passed."""
    NOT_RUN = 'NOT RUN'
    """The tests could not run, so they show nothing; or there is nothing to change."""


def run_tests(copy: Path, tests: Iterable[str], *, keep_bytecode: bool) -> tuple[int, str]:
    """Run tests in a copy of the checkout; return pytest's status and what it wrote."""
    environment = {
        **os.environ,
        'PYTHONPATH': f'{copy}:{os.environ.get("PYTHONPATH", "")}',
        'PYTHONDONTWRITEBYTECODE': '' if keep_bytecode else '1',
        # Properties try the same examples every time.
        'CI': '1',
        # What an outer pytest was given is not for this one.
        'PYTEST_ADDOPTS': '',
    }
    command = [sys.executable, '-m', 'pytest', '-q', '--tb=line', '-rfE', '-p', 'no:cacheprovider']
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f'the tests did not end within {WITHIN_S:g} s'
    return done.returncode, done.stdout


def tried(mutation: Mutation, copy: Path) -> tuple[Outcome, str]:
    """Mutate a copy, run the tests that are to fail, and restore it; return what happened."""
    path = copy / mutation.file
    text, times = path.read_text(encoding='utf-8'), path.stat()
    try:
        path.write_text(mutation.applied(text), encoding='utf-8')
        status, output = run_tests(copy, mutation.tests, keep_bytecode=False)
    except ValueError as error:
        return Outcome.NOT_RUN, str(error)
    finally:
        path.write_text(text, encoding='utf-8')
        # The bytecode of the original, which is kept, goes by this time.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if status not in (TESTS_PASSED, TESTS_FAILED):
        return Outcome.NOT_RUN, output
    passed = sorted(set(mutation.tests) - set(FAILED.findall(output)))
    return (Outcome.SURVIVED if passed else Outcome.CAUGHT), '\n'.join(passed or mutation.tests)


def copies(scratch: Path, mutations: Iterable[Mutation], count: int) -> list[Path]:
    """
    Make copies of the checkout in which the tests of all mutations pass.

    Raises
    ------
    RuntimeError
        They fail as they are: what they would say of a mutation means nothing.

    """
    first = scratch / 'copy-0'
    shutil.copytree(ROOT, first, ignore=LEFT_OUT, symlinks=True)
    tests = dict.fromkeys(test for mutation in mutations for test in mutation.tests)
    status, output = run_tests(first, tests, keep_bytecode=True)
    if status != TESTS_PASSED:
        raise RuntimeError(f'the tests must pass without a mutation\n{output}')
    others = [scratch / f'copy-{number}' for number in range(1, count)]
    return [first, *(shutil.copytree(first, other, symlinks=True) for other in others)]


def try_all(
    mutations: list[Mutation], places: list[Path], say: Callable[[str], None]
) -> list[Mutation]:
    """Try each mutation, as many at once as there are copies; return those that are not caught."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for place in places:
        free.put(place)

    def attempt(mutation: Mutation) -> Outcome:
        place = free.get()
        try:
            outcome, detail = tried(mutation, place)
        finally:
            free.put(place)
        say(f'{outcome.value:9}{mutation.name} ({mutation.breaks})')
        say('\n'.join(f'         {line}' for line in detail.splitlines()))
        return outcome

    with ThreadPoolExecutor(len(places)) as executor:
        outcomes = list(executor.map(attempt, mutations))
    pairs = zip(mutations, outcomes, strict=True)
    return [mutation for mutation, outcome in pairs if outcome is not Outcome.CAUGHT]


def chosen(words: list[str]) -> list[Mutation]:
    """Return the mutations whose name, file or rules hold one of the words; all without any."""
    whole = [re.compile(rf'\b{re.escape(word)}\b') for word in words]
    return [
        mutation
        for mutation in listed()
        if not words
        or any(word.search(f'{mutation.name} {mutation.file} {mutation.breaks}') for word in whole)
    ]


def main(words: list[str]) -> int:
    """Try the mutations whose name, file or rules hold a word, or all; return the exit status."""
    wanted = chosen(words)
    if not wanted:
        print(f'expected words of a mutation, a file or a rule, and none holds any of {words}')
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='mutations-') as scratch:
        try:
            places = copies(Path(scratch), wanted, min(len(os.sched_getaffinity(0)), len(wanted)))
        except RuntimeError as error:
            print(error)
            return 1
        left = try_all(wanted, places, lambda text: print(text, flush=True))
    caught, took_s = len(wanted) - len(left), time.monotonic() - began
    print(f'{caught} of {len(wanted)} mutations are caught, in {took_s:.0f} s')
    for mutation in left:
        print(f'not caught: {mutation.name} ({mutation.file})')
    return 1 if left else 0


if __name__ == '__main__':
    raise SystemExit(main(sys.argv[1:]))
