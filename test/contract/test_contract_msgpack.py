"""Bodies in msgpack: their exact bytes, and what they refuse."""

from collections import OrderedDict
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import msgpack as library  # type: ignore[import-untyped]
import numpy as np
import pytest
from seq_harness.contract import MsgpackError, numpy_msgpack, pack, unpack
from seq_harness.contract.msgpack import pack_pieces

ARRAY_HEX = (
    '85c4026e64c3c40474797065a33c6634c4046b696e64c400c40573686170659102'
    'c40464617461c4080000803f00000040'
)

VECTORS: list[tuple[Any, str]] = [
    (None, 'c0'),
    (False, 'c2'),
    (True, 'c3'),
    (0, '00'),
    (127, '7f'),
    (128, 'cc80'),
    (255, 'ccff'),
    (256, 'cd0100'),
    (2**16, 'ce00010000'),
    (2**32, 'cf0000000100000000'),
    (2**64 - 1, 'cfffffffffffffffff'),
    (-1, 'ff'),
    (-32, 'e0'),
    (-33, 'd0df'),
    (-129, 'd1ff7f'),
    (-(2**15) - 1, 'd2ffff7fff'),
    (-(2**63), 'd38000000000000000'),
    (1.0, 'cb3ff0000000000000'),
    ('a', 'a161'),
    ('a' * 32, 'd920' + '61' * 32),
    ('a' * 256, 'da0100' + '61' * 256),
    ('\u00e9', 'a2c3a9'),
    (b'hi', 'c4026869'),
    (b'a' * 256, 'c50100' + '61' * 256),
    ([1, 2], '920102'),
    ([0] * 16, 'dc0010' + '00' * 16),
    ({1: 2}, '810102'),
    ({b'a': 'a'}, '81c40161a161'),
    ({'episode_id': 'ep-1', 'frames': [], 'skipped': []},
     '83aa657069736f64655f6964a465702d31a66672616d657390a7736b697070656490'),
]  # fmt: skip


def nested(levels: int, leaf: Any = 1) -> Any:
    """Put a leaf into so many lists."""
    for _ in range(levels):
        leaf = [leaf]
    return leaf


@pytest.mark.parametrize(('value', 'written'), VECTORS)
def test_a_value_has_exactly_these_bytes_and_comes_back(value: Any, written: str) -> None:
    assert pack(value).hex() == written
    assert unpack(bytes.fromhex(written)) == value


def test_tuples_subclasses_and_buffers_are_written_as_what_they_hold() -> None:
    class Level(IntEnum):
        HIGH = 3

    assert pack((1, 2)) == pack([1, 2])
    assert pack(OrderedDict(a=Level.HIGH)) == pack({'a': 3})
    assert pack(bytearray(b'hi')) == pack(memoryview(b'hi')) == pack(b'hi')
    assert pack(np.float64(1.0)) == pack(1.0)


@pytest.mark.parametrize(
    ('value', 'written'),
    [
        (np.array([1, 2], 'f4'), ARRAY_HEX),
        (
            np.zeros((2, 2), np.uint8),
            '85c4026e64c3c40474797065a37c7531c4046b696e64c400c4057368617065920202c404'
            '64617461c40400000000',
        ),
        (
            np.array([1], '>i2'),
            '85c4026e64c3c40474797065a33e6932c4046b696e64c400c40573686170659101c40464617461'
            'c4020001',
        ),
        (
            np.array(1.0, 'f4'),
            '85c4026e64c3c40474797065a33c6634c4046b696e64c400c405736861706590c40464617461'
            'c4040000803f',
        ),
        (
            np.zeros((0, 3), 'f4'),
            '85c4026e64c3c40474797065a33c6634c4046b696e64c400c4057368617065920003c40464617461c400',
        ),
        (np.float32(1.5), '83c4026e64c2c40474797065a33c6634c40464617461c4040000c03f'),
        (np.bool_(True), '83c4026e64c2c40474797065a37c6231c40464617461c40101'),
    ],
)
def test_an_array_has_exactly_these_bytes(value: Any, written: str) -> None:
    assert pack(value).hex() == written


@pytest.mark.parametrize(
    'array',
    [
        np.arange(24, dtype='i4').reshape(2, 3, 4).transpose(2, 0, 1),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(10, dtype='u2')[::3],
        np.array([True, False]),
        np.array(['ab', 'c']),
        np.array([b'ab', b'c']),
        np.zeros(2, 'M8[ms]'),
        np.array([1 + 2j], 'c8'),
        np.array([1.5], 'f2'),
        np.array([2**40], '>u8'),
    ],
    ids=lambda array: array.dtype.str,
)
def test_an_array_comes_back_with_its_type_shape_and_values(array: Any) -> None:
    back = unpack(pack(array))
    assert back.dtype.str == array.dtype.str
    assert back.shape == array.shape
    assert np.array_equal(back, array)


