"""JSON bodies, and the robot-arm preset's binary one."""

import base64
import contextlib
import copy
import struct
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest
from seq_harness.contract import (
    Contents,
    contents_of,
    FramesError,
    JsonError,
    pack_frames,
    pack_json,
    unpack_frames,
    unpack_json,
)

FRAME = base64.b64encode(b'hello').decode()
BODY = {'model': 'm', 'inputs': {'images': [{'view': 'front', 'data': FRAME}], 'instruction': 'i'}}


@pytest.mark.parametrize(
    ('value', 'contents'),
    [
        ({'a': [1, 'x', None]}, Contents.PLAIN),
        ({'a': [np.zeros(2)]}, Contents.ARRAYS),
        ((np.float32(1),), Contents.ARRAYS),
        ({'a': [np.zeros(2), (b'x',)]}, Contents.BYTES),
        (b'x', Contents.BYTES),
    ],
)
def test_what_a_body_holds_says_what_it_needs(value: Any, contents: Contents) -> None:
    assert contents_of(value) is contents


def test_json_is_compact_and_arrays_go_as_lists() -> None:
    value = {'a': np.arange(4, dtype='f4').reshape(2, 2), 'b': 'é', 'c': np.int8(3)}
    body = pack_json(value)
    assert body == '{"a":[[0.0,1.0],[2.0,3.0]],"b":"é","c":3}'.encode()
    assert unpack_json(body)['a'] == [[0, 1], [2, 3]]


@pytest.mark.parametrize('value', [{'a': b'x'}, object(), {'a': '\ud800'}])
def test_what_json_does_not_carry_is_refused(value: Any) -> None:
    with pytest.raises(JsonError):
        pack_json(value)


@pytest.mark.parametrize(
    'body', [b'', b'{', b'\xff', b'[' * 100_000, b'["\\ud800"]', b'{"\\uDFFF": 1}']
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(JsonError):
        unpack_json(body)


@pytest.mark.parametrize('leaf', [b'1', b'[]', b'{}', b'"a"'])
def test_json_is_carried_sixty_four_levels_deep_and_no_more(leaf: bytes) -> None:
    body = b'[' * 63 + b'{"a":' + leaf + b'}' + b']' * 63
    assert isinstance(unpack_json(body), list)
    with pytest.raises(JsonError, match='64 levels'):
        unpack_json(b'[' + body + b']')


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert unpack_json(b'["\\ud83d\\ude00"]') == ['\U0001f600']


@pytest.mark.parametrize('item', [b'0,', b'[],', b'{},', b'"",', b'{"a":0},'])
def test_json_of_more_values_than_its_length_warrants_is_refused(item: bytes) -> None:
    with pytest.raises(JsonError, match='send long lists of numbers as arrays'):
        unpack_json(b'[' + item * 2**18 + b'0]')


@pytest.mark.parametrize(
    'item', [b'0,' * 2**10, b'[0.123456789012345,0.123456789012345],' * 2**16]
)
def test_json_whose_length_warrants_its_values_is_read(item: bytes) -> None:
    assert unpack_json(b'[' + item + b'0]')[-1] == 0


def test_frames_move_out_of_the_json_and_back() -> None:
    before = copy.deepcopy(BODY)
    packed = pack_frames(BODY)
    assert packed is not None
    text = b'{"model":"m","inputs":{"images":[{"view":"front","data":0}],"instruction":"i"}}'
    assert packed == b'SQF1' + struct.pack('<III', len(text), 1, 5) + text + b'hello'
    assert unpack_frames(packed) == BODY
    assert before == BODY


@pytest.mark.parametrize(
    'body',
    [
        {'observation': {'images': [{'data': FRAME}, {'data': ''}]}},
        {'images': [{'data': FRAME}]},
        {'inputs': {'images': [{'data': FRAME}, {'data': 'not base64'}, {'view': 'x'}, 'text']}},
        {
            'inputs': {
                'images': [{'data': base64.b64encode(bytes([i])).decode()} for i in range(9)]
            }
        },
    ],
)
def test_any_version_of_an_acts_body_comes_back(body: dict[str, Any]) -> None:
    packed = pack_frames(body)
    assert packed is not None
    assert unpack_frames(packed) == body


@pytest.mark.parametrize(
    'body',
    [
        {},
        {'inputs': {}},
        {'inputs': 'text'},
        {'inputs': {'images': []}},
        {'inputs': {'images': [{'data': 'aGk'}]}},
        {'inputs': {'images': [{'data': 'aGl='}]}},
        {'inputs': {'images': [{'data': FRAME}, {'data': 3}]}},
        {'inputs': {'images': [{'data': FRAME}], 'extra': b'x'}},
        {'inputs': {'images': [{'data': FRAME}] * 257}},
    ],
    ids=lambda body: f'{body!r:.60}',
)
def test_a_body_that_gains_nothing_or_could_be_misread_is_not_packed(body: Any) -> None:
    assert pack_frames(body) is None


def frames(text: bytes, *segments: bytes) -> bytes:
    """Lay out binary frames by hand."""
    head = struct.pack('<4sII', b'SQF1', len(text), len(segments))
    return head + b''.join(struct.pack('<I', len(s)) for s in segments) + text + b''.join(segments)


@pytest.mark.parametrize(
    'body',
    [
        b'',
        b'SQF1',
        b'SQF2' + bytes(8),
        frames(b'{}'),
        frames(b'{}', b'x'),
        frames(b'{}')[:-1],
        frames(b'{}') + b'x',
        frames(b'{'),
        frames(b'[]'),
        frames(b'{"images":[{"data":1}]}', b'x'),
        frames(b'{"images":[{"data":-1}]}', b'x'),
        frames(b'{"images":[{"data":0},{"data":0}]}', b'x'),
        frames(b'{"images":[{"data":true}]}', b'x'),
        struct.pack('<4sII', b'SQF1', 2, 257) + bytes(257 * 4) + b'{}',
        struct.pack('<4sII', b'SQF1', 2, 200) + b'{}',
        struct.pack('<4sIII', b'SQF1', 2, 1, 2**32 - 1) + b'{}',
    ],
)
def test_binary_frames_that_do_not_add_up_are_refused(body: bytes) -> None:
    if body == frames(b'{}'):
        assert unpack_frames(body) == {}
        return
    with pytest.raises(FramesError):
        unpack_frames(body)


@settings(max_examples=300)
@given(st.data())
def test_mutated_binary_frames_are_read_or_refused(data: st.DataObject) -> None:
    packed = bytearray(pack_frames(BODY) or b'')
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FramesError):
        assert isinstance(unpack_frames(bytes(packed)), dict)
