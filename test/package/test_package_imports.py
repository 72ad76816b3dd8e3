"""Which room of the package may import which, and which third parties."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
import sys

import pytest
from support.sources import imported_names, module_name, PACKAGE, ROOT, sources

# What an entry names is a room, or one module of a room.
TYPES = {f'playback.{name}' for name in ('answer', 'channels', 'chunk', 'session', 'uplink')}
CORE = {'contract', 'messages', 'settings', *TYPES}
LOOP = {'episode', 'harness', 'inputs', 'observation', 'outputs', 'pipeline'}
LOWER = {'contract', 'messages', 'playback', 'settings', 'sim', *LOOP}
ROOMS: dict[str, set[str]] = {
    'contract': set(),
    'playback': set(),
    'sim': set(),
    'settings': set(),
    'messages': {'contract'},
    'inputs': CORE,
    'outputs': CORE,
    'episode': CORE,
    'observation': CORE | {'inputs'},
    'harness': {'playback', 'settings', 'inputs', 'outputs', 'observation', 'episode'},
    'pipeline': CORE | {'playback'} | LOOP,
    'client': CORE | {'observation'},
    'client.embedded': CORE | {'observation', 'worker'},
    'worker': {'contract'},
    'worker.policies': {'contract', 'sim'},
    'bags': LOWER | {'client'},
    'ros': LOWER | {'client', 'bags'},
    'cli': LOWER | {'client', 'bags', 'ros', 'worker'},
}
# What may import launch, which wheels and robots may lack.
LAUNCHES = {'launch/', 'test/launch/', 'test/support/launching.py'}
ROS = ('rclpy', '_msgs', '_interfaces', 'std_srvs', 'ament_', 'launch')


def _rule_of(module: str) -> set[str]:
    """Find what a module may import: the entry of the longest name that holds it."""
    parts = module.split('.')[1:]
    for length in range(len(parts), 0, -1):
        if '.'.join(parts[:length]) in ROOMS:
            return ROOMS['.'.join(parts[:length])]
    pytest.fail(f'{module} lies in no room: name its room in the import table')


def _strangers(module: str, tree: ast.Module) -> Iterator[str]:
    """List what a module imports of ours from rooms that are closed to it."""
    own = module.split('.')[1]
    open_to_it = _rule_of(module)
    for name in imported_names(tree, module):
        parts = name.split('.')
        if parts[0] != PACKAGE or len(parts) == 1 or parts[1] == own:
            continue
        if parts[1] not in open_to_it and '.'.join(parts[1:3]) not in open_to_it:
            yield name


@pytest.mark.parametrize('path', sources(PACKAGE), ids=str)
def test_a_room_imports_only_what_the_table_opens_to_it(path: Path) -> None:
    module = module_name(path)
    if module == PACKAGE:
        assert not list(imported_names(_tree(path), module))
        return
    assert not list(_strangers(module, _tree(path)))


def test_only_the_room_ros_and_commands_import_ros() -> None:
    importers = {
        module_name(path).split('.')[1]
        for path in sources(PACKAGE)
        for name in imported_names(_tree(path), module_name(path))
        if _is_ros(name)
    }
    assert importers <= {'ros', 'cli'}


def test_commands_import_rclpy_and_messages_through_the_room_ros() -> None:
    direct = {
        name
        for path in sources(f'{PACKAGE}/cli')
        for name in imported_names(_tree(path), module_name(path))
        if _is_ros(name) and not name.startswith('ament_index_python')
    }
    assert not direct


def test_only_launch_files_and_their_tests_import_launch() -> None:
    importers = {
        str(path)
        for path in sources(PACKAGE, 'launch', 'test', 'bench', 'setup.py')
        for name in imported_names(_tree(path), module_name(path))
        if name.split('.')[0].startswith('launch')
    }
    assert not {path for path in importers if not path.startswith(tuple(LAUNCHES))}


def test_the_table_speaks_of_rooms_that_are_there() -> None:
    def is_there(room: str) -> bool:
        path = ROOT / PACKAGE / room.replace('.', '/')
        return path.is_dir() or path.with_suffix('.py').is_file()

    assert not {room for room in ROOMS if '.' not in room and not is_there(room)}


def test_a_forbidden_import_is_seen_in_every_form() -> None:
    text = (
        'import seq_harness.ros.node\n'
        'from seq_harness import worker\n'
        'from seq_harness.cli import main\n'
        'from ..bags import replay\n'
        'def later():\n    from seq_harness.sim.arm import Arm\n'
    )
    seen = set(_strangers('seq_harness.contract.wire', ast.parse(text)))
    assert seen == {
        'seq_harness.ros.node',
        'seq_harness.worker',
        'seq_harness.cli.main',
        'seq_harness.bags.replay',
        'seq_harness.sim.arm.Arm',
    }


def _tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding='utf-8'))


def _is_ros(name: str) -> bool:
    top = name.split('.')[0]
    return top not in sys.stdlib_module_names and (
        top.startswith(ROS) or top.endswith(ROS) or top == 'rosidl_runtime_py'
    )