def test_a_numpy_scalar_comes_back_as_one() -> None:
    back = unpack(pack({'x': np.int16(-3)}))['x']
    assert type(back) is np.int16
    assert back == -3


NUMPY = {'nd': True, 'type': '<f4', 'shape': [1], 'data': b'\0\0\x80?'}
OPENPI = {'__ndarray__': True, 'dtype': '<f4', 'shape': [1], 'data': b'\0\0\x80?'}


def in_bytes(fields: dict[str, Any]) -> dict[Any, Any]:
    """Make the keys bytes."""
    return {key.encode(): value for key, value in fields.items()}


@pytest.mark.parametrize(
    'fields',
    [
        NUMPY,
        in_bytes(NUMPY),
        {**NUMPY, 'kind': b''},
        {**NUMPY, 'kind': ''},
        in_bytes({**NUMPY, 'kind': None}),
        {**NUMPY, 'type': b'<f4'},
        {**NUMPY, 'type': 'float32'},
        OPENPI,
        in_bytes(OPENPI),
    ],
)
def test_both_layouts_are_read_with_either_kind_of_key(fields: Any) -> None:
    back = unpack(pack(fields))
    assert isinstance(back, np.ndarray)
    assert back.dtype == np.float32
    assert back.tolist() == [1.0]


@pytest.mark.parametrize(
    ('fields', 'value'),
    [
        ({'nd': False, 'type': '<f4', 'data': b'\0\0\x80?'}, np.float32(1)),
        ({'__npgeneric__': True, 'dtype': '<f4', 'data': 1.0}, np.float32(1)),
        ({b'__npgeneric__': True, b'dtype': '|u1', b'data': 7}, np.uint8(7)),
        ({'__npgeneric__': True, 'dtype': '<U2', 'data': 'ab'}, np.str_('ab')),
    ],
)
def test_scalars_of_both_layouts_are_read(fields: Any, value: Any) -> None:
    back = unpack(pack(fields))
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize(
    'fields',
    [
        {'nd': True, 'x': 1},
        {'nd': 1, 'type': '<f4', 'shape': [1], 'data': b'\0\0\x80?'},
        {'nd': True, 'type': '<f4', 'shape': [1]},
        {'nd': False, 'kept': 2},
        {'__ndarray__': True},
        {'__npgeneric__': False, 'dtype': '<f4', 'data': 1.0},
    ],
)
def test_a_map_that_only_holds_a_marker_stays_a_map(fields: Any) -> None:
    assert unpack(pack(fields)) == fields


@pytest.mark.parametrize(
    'change',
    [
        {'kind': b'V'},
        {'type': '|O'},
        {'type': '|V4'},
        {'type': 'f4,f4'},
        {'type': '(2,)f4'},
        {'type': '<U0'},
        {'type': 'nonsense'},
        {'type': '<f3'},
        {'type': ['a']},
        {'type': b'\xff'},
        {'type': '<U999999999'},
        {'shape': [-1]},
        {'shape': [True]},
        {'shape': [1.0]},
        {'shape': 1},
        {'shape': [1] * 65},
        {'shape': [2]},
        {'shape': [0, 2**62], 'data': b''},
        {'shape': [2**62, 2**62]},
        {'data': 'text'},
        {'data': b''},
    ],
    ids=repr,
)
def test_a_map_that_claims_to_be_an_array_and_is_none_is_refused(change: Any) -> None:
    with pytest.raises(MsgpackError):
        unpack(pack({**NUMPY, **change}))


@pytest.mark.parametrize(
    'fields',
    [
        {'nd': False, 'type': '<f4', 'data': b'\0\0\0'},
        {'__npgeneric__': True, 'dtype': '|u1', 'data': 300},
        {'__npgeneric__': True, 'dtype': '|u1', 'data': 1.5},
        {'__npgeneric__': True, 'dtype': '<f4', 'data': 1e300},
        {'__npgeneric__': True, 'dtype': '<f4', 'data': [1.0, 2.0]},
        {'__npgeneric__': True, 'dtype': '<f4', 'data': '1.0'},
        {'__npgeneric__': True, 'dtype': '<U4', 'data': 1.5},
    ],
)
def test_a_scalar_that_does_not_fit_its_type_is_refused(fields: Any) -> None:
    with pytest.raises(MsgpackError):
        unpack(pack(fields))


