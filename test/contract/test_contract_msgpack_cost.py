"""What a body in msgpack may cost to read: no more than its length warrants."""

import sys
import tracemalloc
from types import FrameType

import numpy as np
import pytest
from seq_harness.contract import MsgpackError, pack, unpack


@pytest.mark.parametrize(
    'body',
    [
        # Sixty lists of a million each, one inside the other.
        b'\xdd\x00\x0f\xff\xff' * 60 + b'\x00' * 2**20,
        b'\xdd\x00\x0f\xff\xff' * 1000 + b'\x00' * 2**20,
        b'\xdf\x00\x07\xff\xff' * 60 + b'\x00' * 2**20,
        b'\xdd\xff\xff\xff\xff' + b'\x00' * 2**20,
        b'\xc6\xff\xff\xff\xff' + b'\x00' * 2**20,
        # A million lists that hold nothing.
        b'\xdd\x00\x10\x00\x00' + b'\x90' * 2**20,
        b'\xdd\x00\x10\x00\x00' + b'\x80' * 2**20,
        # A million times nothing, in one list and in many.
        b'\xdd\x00\x10\x00\x00' + b'\xc0' * 2**20,
        b'\xdc\x00\x20' + (b'\xdc\x80\x00' + b'\xc0' * 2**15) * 32,
    ],
    ids=['lists', 'deep', 'maps', 'long', 'bin', 'empty-lists', 'empty-maps', 'nils', 'many-nils'],
)
def test_a_body_costs_no_more_than_its_length_warrants(body: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MsgpackError):
            unpack(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(body)


@pytest.mark.parametrize(
    'head', [b'\xdc\x00\x40', b'\xdc\xff\xff', b'\x9f', b'\xdf\xff\xff\xff\xff']
)
def test_what_a_short_body_declares_costs_little(head: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MsgpackError):
            unpack(head * 1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(
    'body', [b'\xdd\x00\x04\x00\x00' + b'\xc0' * 2**18, pack([0.5] * 2**19)], ids=['short', 'long']
)
def test_a_list_whose_length_warrants_its_values_is_read(body: bytes) -> None:
    assert len(unpack(body)) >= 2**18


def test_maps_that_look_like_arrays_are_each_walked_once() -> None:
    body = b'\x81\xa2nd' * 60 + pack([{}] * 2000)
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == 'call'

    sys.setprofile(count)
    try:
        unpack(body)
    finally:
        sys.setprofile(None)
    assert calls < 10 * 2060


def test_many_small_arrays_cost_no_more_than_arrays_do() -> None:
    body = pack([np.zeros(8, np.float32)] * 20_000)
    tracemalloc.start()
    try:
        arrays = unpack(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(arrays) == 20_000
    assert peak < 4 * len(body)


def test_the_width_that_a_text_claims_costs_nothing() -> None:
    body = pack({'__npgeneric__': True, 'dtype': '<U99999999', 'data': 'a'})
    tracemalloc.start()
    try:
        assert unpack(body) == 'a'
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20
