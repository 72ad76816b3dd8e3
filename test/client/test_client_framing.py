"""Messages as masked frames, read back by the library that others receive them with."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
from seq_harness.client.framing import frame
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader


def read(sent: bytes) -> Frame:
    """Read one frame, with nothing before and nothing after it."""
    reader = StreamReader()
    reader.feed_data(sent)
    reader.feed_eof()
    parsing = Frame.parse(reader.read_exact, mask=True, max_size=None)
    with pytest.raises(StopIteration) as read_to_the_end:
        next(parsing)
    found: Frame = read_to_the_end.value.value
    return found


@pytest.mark.parametrize(
    'length', [0, 1, 7, 8, 125, 126, 127, 65_535, 65_536, 200_003, (4 << 20) + 1]
)
def test_a_frame_is_read_as_the_message_it_was_made_of(length: int) -> None:
    message = os.urandom(length)
    came = read(b''.join(frame([message])))
    is_same = bytes(came.data) == message  # megabytes that differ are not to be shown
    assert (came.fin, came.opcode, is_same) == (True, Opcode.BINARY, True)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=6))
def test_any_pieces_make_one_message(pieces: list[bytes]) -> None:
    views = [memoryview(piece) for piece in pieces]
    assert bytes(read(b''.join(frame(views))).data) == b''.join(pieces)


def test_every_frame_has_a_mask_of_its_own() -> None:
    message = bytes(16)
    assert len({b''.join(frame([message])) for _ in range(32)}) == 32
