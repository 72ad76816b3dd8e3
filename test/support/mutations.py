"""The list of mutations: what each breaks, and the tests that are to fail on it."""

from __future__ import annotations

from dataclasses import dataclass
import json

from support.sources import ROOT

LISTS = ROOT / 'test' / 'mutations'


@dataclass(frozen=True)
class Mutation:
    """One change of one place in one file."""

    name: str
    """What is wrong then, in words; no two mutations share it."""
    breaks: str
    """The rules of docs/playback.md that do not hold then."""
    file: str
    """Relative to the root of the checkout, as the files of the tests."""
    before: str
    """Stands exactly once in the file."""
    after: str
    tests: tuple[str, ...]
    """The tests that fail then, each as `FILE::FUNCTION`."""

    def applied(self, text: str) -> str:
        """
        Return the text of the file with the mutation in it.

        Raises
        ------
        ValueError
            The place is not there, or there are several like it.

        """
        count = text.count(self.before)
        if count != 1:
            raise ValueError(
                f'{self.name!r} wants this text once in {self.file}, and it stands there {count} '
                f'times: bring the mutation up to date\n{self.before}'
            )
        return text.replace(self.before, self.after)


def listed() -> list[Mutation]:
    """Return every mutation, list by list."""
    return [
        Mutation(**{**entry, 'tests': tuple(entry['tests'])})
        for path in sorted(LISTS.glob('*.json'))
        for entry in json.loads(path.read_text(encoding='utf-8'))
    ]
