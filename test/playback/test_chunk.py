"""What makes a chunk, and what is refused as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from seq_harness.playback.channels import Channel, columns_by_name, ColumnsRefused, RowSplitter
from seq_harness.playback.chunk import Chunk, ChunkRefused, to_ns

S = 1_000_000_000


def test_r10_row_i_is_due_i_over_fps_and_k_rows_cover_k_periods() -> None:
    chunk = Chunk.at_rate([{'arm': i} for i in range(3)], 30)
    assert [row.offset_ns for row in chunk.rows] == [0, 33_333_333, 66_666_667]
    assert chunk.end_ns == 100_000_000


HUGE = pytest.param(10**400, id='huge')
NO_RATES = [0.0, -1.0, float('nan'), float('inf'), HUGE, 1e-320, '30', None, True, [30.0], 30j]


@pytest.mark.parametrize('fps', NO_RATES)
def test_a_row_rate_that_is_no_rate_is_refused(fps: Any) -> None:
    with pytest.raises(ChunkRefused, match='row rate must be finite and positive'):
        Chunk.at_rate([{'arm': 1}], fps)


@pytest.mark.parametrize('fps', [rate for rate in NO_RATES if rate is not None])
def test_stamps_without_an_end_need_a_rate_that_is_one(fps: Any) -> None:
    with pytest.raises(ChunkRefused, match='row rate must be finite and positive'):
        Chunk.stamped([{'timestamp': 0.0, 'arm': 1}], fps)


@pytest.mark.parametrize('number', [np.float32, np.float64, np.int64, np.uint8])
def test_numbers_of_numpy_are_numbers(number: type[Any]) -> None:
    paced = Chunk.at_rate([{'arm': 1}] * 2, number(4))
    assert [row.offset_ns for row in paced.rows] == [0, 250_000_000]
    stamped = Chunk.stamped([{'timestamp': number(2), 'arm': 1}], number(4))
    assert (stamped.rows[0].offset_ns, stamped.end_ns) == (2 * S, 2 * S + 250_000_000)


@pytest.mark.parametrize('row', [1, 'arm', None, ['arm'], np.zeros(2)])
def test_a_row_that_is_no_mapping_is_refused_by_its_number(row: Any) -> None:
    with pytest.raises(ChunkRefused, match=r'row 1 \(from 0\) is a '):
        Chunk.at_rate([{'arm': 1}, row], 10)
    with pytest.raises(ChunkRefused, match=r'row 1 \(from 0\) is a '):
        Chunk.stamped([{'arm': 1}, row], 10)


def test_r10_a_missing_stamp_is_zero() -> None:
    assert Chunk.stamped([{'arm': 1}], fps=10).rows[0].offset_ns == 0


def test_r11_a_bare_mapping_is_a_chunk_of_one_row() -> None:
    chunk = Chunk.stamped([{'timestamp': 0.5, 'arm': 1}], fps=10)
    assert (len(chunk.rows), chunk.end_ns) == (1, 600_000_000)


def test_r12_an_end_marker_is_a_stamp_and_no_channel() -> None:
    chunk = Chunk.stamped([{'arm': 1}, {'timestamp': 0.3}])
    assert (len(chunk.rows), chunk.end_ns) == (1, 300_000_000)


def test_r12_a_chunk_that_does_not_know_its_end_is_refused() -> None:
    with pytest.raises(ChunkRefused, match='does not say when its last row ends'):
        Chunk.stamped([{'arm': 1}])


@pytest.mark.parametrize('seconds', [0.0, 0.1, 1 / 3, -0.2, 59.999999999])
def test_r17_every_way_to_make_a_chunk_rounds_seconds_alike(seconds: float) -> None:
    stamped = Chunk.stamped([{'timestamp': seconds, 'arm': 1}], fps=10).rows[0].offset_ns
    assert stamped == to_ns(seconds) == round(seconds * 1e9)
    paced = Chunk.at_rate([{'arm': 1}] * 2, 3).rows[1].offset_ns
    assert paced == to_ns(1 / 3)


@pytest.mark.parametrize('stamp', [60.1, -60.1])
def test_r18_a_stamp_of_another_clock_is_refused(stamp: float) -> None:
    with pytest.raises(ChunkRefused, match=r'row 0 \(from 0\) is stamped'):
        Chunk.stamped([{'timestamp': stamp, 'arm': 1}], fps=10)


@pytest.mark.parametrize(
    'stamp', [np.float32('nan'), float('inf'), HUGE, '0', None, True, [0.0], 1j, np.zeros(1)]
)
def test_r19_a_stamp_that_is_not_finite_seconds_is_refused(stamp: Any) -> None:
    with pytest.raises(ChunkRefused, match=r'row 1 \(from 0\) has the stamp'):
        Chunk.stamped([{'arm': 1}, {'timestamp': stamp, 'arm': 2}], fps=10)


def test_r19_stamps_that_decrease_are_refused_by_row() -> None:
    rows = [{'timestamp': stamp, 'arm': 1} for stamp in (0.0, 0.2, 0.1)]
    with pytest.raises(ChunkRefused, match=r'row 2 \(from 0\) is stamped'):
        Chunk.stamped(rows, fps=10)


ARM = Channel('arm', ('j1', 'j2'), (2, 0))
GRIP = Channel('grip', ('g',), (1,))


def splitter(key: str | None = 'actions', horizon: int | None = None) -> RowSplitter:
    return RowSplitter([ARM, GRIP], fps=10, width=3, key=key, horizon=horizon)


def test_columns_go_to_the_joints_that_name_them() -> None:
    chunk = splitter()({'actions': np.array([[1, 2, 3], [4, 5, 6]], np.float32)})
    assert chunk is not None
    split = [{name: list(value) for name, value in row.commands.items()} for row in chunk.rows]
    assert split == [{'arm': [3, 1], 'grip': [2]}, {'arm': [6, 4], 'grip': [5]}]


def test_a_row_alone_is_a_chunk_of_one_and_a_horizon_cuts() -> None:
    one = splitter()({'actions': [1, 2, 3]})
    cut = splitter(horizon=2)({'actions': np.zeros((5, 3))})
    assert one is not None
    assert cut is not None
    assert (len(one.rows), len(cut.rows)) == (1, 2)


@pytest.mark.parametrize('axes', [1, 2])
def test_g51_an_axis_of_a_batch_of_one_is_left_out(axes: int) -> None:
    rows = np.arange(6.0).reshape(*[1] * axes, 2, 3)
    chunk = splitter()({'actions': rows})
    assert chunk is not None
    assert [list(row.commands['arm']) for row in chunk.rows] == [[2, 0], [5, 3]]


def test_an_answer_may_end_the_episode() -> None:
    chunk = splitter()({'actions': np.zeros((1, 3)), 'end': 'done'})
    assert chunk is not None
    assert chunk.end_reason == 'done'


@pytest.mark.parametrize('end', [True, 1, ['done'], {'why': 'done'}, b'done'])
def test_an_end_that_is_no_text_is_refused(end: Any) -> None:
    with pytest.raises(ChunkRefused, match="'end' must be a text"):
        splitter()({'actions': np.zeros((1, 3)), 'end': end})


def test_none_is_nothing_new_and_no_rows_are_an_empty_chunk() -> None:
    assert splitter()(None) is None
    empty = splitter(key=None)([])
    assert empty is not None
    assert empty.rows == ()


@pytest.mark.parametrize(
    ('answer', 'reason'),
    [
        ({'actions': np.zeros((4, 32))}, r'rows of 3 columns were expected; .* \(4, 32\)'),
        ({'actions': np.zeros((2, 4, 3))}, r'shape \(2, 4, 3\)'),
        ({'actions': np.zeros((4, 1, 3))}, r'shape \(4, 1, 3\)'),
        ({'actions': np.zeros((1, 1, 4, 32))}, r'shape \(1, 1, 4, 32\)'),
        ({'action': np.zeros((4, 3))}, r"under 'actions'; it has \['action'\]"),
        ({'actions': 'open'}, 'not numbers'),
        ({'actions': np.full((1, 3), 1j)}, 'complex'),
        ({'actions': [[0.0, 0.0, 0.0], [0.0, 0.0]]}, 'not numbers'),
        ({'actions': [[0.0, 0.0, 0.0], [[0.0], 0.0, 0.0]]}, 'not numbers'),
        ({'actions': np.zeros((10_001, 3))}, 'at most 10000 rows were expected .* 10001 came'),
        (np.zeros((4, 3)), "under 'actions'"),
    ],
)
def test_rows_of_another_shape_are_refused_with_both_sides(answer: Any, reason: str) -> None:
    with pytest.raises(ChunkRefused, match=reason):
        splitter()(answer)


def test_columns_are_found_by_name() -> None:
    assert columns_by_name('arm', ['b', 'a'], ['a', 'x', 'b']) == (2, 0)


def test_a_column_that_is_not_declared_is_refused_with_both_sides() -> None:
    with pytest.raises(ColumnsRefused, match=r"wants the columns \['c'\].*it declares \['a'\]"):
        columns_by_name('arm', ['a', 'c'], ['a'])
    with pytest.raises(ColumnsRefused, match='twice'):
        columns_by_name('arm', ['a'], ['a', 'a'])
