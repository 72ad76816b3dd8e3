"""Every injection by family."""

from __future__ import annotations

from collections.abc import Sequence

from injections.clock_faults import CLOCK
from injections.console_faults import CONSOLE
from injections.files_faults import FILES
from injections.injection import Family, Injection
from injections.process_faults import PROCESS
from injections.proxy_faults import PROXY
from injections.sensors_faults import SENSORS
from injections.worker_faults import WORKER

TABLE: dict[Family, Sequence[Injection]] = {
    Family.WORKER: WORKER,
    Family.PROXY: PROXY,
    Family.SENSORS: SENSORS,
    Family.CLOCK: CLOCK,
    Family.PROCESS: PROCESS,
    Family.CONSOLE: CONSOLE,
    Family.FILES: FILES,
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
