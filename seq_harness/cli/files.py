"""Files that a command reads or writes: refused at its start where they cannot be."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def writable(text: str) -> Path:
    """
    Return the path of a file that can be written, without touching it; a type for argparse.

    Raises
    ------
    argparse.ArgumentTypeError
        It is a folder, lies in none that is there, or may not be written.

    """
    path = Path(text)
    folder = path.parent
    if path.is_dir():
        raise argparse.ArgumentTypeError(f'expected a file to write, got the folder {text}')
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(
            f'expected a file in a folder that is there, got {text}: there is no folder {folder}'
        )
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f'expected a file that may be written, got {text}')
    return path


def readable(text: str) -> Path:
    """
    Return the path of a file that can be read; a type for argparse.

    Raises
    ------
    argparse.ArgumentTypeError
        It is not there, is a folder, or may not be read.

    """
    path = Path(text)
    if not path.is_file() or not os.access(path, os.R_OK):
        raise argparse.ArgumentTypeError(f'expected a file that can be read, got {text}')
    return path
