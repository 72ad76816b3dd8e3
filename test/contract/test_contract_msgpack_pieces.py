"""Values packed in pieces, and what of a body makes an array or none."""

from typing import Any

import numpy as np
import pytest
from seq_harness.contract import MsgpackError, pack, unpack
from seq_harness.contract.msgpack import pack_pieces


@pytest.mark.parametrize(
    'value',
    [
        np.zeros((40, 40, 3), np.uint8),
        np.zeros(4096, bool),
        np.zeros(65_535, np.uint8),
        np.zeros((16, 4096), np.uint8),
        np.arange(9000.0).reshape(90, 100).T,
        np.zeros(5000, '>i2'),
        np.zeros(1000, np.dtype(np.longdouble).newbyteorder('>')),
        np.zeros(1000, np.longdouble),
        np.zeros(1000, complex),
        np.array(['abc'] * 3000),
        np.zeros(9000, 'M8[ms]'),
        np.zeros(3, np.uint8),
        np.float32(2),
        {'rows': np.zeros(9999)},
    ],
    ids=lambda value: f'{type(value).__name__} {getattr(value, "dtype", "")}',
)
def test_a_value_in_pieces_is_the_value_packed(value: Any) -> None:
    assert b''.join(pack_pieces(value)) == pack(value)


def test_the_data_of_a_large_array_are_not_copied() -> None:
    image = np.zeros((100, 100), np.uint8)
    _, data = pack_pieces(image)
    image[:] = 7
    assert bytes(data) == bytes([7]) * 10_000


def test_the_data_of_a_small_array_are_copied() -> None:
    state = np.zeros(7)
    pieces = pack_pieces(state)
    state[:] = 7
    assert b''.join(pieces) == pack(np.zeros(7))


def test_an_array_with_a_mask_is_sent_as_the_array_that_it_is() -> None:
    masked = np.ma.masked_array(np.arange(4000.0), mask=False)
    assert b''.join(pack_pieces(masked)) == pack(masked) == pack(np.arange(4000.0))
    assert pack(masked[:3]) == pack(np.arange(3.0))


@pytest.mark.parametrize('key', ['type', 'shape', 'data'])
def test_a_map_that_lacks_what_makes_an_array_stands_for_itself(key: str) -> None:
    fields = {b'nd': True, b'type': '<f4', b'kind': b'', b'shape': [1], b'data': bytes(4)}
    assert unpack(pack({**fields, key.encode(): None})) == {**fields, key.encode(): None}


@pytest.mark.parametrize('order', ['<', '>'])
def test_an_array_of_text_holds_characters(order: str) -> None:
    fields = {b'nd': True, b'type': f'{order}U1', b'kind': b'', b'shape': [1]}
    codes = np.array([0x10FFFF], f'{order}u4')
    assert unpack(pack({**fields, b'data': codes.tobytes()}))[0] == chr(0x10FFFF)
    wrong = {**fields, b'data': (codes + 1).astype(codes.dtype).tobytes()}
    number = {b'nd': True, b'type': '<f4', b'kind': b'', b'shape': [1], b'data': bytes(4)}
    for body in (wrong, {**number, b'kind': wrong}):
        with pytest.raises(MsgpackError, match='0x110000'):
            unpack(pack(body))
    with pytest.raises(MsgpackError, match="an array's type is one such as"):
        unpack(pack({**number, b'type': wrong}))


def test_a_kind_of_another_sort_makes_no_array() -> None:
    number = {b'nd': True, b'type': '<f4', b'kind': b'', b'shape': [1], b'data': bytes(4)}
    for kind in (np.zeros(2), np.zeros(0), ['a'], 0):
        with pytest.raises(MsgpackError):
            unpack(pack({**number, b'kind': kind}))


@pytest.mark.parametrize('value', [np.zeros(5000, object), np.zeros(5000, [('a', 'i4')])])
def test_a_large_array_of_no_carried_type_is_refused_in_pieces_too(value: Any) -> None:
    with pytest.raises(MsgpackError):
        pack_pieces(value)