def test_a_single_float_is_read() -> None:
    assert unpack(bytes.fromhex('ca3fc00000')) == 1.5


def test_decoded_arrays_are_views_that_cannot_be_written_to() -> None:
    back = unpack(pack({'x': np.zeros(3)}))['x']
    assert not back.flags.writeable
    assert not back.flags.owndata
    assert isinstance(back.base, bytes)
    with pytest.raises(ValueError, match='read-only'):
        back[0] = 1


def test_decoded_arrays_are_copies_where_they_are_to_be_written_to() -> None:
    body = pack([{'x': np.zeros(3)}, np.ones(2)])
    back = unpack(body, writable=True)
    back[0]['x'][0] = 5
    back[1][0] = 5
    assert unpack(body)[0]['x'].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    'value',
    [
        2**64,
        -(2**63) - 1,
        10**400,
        {1, 2},
        pytest.param(object(), id='object()'),
        1j,
        range(3),
        library.ExtType(1, b'x'),
        library.Timestamp(1),
        [library.ExtType(1, b'x')],
        np.datetime64('2020-01-01'),
        np.array([None]),
        np.zeros(1, 'f4,f4'),
        np.zeros(1, 'V4'),
        '\ud800',
        {True: 1},
        {None: 1},
        {1.5: 1},
        {(1,): 1},
        {np.int64(1): 1},
        {library.Timestamp(1): 1},
    ],
    ids=lambda value: f'{value!r:.30}',
)
def test_what_no_body_carries_is_refused(value: Any) -> None:
    with pytest.raises(MsgpackError):
        pack(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(MsgpackError, match='64 levels'):
        pack(value)


@pytest.mark.parametrize(
    'body',
    [
        '', 'c1', '91c1', 'd40100', 'd6ff00000000', 'c7010100', 'c70cff' + 'ff' * 12, '81d4010001',
        'a1ff', 'a2c3', '0101', '92 01', 'dc0002 01', 'dd00ffffff 01', 'df00ffffff 01',
        'c6ffffffff', 'dbffffffff', '819001', '818001', '81c0', 'cb00', '81' + ARRAY_HEX + '01',
    ],
)  # fmt: skip
def test_a_body_that_is_not_one_whole_value_is_refused(body: str) -> None:
    with pytest.raises(MsgpackError):
        unpack(bytes.fromhex(body))


@pytest.mark.parametrize('body', ['text', None, 5])
def test_what_is_no_body_is_refused_too(body: Any) -> None:
    with pytest.raises(MsgpackError):
        unpack(body)


@pytest.mark.parametrize(
    ('levels', 'leaf'), [(64, 1), (62, np.zeros(2)), (63, np.zeros(())), (63, np.float32(1))]
)
def test_sixty_four_levels_are_carried_and_no_more(levels: int, leaf: Any) -> None:
    body = pack(nested(levels, leaf))
    assert isinstance(unpack(body), list)
    with pytest.raises(MsgpackError, match='64 levels'):
        pack(nested(levels + 1, leaf))
    with pytest.raises(MsgpackError, match='64 levels'):
        unpack(b'\x91' + body)


def test_a_map_is_a_level_as_a_list_is() -> None:
    body = b'\x81\xa1a' * 64 + b'\x01'
    assert pack(unpack(body)) == body
    with pytest.raises(MsgpackError, match='64 levels'):
        unpack(b'\x81\xa1a' + body)


class Bfloat16(np.ndarray[Any, Any]):
    """An array of the type that ml_dtypes adds to numpy, as far as packing looks at it."""

    @property
    def dtype(self) -> Any:
        return SimpleNamespace(kind='V', name='bfloat16')

    def astype(self, *_: Any, **__: Any) -> Any:
        wide = np.ndarray(self.shape, np.uint16, self.tobytes()).astype(np.uint32) << 16
        return wide.view(np.float32)


@pytest.mark.parametrize('rows', [1, 3000])
def test_g51_an_array_of_bfloat16_goes_as_float32(rows: int) -> None:
    values = np.full((rows, 2), [1.5, -2.25], np.float32)
    short = (values.view(np.uint32) >> 16).astype(np.uint16).view(Bfloat16)
    pieces = b''.join(map(bytes, pack_pieces(short)))
    for body in (pack(short), pieces, numpy_msgpack.pack(short)):
        came = unpack(body)
        assert came.dtype == np.float32
        assert np.array_equal(came, values)
