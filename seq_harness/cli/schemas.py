"""Write the schemas of the worker wire."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
import sys

from seq_harness.contract.schemas import schema_document


def main(argv: list[str] | None = None) -> int:
    """Write one JSON document: the models' schemas and the table of errors."""
    parser = argparse.ArgumentParser(prog='seq-harness schemas', description=main.__doc__)
    parser.add_argument('-o', '--output', type=Path, help='file to write, not standard output')
    output: Path | None = parser.parse_args(argv).output
    text = json.dumps(schema_document(), indent=2) + '\n'
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        print(f'{output} cannot be written: {error.strerror}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
