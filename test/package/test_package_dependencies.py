"""Every package that the code imports is declared, with its reason."""

from __future__ import annotations

import ast
from pathlib import Path
import re
import sys
from xml.etree import ElementTree

from support.sources import imported_names, module_name, PACKAGE, ROOT, sources

# import name: (name in setup.py, rosdep key in package.xml; None where there is none)
PYTHON: dict[str, tuple[str, str | None]] = {
    'PIL': ('Pillow', 'python3-pil'),
    'aiohttp': ('aiohttp', 'python3-aiohttp'),
    'lz4': ('lz4', None),
    'matplotlib': ('matplotlib', 'python3-matplotlib'),
    'mcap': ('mcap', None),
    'msgpack': ('msgpack', 'python3-msgpack'),
    'numpy': ('numpy', 'python3-numpy'),
    'plotly': ('plotly', None),
    'pydantic': ('pydantic', 'python3-pydantic'),
    'pytest': ('pytest', 'python3-pytest'),
    'rosbags': ('rosbags', None),
    'tqdm': ('tqdm', 'python3-tqdm'),
    'typing_extensions': ('typing-extensions', 'python3-typing-extensions'),
    'zstandard': ('zstandard', None),
    'yaml': ('PyYAML', 'python3-yaml'),
    'websockets': ('websockets', 'python3-websockets'),
}
DOCUMENT = (ROOT / 'docs' / 'dependencies.md').read_text(encoding='utf-8')
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()


def _imported() -> set[str]:
    """List the third parties that the package and its launch files import."""
    tops: set[str] = set()
    for path in sources(PACKAGE, 'launch'):
        names = imported_names(_tree(path), module_name(path))
        tops.update(name.split('.')[0] for name in names)
    return tops - set(sys.stdlib_module_names) - {PACKAGE}


def _named() -> set[str]:
    """List the packages whose messages the package finds by their types' names."""
    texts = (
        node.value
        for path in sources(PACKAGE)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = (re.fullmatch(r'(\w+)/(?:msg|action)/\w+', text) for text in texts)
    return {match[1] for match in found if match}


def _declared(kind: str) -> set[str]:
    return {str(entry.text) for entry in MANIFEST.iter(kind)}


def _required() -> set[str]:
    """List the names of the distributions that setup.py requires, extras included."""
    strings = (
        node.value
        for node in ast.walk(_tree(Path('setup.py')))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = (re.fullmatch(r'([A-Za-z][\w.-]*)(?:[<>=!~].*)?', text) for text in strings)
    return {match[1] for match in found if match}


def test_what_is_imported_is_declared_to_ros() -> None:
    python = {key for top in _imported() & set(PYTHON) if (key := PYTHON[top][1])}
    ros = _imported() - set(PYTHON)
    assert python | ros <= _declared('exec_depend')


def test_what_is_imported_is_declared_to_pip() -> None:
    assert {PYTHON[top][0] for top in _imported() & set(PYTHON)} <= _required()


def test_what_is_declared_is_imported() -> None:
    python = {key for top in _imported() & set(PYTHON) if (key := PYTHON[top][1])}
    assert _declared('exec_depend') <= python | (_imported() - set(PYTHON)) | _named()


def test_messages_that_are_found_by_name_are_declared_unless_a_robot_may_lack_them() -> None:
    assert _named() - _declared('exec_depend') == {
        'control_msgs',
        'franka_msgs',
        'moveit_msgs',
    }


def test_every_dependency_has_its_reason() -> None:
    declared = _declared('exec_depend') | _declared('test_depend')
    python = {name for name, _ in PYTHON.values()}
    missing = {name for name in declared | python if f'`{name}`' not in DOCUMENT}
    assert not missing


def test_both_manifests_name_one_version() -> None:
    version = MANIFEST.findtext('version')
    assert f"version='{version}'" in (ROOT / 'setup.py').read_text(encoding='utf-8')
    changes = (ROOT / 'CHANGELOG.rst').read_text(encoding='utf-8')
    assert re.search(rf'^{re.escape(str(version))}\b', changes, re.MULTILINE)


def _tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding='utf-8'))
