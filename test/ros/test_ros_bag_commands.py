"""The commands play-bag and record-bag, as people run them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import signal
import subprocess
import sys

import pytest
from seq_harness.bags.reading import Bag
from seq_harness.bags.recording import Storage
from support.waiting import PATIENCE_S

DATA = Path(__file__).parents[1] / 'bags' / 'data'


@contextmanager
def _process(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    code = 'import sys; from seq_harness.cli.main import main; sys.exit(main(sys.argv[1:]))'
    process = subprocess.Popen(
        [sys.executable, '-c', code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


TOPICS = [
    '/joint_states',
    '/wrist_camera/image_raw/compressed',
    '/arm_controller/joint_trajectory',
]


@pytest.mark.parametrize('storage', [storage.value for storage in Storage])
def test_what_is_played_and_recorded_again_is_the_same_recording(
    tmp_path: Path, storage: str
) -> None:
    source, again = DATA / 'handguided_wristcam', tmp_path / 'again'
    with (
        _process('record-bag', '-o', again, '--storage', storage, *TOPICS) as recording,
        _process('play-bag', source, '--wait', '60') as playing,
    ):
        assert recording.stderr is not None
        for _ in TOPICS:
            assert 'recording /' in recording.stderr.readline()
        told, _ = playing.communicate(timeout=PATIENCE_S)
        assert playing.returncode == 0
        assert 'played 94 messages of 0.69' in told
        recording.send_signal(signal.SIGINT)
        told, rest = recording.communicate(timeout=PATIENCE_S)
        assert recording.returncode == 0
        assert f'{again}: 94 messages' in told
        assert rest == ''
    with Bag(source) as one, Bag(again) as other:
        for topic in TOPICS:
            sent, got = list(one.records([topic])), list(other.records([topic]))
            assert len(got) == len(sent)
            # The middleware fills messages up to whole words.
            for a, b in zip(sent, got, strict=True):
                assert b.data[: len(a.data)] == a.data
                assert len(b.data) - len(a.data) < 4
            gaps = [b.log_ns - a.log_ns for a, b in zip(sent, got, strict=True)]
            assert max(gaps) - min(gaps) < 3_000_000_000


def test_record_bag_ends_by_itself_and_names_what_was_never_published(tmp_path: Path) -> None:
    with _process('record-bag', '-o', tmp_path / 'bag', '--seconds', '0.5', '/nobody') as process:
        told, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert '/nobody  never published' in told


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_play_bag_soon_and_it_says_what_it_played(number: signal.Signals) -> None:
    source = DATA / 'handguided_wristcam'
    with _process('play-bag', source, '--start-paused') as process:
        assert process.stderr is not None
        assert 'waiting for subscribers of 3 topics' in process.stderr.readline()
        process.send_signal(number)
        told, rest = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert 'played 0 messages' in told
        assert rest == ''


@pytest.mark.parametrize(
    ('words', 'status', 'said'),
    [
        (['play-bag', '/nowhere'], 1, 'expected a recording at /nowhere'),
        (['play-bag', 'x', '--rate', '0'], 2, 'expected a number above 0, got 0'),
        (['play-bag', 'x', '--remap', 'a=b'], 2, 'expected OLD:=NEW, got a=b'),
        (['play-bag', 'x', '--loop'], 2, 'unknown arguments: --loop'),
        (['record-bag', '-o', '/proc/x', '/a'], 1, '/proc/x cannot be written'),
        (['record-bag', '/a'], 2, 'required: -o'),
        (['record-bag', '-o', 'x', '--seconds', 'nan', '/a'], 2, 'seconds above 0, got nan'),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(words: list[str], status: int, said: str) -> None:
    with _process(*words) as process:
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status
    assert said in told
    assert 'Traceback' not in told
