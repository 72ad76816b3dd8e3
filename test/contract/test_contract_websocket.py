"""Frames cut from what comes of a connection, against the library that made them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
from seq_harness.contract.websocket import BINARY, Cut, Cutter, FIN
from websockets.frames import Frame, Opcode

MOST = 70_000

frames = st.builds(
    Frame,
    opcode=st.sampled_from(list(Opcode)),
    data=st.one_of(
        st.binary(max_size=140), st.sampled_from([125, 126, 65_535, 65_536]).map(bytes)
    ),
    fin=st.booleans(),
)
DATA = (Opcode.CONT, Opcode.TEXT, Opcode.BINARY)


def written(frame: Frame, *, masked: bool) -> bytes:
    """Write a frame as the library does; one that it would refuse is made sound first."""
    if frame.opcode not in DATA:
        frame = Frame(frame.opcode, bytes(frame.data)[:125])
    return frame.serialize(mask=masked)


def in_parts(sent: bytes, cuts: list[int]) -> list[bytes]:
    ends = [*sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    return [sent[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@settings(deadline=None)
@given(
    st.lists(frames, min_size=1, max_size=6),
    st.booleans(),
    st.lists(st.integers(0, 1 << 20), max_size=8),
)
def test_frames_are_cut_whole_wherever_they_were_parted(
    sent: list[Frame], masked: bool, cuts: list[int]
) -> None:
    raws = [written(frame, masked=masked) for frame in sent]
    cutter = Cutter(MOST)
    came = [cut for part in in_parts(b''.join(raws), cuts) for cut in cutter.cut(part)]
    assert [cut.raw for cut in came] == raws
    assert all(cut.is_whole and cut.is_masked == masked for cut in came)
    assert cutter.take_rest() == b''
    for cut, frame in zip(came, sent, strict=True):
        assert cut.first & 0x0F == frame.opcode
        if frame.opcode in DATA:
            assert (cut.data, bool(cut.first & FIN)) == (bytes(frame.data), frame.fin)


def test_one_frame_that_comes_whole_is_not_copied() -> None:
    raw = Frame(Opcode.BINARY, bytes(1000)).serialize(mask=True)
    (cut,) = Cutter(MOST).cut(raw)
    assert cut.raw is raw


@pytest.mark.parametrize('masked', [False, True])
@pytest.mark.parametrize('parts', [[], [1, 5], [2, 3, 9, 12, 14, 300]])
def test_a_frame_over_the_limit_is_passed_on_as_it_comes(masked: bool, parts: list[int]) -> None:
    sent = Frame(Opcode.BINARY, bytes(MOST + 1)).serialize(mask=masked)[:400]
    cutter, came = Cutter(MOST), b''
    for part in in_parts(sent, parts):
        for cut in cutter.cut(part):
            came += cut.raw
            assert not cut.is_whole or came != cut.raw
    assert came + cutter.take_rest() == sent


def test_a_frame_just_at_the_limit_is_whole() -> None:
    sent = Frame(Opcode.BINARY, bytes(MOST)).serialize(mask=False)
    assert [cut.is_whole for cut in Cutter(MOST).cut(sent)] == [True]
    assert Cutter(MOST - 1).cut(sent) == [Cut(sent, 10, is_whole=False)]


def test_what_came_of_a_frame_can_be_taken_back_once() -> None:
    sent = Frame(Opcode.BINARY, bytes(50)).serialize(mask=False)
    cutter = Cutter(MOST)
    assert cutter.cut(sent[:20]) == []
    assert (cutter.take_rest(), cutter.take_rest()) == (sent[:20], b'')
    assert [cut.first for cut in cutter.cut(sent)] == [FIN | BINARY]


def test_thousands_of_little_frames_in_one_piece_take_no_time_that_grows_with_their_square() -> (
    None
):
    ping = Frame(Opcode.PING, b'').serialize(mask=True)
    assert len(Cutter(MOST).cut(ping * 40_000)) == 40_000
