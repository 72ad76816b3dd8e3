"""Run one injection in this process, and print its outcome as JSON."""

from __future__ import annotations

from dataclasses import asdict
import json
from pathlib import Path
import shutil
import sys
import tempfile

from injections.injection import carried_out
from injections.table import found


def main() -> None:
    """Run FAMILY NAME; a folder as third argument keeps what the processes wrote."""
    family, injection = found(sys.argv[1], sys.argv[2])
    with tempfile.TemporaryDirectory(prefix='faults-') as scratch:
        folder = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(scratch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        outcome = carried_out(family, injection, folder)
    print(json.dumps(asdict(outcome)))


if __name__ == '__main__':
    main()
