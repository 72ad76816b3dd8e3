"""Whatever is received as a msgpack body, decoding answers a value or one kind of error."""

from collections.abc import Callable
import random
from typing import Any
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_st
import numpy as np
import pytest
from seq_harness.contract import MsgpackError, pack, unpack

MUTATIONS = 20_000

SEEDS = [
    pack(
        {
            'frames': [{'seq': 3, 'inputs': {'x': np.arange(6, dtype='f4').reshape(2, 3)}}],
            'mixed': [1, -5, 2.5, 'x', b'y', None, True, {7: [], b'k': {}}],
            'scalar': np.float32(2),
        }
    ),
    pack({b'__ndarray__': True, b'dtype': '<f4', b'shape': [2, 1], b'data': bytes(8)}),
    pack({'__npgeneric__': True, 'dtype': '<f4', 'data': 1.5}),
    pack([np.array(['ab']), np.zeros(1, 'M8[s]'), np.array(3, '>i2')]),
    b'\xdc\x00\x03\xcd\x01\x00\xd9\x02ab\xca\x3f\xc0\x00\x00',
]

Mutation = Callable[[random.Random, bytearray], None]


def flip(rng: random.Random, body: bytearray) -> None:
    """Change one byte."""
    body[rng.randrange(len(body))] = rng.randrange(256)


def drop(rng: random.Random, body: bytearray) -> None:
    """Remove a few bytes."""
    for _ in range(min(len(body), rng.randint(1, 4))):
        del body[rng.randrange(len(body))]


def insert(rng: random.Random, body: bytearray) -> None:
    """Add one byte, often the head of something."""
    heads = b'\x80\x90\xc1\xc4\xc7\xca\xd4\xd9\xdc\xdd\xde\xdf\xff'
    body.insert(rng.randrange(len(body) + 1), rng.choice(heads))


def cut(rng: random.Random, body: bytearray) -> None:
    """End the body early."""
    kept = rng.randrange(len(body))
    del body[kept:]


MUTATORS: list[Mutation] = [flip, drop, insert, cut]


def outcome(body: bytes) -> str:
    """Decode a body and, where it is one, encode what it holds."""
    try:
        value = unpack(body)
    except MsgpackError:
        return 'refused'
    try:
        pack(value)
    except MsgpackError:
        return 'read only'
    return 'carried'


@pytest.mark.parametrize('seed', SEEDS, ids=['frames', 'openpi', 'generic', 'arrays', 'wide'])
def test_a_mutated_body_is_read_or_refused_and_never_fails_otherwise(seed: bytes) -> None:
    rng = random.Random(len(seed))
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for _ in range(MUTATIONS // len(SEEDS)):
            body = bytearray(seed)
            for _ in range(rng.randint(1, 4)):
                if body:
                    rng.choice(MUTATORS)(rng, body)
            seen.add(outcome(bytes(body)))
    assert {'refused', 'carried'} <= seen


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    assert outcome(body) in ('refused', 'read only', 'carried')


arrays = numpy_st.arrays(
    st.one_of(
        numpy_st.boolean_dtypes(),
        numpy_st.integer_dtypes(),
        numpy_st.floating_dtypes(),
        numpy_st.unicode_string_dtypes(max_len=3),
    ),
    numpy_st.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | arrays
)
keys = st.text(max_size=5) | st.binary(max_size=5) | st.integers(-(2**63), 2**64 - 1)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12
)


def same(a: Any, b: Any) -> bool:
    """Compare two values by type and content, NaN equal to itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    alike: bool = a == b or (a != a and b != b)
    return alike


@settings(max_examples=200)
@given(values)
def test_what_is_packed_comes_back(value: Any) -> None:
    body = pack(value)
    assert same(unpack(body), value)
    assert pack(unpack(body)) == body
