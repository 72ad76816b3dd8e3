"""Messages of openpi and its kin: their exact bytes, both dialects, and what is refused."""

from typing import Any

import msgpack as library  # type: ignore[import-untyped]
import numpy as np
import pytest
from seq_harness.contract import MsgpackError
from seq_harness.contract.numpy_msgpack import pack, unpack

ARRAY_HEX = (
    '84'
    + ('c40b' + b'__ndarray__'.hex() + 'c3')
    + ('c404' + b'data'.hex() + 'c408' + '0000803f00000040')
    + ('c405' + b'dtype'.hex() + 'a3' + b'<f4'.hex())
    + ('c405' + b'shape'.hex() + '9102')
)

ARRAYS = [
    np.array([1, 2], 'f4'),
    np.array(1.5),
    np.zeros((0, 3), 'f4'),
    np.zeros((2, 0), 'i8'),
    np.arange(6, dtype='>i4').reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype='u1').reshape(2, 3)),
    np.arange(12, dtype='i8')[::-3],
    np.array([True, False]),
    np.array(['abc', 'd']),
    np.arange(2**16 + 7, dtype='u1'),
]


def envelope(**changed: Any) -> bytes:
    """Pack openpi's envelope of an array, with some of its fields changed."""
    fields = {'__ndarray__': True, 'data': b'\0' * 8, 'dtype': '<f4', 'shape': [2], **changed}
    packed: bytes = library.packb({name.encode(): value for name, value in fields.items()})
    return packed


def test_an_array_has_the_bytes_of_openpi_client() -> None:
    assert pack(np.array([1, 2], 'f4')).hex() == ARRAY_HEX


@pytest.mark.parametrize('array', ARRAYS, ids=lambda array: f'{array.dtype.str}{array.shape}')
def test_an_array_comes_back_with_its_type_and_shape(array: Any) -> None:
    read = unpack(pack({'actions': array}))['actions']

    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert np.array_equal(read, array)


def test_a_received_array_cannot_be_written_to() -> None:
    assert not unpack(bytes.fromhex(ARRAY_HEX)).flags.writeable


@pytest.mark.parametrize(
    ('scalar', 'written'),
    [
        (np.float32(1.0), 'cb3ff0000000000000'),
        (np.int64(5), '05'),
        (np.bool_(True), 'c3'),
    ],
)
def test_a_numpy_scalar_travels_in_an_envelope(scalar: Any, written: str) -> None:
    dtype = scalar.dtype.str
    expected = (
        f'83c40d{b"__npgeneric__".hex()}c3'
        + f'c404{b"data".hex()}{written}'
        + f'c405{b"dtype".hex()}a{len(dtype)}{dtype.encode().hex()}'
    )
    assert pack(scalar).hex() == expected
    read = unpack(bytes.fromhex(expected))
    assert type(read) is type(scalar)
    assert read == scalar


def test_what_numpy_derives_from_python_goes_bare() -> None:
    assert pack(np.float64(1.0)) == pack(1.0)
    assert pack(np.str_('a')) == pack('a')


@pytest.mark.parametrize('as_key', [str.encode, str], ids=['bytes', 'text'])
@pytest.mark.parametrize(
    'fields',
    [
        {'__ndarray__': True, 'data': b'\x01\x02', 'dtype': '|u1', 'shape': [2]},
        {'nd': True, 'type': '|u1', 'kind': b'', 'shape': [2], 'data': b'\x01\x02'},
    ],
    ids=['openpi', 'msgpack-numpy'],
)
def test_both_dialects_are_read_with_either_kind_of_keys(fields: Any, as_key: Any) -> None:
    body = library.packb({as_key(name): value for name, value in fields.items()})

    assert unpack(body).tolist() == [1, 2]
    assert unpack(body).dtype == np.uint8


def test_tuples_come_back_as_lists_and_none_as_none() -> None:
    assert unpack(pack({'a': (1, None)})) == {'a': [1, None]}


@pytest.mark.parametrize(
    'changed',
    [
        {'data': b'\0' * 7},
        {'data': b'\0' * 9},
        {'data': 'text'},
        {'shape': [-2]},
        {'shape': [2**62, 2**62]},
        {'shape': [2.0]},
        {'shape': 2},
        {'shape': [1] * 65},
        {'dtype': '|O'},
        {'dtype': '|V4'},
        {'dtype': '<c8', 'shape': [1]},
        {'dtype': 'no such type'},
        {'dtype': 4},
    ],
    ids=repr,
)
def test_an_envelope_that_makes_no_array_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(MsgpackError):
        unpack(envelope(**changed))


@pytest.mark.parametrize(
    'value',
    [
        pytest.param(np.array([object()]), id='array of object()'),
        np.array([1j]),
        np.complex64(1j),
        np.zeros(1, dtype=[('a', 'f4')]),
        pytest.param({'a': object()}, id='object() in a map'),
        {1.5: 1},
        2**64,
    ],
    ids=repr,
)
def test_what_no_server_reads_is_not_sent(value: Any) -> None:
    with pytest.raises(MsgpackError):
        pack(value)


def test_a_complex_array_deep_in_an_answer_is_refused() -> None:
    array = envelope(dtype='<c8', shape=[1])
    with pytest.raises(MsgpackError, match='complex64'):
        unpack(b'\x81\xa1a\x91' + array)


def test_a_message_is_no_longer_than_allowed() -> None:
    body = pack(np.zeros(100, 'u1'))

    assert unpack(body, max_bytes=len(body)).shape == (100,)
    with pytest.raises(MsgpackError, match=f'at most {len(body) - 1} bytes'):
        unpack(body, max_bytes=len(body) - 1)
    with pytest.raises(MsgpackError, match=f'at most {len(body) - 1} bytes'):
        pack(np.zeros(100, 'u1'), max_bytes=len(body) - 1)


@pytest.mark.parametrize('body', [b'', b'\x01\x02', b'\x91', b'\xc1', b'\xdd\xff\xff\xff\xff'])
def test_what_is_not_one_value_is_refused(body: bytes) -> None:
    with pytest.raises(MsgpackError):
        unpack(body)
