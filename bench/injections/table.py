"""Every injection by family."""

from __future__ import annotations

from collections.abc import Sequence

from injections.injection import Family, Injection
from injections.worker_faults import WORKER

TABLE: dict[Family, Sequence[Injection]] = {
    Family.WORKER: WORKER,
}


def found(family: str, name: str) -> tuple[Family, Injection]:
    """
    Return an injection.

    Raises
    ------
    LookupError
        There is none of that name.

    """
    for kind, injections in TABLE.items():
        for injection in injections:
            if (kind.value, injection.name) == (family, name):
                return kind, injection
    raise LookupError(f'there is no injection {name!r} of the family {family!r}')
