"""The Python files of this checkout, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = 'seq_harness'
EVERYWHERE = (PACKAGE, 'test', 'bench', 'launch', 'setup.py')


def sources(*places: str) -> list[Path]:
    """List the Python files in folders of the checkout, relative to its root."""
    found: set[Path] = set()
    for place in places or EVERYWHERE:
        path = ROOT / place
        found.update(path.rglob('*.py') if path.is_dir() else [path] if path.is_file() else [])
    return sorted(path.relative_to(ROOT) for path in found)


def module_name(path: Path) -> str:
    """Name the module that a file of the checkout is."""
    parts = path.with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


def imported_names(tree: ast.Module, module: str) -> Iterator[str]:
    """
    List the full names that a module imports, wherever in it.

    `from a import b` gives `a.b`: b may be a module of a.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ''
            if node.level:
                above = module.split('.')[: -node.level]
                base = '.'.join([*above, *([base] if base else [])])
            yield from (f'{base}.{alias.name}' for alias in node.names)
