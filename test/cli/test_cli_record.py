"""Exact records at the command line: made by the demo, replayed without a worker."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
import re
import subprocess
import sys

from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader
from mcap.writer import Writer
import numpy as np
import pytest
from seq_harness.bags import charged, replay, ReplayOptions
from seq_harness.cli import replay as command
from support.driving import patient_demo
from support.recordings import Follow, motion, parameters, write
from support.waiting import PATIENCE_S


@pytest.fixture(scope='module')
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('record')
    bag = write(folder / 'motion', motion())
    options = ReplayOptions(cost=charged(0.12), record=folder / 'run.mcap')
    replay(bag, parameters(), Follow(), options)
    return folder / 'run.mcap'


def _copied(record: Path, to: Path, change: Callable[[str, int, bytes], bytes]) -> Path:
    """Copy a record, each message as `change` makes it of its topic, sequence and data."""
    ids: dict[int, int] = {}
    channels: dict[int, tuple[str, int]] = {}
    with record.open('rb') as stream, to.open('wb') as out:
        writer = Writer(out)
        writer.start()
        for item in StreamReader(stream).records:
            if isinstance(item, Schema) and item.id not in ids:
                ids[item.id] = writer.register_schema(item.name, item.encoding, item.data)
            elif isinstance(item, Channel) and item.id not in channels:
                made = writer.register_channel(
                    item.topic, item.message_encoding, ids[item.schema_id]
                )
                channels[item.id] = item.topic, made
            elif isinstance(item, Message):
                topic, made = channels[item.channel_id]
                data = change(topic, item.sequence, item.data)
                writer.add_message(made, item.log_time, data, item.publish_time, item.sequence)
        writer.finish()  # type: ignore[no-untyped-call]
    return to


def test_a_record_is_replayed_to_the_same_hash(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / 'told.json'
    assert command.main(['--exact', str(record), '--json', str(told)]) == 0
    out = capsys.readouterr().out
    exact = json.loads(told.read_text())
    assert exact['difference'] is None
    assert exact['hash'] == exact['recorded_hash']
    assert re.findall(r'hash.* (\w{64})', out) == [exact['hash']] * 2


def test_the_first_difference_is_told_with_its_round_and_topic(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(topic: str, sequence: int, data: bytes) -> bytes:
        if topic == 'record/begin':
            return data.replace(np.__version__.encode(), b'1.0.0')
        late = topic == 'setpoint/arm' and sequence >= 4
        return data[:-1] + bytes([data[-1] ^ 0x80]) if late else data

    changed = _copied(record, tmp_path / 'changed.mcap', change)
    assert command.main(['--exact', str(changed)]) == 1
    errors = capsys.readouterr().err
    assert re.search(r'first difference: round \d+, setpoint/arm: expected .*; came ', errors)
    assert f'recorded with numpy 1.0.0; here is {np.__version__}' in errors


def test_a_copy_that_changes_nothing_is_the_same(record: Path, tmp_path: Path) -> None:
    copy = _copied(record, tmp_path / 'copy.mcap', lambda topic, sequence, data: data)
    assert command.main(['--exact', str(copy)]) == 0


def test_what_is_no_record_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / 'other.mcap'
    other.write_bytes(b'\x89MCAP0\r\n')
    assert command.main(['--exact', str(other)]) == 1
    assert 'other.mcap' in capsys.readouterr().err


def test_a_bag_still_needs_parameters_and_a_worker(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main([str(record)])
    assert '--params-file and --worker' in capsys.readouterr().err


def test_the_demo_records_what_is_replayed_to_the_same_hash(tmp_path: Path) -> None:
    record = tmp_path / 'demo.mcap'
    demo = subprocess.run(
        [
            *(sys.executable, '-m', 'seq_harness.cli.main', 'demo', '--seconds', '2'),
            *('--params-file', str(patient_demo(tmp_path)), '--record', str(record)),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert 'the targets were not reached: stop' in demo.stderr
    again = subprocess.run(
        [sys.executable, '-m', 'seq_harness.cli.main', 'replay', '--exact', str(record)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    said = re.findall(r'record: hash +(\w{64})', demo.stdout)
    assert said == re.findall(r'^hash +(\w{64})', again.stdout, re.M)
    assert len(said) == 1
