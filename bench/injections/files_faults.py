"""Faults of files: parameters, tokens, descriptions, records on a full disk, and recordings."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
import resource
import shutil
import signal
import struct
from typing import Any

from injections.injection import ended, Injection, lasts, refused, REFUSED_S
from injections.processes import OURS
from injections.rig import GOES_ON, Rig, Setup
from rosbags.rosbag2 import CompressionMode
from seq_harness.ros.node import LATCHED
from std_msgs.msg import String
from support.recordings import motion, parameters, write

BOMB_S = 20.0
"""Within this a file that would unfold must be refused."""

BOMB = '\n'.join(
    ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    + [f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 10)}]' for i in range(1, 12)]
)
"""A few lines of YAML that stand for 10 ** 12 words."""

CHUNK = b'\x06'
SIZE_AT = 1 + 8 + 16
"""Where a chunk of an MCAP declares its size, after its opcode, its length and two times."""

RECORD_BYTES = 20_000
"""What there is room for."""

UNFOLDS = r'ended with 0: replay: broken_off: .* cannot be read: .*'
FULL = r'goes on; .*(File too large|No space left).*'
CONFIGURING = r'configuring failed: .*'


def _parameter_file(text: str, within_s: float = REFUSED_S) -> Callable[[Rig], str]:
    """Return a run of the harness with such a file."""

    def run(rig: Rig) -> str:
        file = rig.folder / 'given.yaml'
        file.write_text(text)
        rig.inject(lambda rig: rig.launch('harness', '--ros-args', '--params-file', str(file)))
        return ended(rig, within_s)

    return run


def _no_file(rig: Rig) -> str:
    words = ('--ros-args', '--params-file', str(rig.folder / 'nowhere.yaml'))
    rig.inject(lambda rig: rig.launch('harness', *words))
    return ended(rig)


def _with(**changes: Any) -> Callable[[Rig], str]:
    """Return a run whose harness cannot be made, or configured, with these parameters."""

    def run(rig: Rig) -> str:
        rig.url = 'ws://127.0.0.1:1'
        rig.inject(lambda rig: rig.harness(**changes))
        return ended(rig)

    return run


def _token(text: str | None) -> Callable[[Rig], str]:
    """Return a run whose token file holds this, or is not there."""

    def run(rig: Rig) -> str:
        file = rig.folder / 'token'
        if text is not None:
            file.write_text(text)
        return _with(worker_token_file=str(file))(rig)

    return run


def _described(urdf: str) -> Callable[[Rig], str]:
    """Return a run whose robot describes itself so."""

    def run(rig: Rig) -> str:
        publisher = rig.judge.node.create_publisher(String, 'robot_description', LATCHED)
        publisher.publish(String(data=urdf))
        rig.bring_up(Setup(changes={'robot_description': 'robot_description'}))
        return ended(rig)

    return run


def _disk_full(rig: Rig) -> str:
    """Let the record grow no more while it plays; return what the log says of that."""

    def full(rig: Rig) -> None:
        pid = rig.processes.pid('harness')
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (RECORD_BYTES, RECORD_BYTES))

    changes = {'record': str(rig.folder / 'record'), 'record_images': 'all'}
    reason = lasts(full, changes=changes)(rig)
    if reason != GOES_ON:
        return reason
    rig.processes.send('harness', signal.SIGTERM)
    rig.ends('harness')
    return f'{reason}; {rig.says("harness", "File too large|No space left")}'


def _taken_away(rig: Rig) -> None:
    for file in rig.folder.glob('record*'):
        file.unlink()


def _recording_away(rig: Rig) -> str:
    return lasts(_taken_away, changes={'record': str(rig.folder / 'record')})(rig)


def _replayed(spoil: Callable[[Path], object]) -> Callable[[Rig], str]:
    """Return a replay of a recording that was spoilt; the last line that it says."""

    def run(rig: Rig) -> str:
        bag = write(rig.folder / 'bag', motion(1.0), compression=CompressionMode.STORAGE)
        spoil(bag)
        file = rig.folder / 'replay.yaml'
        file.write_text(json.dumps({'/**': {'ros__parameters': parameters()}}))
        policy = 'embedded:seq_harness.worker.policies.hold:Hold?joints=0'
        command = [*OURS, 'replay', str(bag), '--params-file', str(file), '--worker', policy]
        rig.inject(lambda rig: rig.processes.start('harness', command))
        return ended(rig, BOMB_S)

    return run


def _mcap(bag: Path) -> Path:
    return next(bag.glob('*.mcap'))


def _cut(bag: Path) -> None:
    path = _mcap(bag)
    path.write_bytes(path.read_bytes()[:200])


def _noise(bag: Path) -> None:
    _mcap(bag).write_bytes(bytes(range(256)) * 64)


def _huge(bag: Path) -> None:
    """Declare 8 GB in every chunk."""
    path = _mcap(bag)
    data = bytearray(path.read_bytes())
    at = 8
    while at < len(data) - 8:
        length = struct.unpack_from('<Q', data, at + 1)[0]
        if data[at : at + 1] == CHUNK:
            struct.pack_into('<Q', data, at + SIZE_AT, 8 << 30)
        at += 9 + length
    path.write_bytes(bytes(data))


def _metadata(text: str) -> Callable[[Path], object]:
    return lambda bag: (bag / 'metadata.yaml').write_text(text)


def _gone(bag: Path) -> None:
    shutil.rmtree(bag)


def _parameters_of(name: str) -> str:
    return json.dumps({name: {'ros__parameters': {'worker_url': 'ws://127.0.0.1:1'}}})


DEEP = '/**: ' + '{a: ' * 2_000 + '1' + '}' * 2_000
LIMIT = '<limit lower="1" upper="-1" velocity="1" effort="1"/>'
JOINT = f'<joint name="shoulder" type="revolute">{LIMIT}</joint>'

FILES = (
    Injection('parameters that are not there', r'harness: .*cannot be read.*', _no_file),
    Injection(
        'parameters that are no YAML', r'harness: .*cannot be read.*', _parameter_file('/**: {')
    ),
    Injection(
        'parameters of another node',
        r'harness: .*/other.*',
        _parameter_file(_parameters_of('/other')),
    ),
    Injection('an unknown parameter', r"harness: .*'ratehz'.*", _with(ratehz=20.0), tested=True),
    Injection('text for a truth', r"harness: .*'preview'.*", _with(preview='false')),
    Injection('parameters that unfold', r'harness: .*', _parameter_file(BOMB, BOMB_S)),
    Injection('parameters that are deep', r'harness: .*', _parameter_file(DEEP, BOMB_S)),
    Injection('a token that is not there', r'.*worker_token_file.*', _token(None)),
    Injection('a token that is empty', r'.*holds no token.*', _token(' \n'), tested=True),
    Injection(
        'authorities that are none',
        r'.*tls_ca_file.*',
        _with(worker_url='wss://127.0.0.1:1', tls_ca_file='/dev/null'),
    ),
    Injection('a description that is no XML', CONFIGURING, _described('<robot')),
    Injection(
        'a joint that has no room', CONFIGURING, _described(f'<robot name="r">{JOINT}</robot>')
    ),
    Injection('a record on a full disk', FULL, _disk_full),
    Injection('a record that is taken away', GOES_ON, _recording_away),
    Injection(
        'a record where there is no folder',
        CONFIGURING,
        refused(changes={'record': '/dev/null/record'}),
    ),
    Injection('a recording that is not there', r'replay: .*', _replayed(_gone)),
    Injection('a recording that was cut', r'replay: .*', _replayed(_cut), tested=True),
    Injection('a recording of noise', r'replay: .*', _replayed(_noise)),
    Injection('a recording that declares 8 GB', r'replay: .*', _replayed(_huge)),
    Injection('metadata that are no YAML', r'ended with 0: .*', _replayed(_metadata('{'))),
    Injection('metadata that unfold', UNFOLDS, _replayed(_metadata(BOMB))),
)
