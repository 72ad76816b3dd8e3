"""Short ways to drive an observation stream by hand."""

from __future__ import annotations

from typing import Any

from seq_harness.client.posts import Job, Post, StreamLimits, WhenBehind
from seq_harness.client.stream import ObservationStream
from seq_harness.contract import obs_schedule
from seq_harness.playback.uplink import Queued

EVERY = {'every': 1}
WINDOW = {'streams': {'cam': {'at': [-3, 0]}, 'state': {}}}


def stream_of(
    declaration: dict[str, Any] | None,
    limits: StreamLimits | None = None,
    when_behind: WhenBehind = WhenBehind.WAIT,
) -> ObservationStream:
    return ObservationStream(obs_schedule.of(declaration), 'ep', 'worker-a', limits, when_behind)


def observe(stream: ObservationStream, *numbers: int) -> list[Queued]:
    return [stream.observe(number, {'cam': number, 'state': number}) for number in numbers]


def encode(stream: ObservationStream, nbytes: int = 1) -> list[Job]:
    jobs = []
    while (job := stream.next_job()) is not None:
        jobs.append(job)
        stream.encoded(job, bytes([job.number % 256]) * nbytes)
    return jobs


def post(stream: ObservationStream) -> Post:
    encode(stream)
    taken = stream.next_post()
    assert taken is not None
    return taken


def act(stream: ObservationStream, number: int) -> None:
    """Ask about a step and have it answered."""
    stream.begin_act(number)
    stream.own(number, b'own')
    stream.served(stream.ask())


def opened(declaration: dict[str, Any] | None, **more: Any) -> ObservationStream:
    """Return a stream whose first act, at step 0, was answered."""
    stream = stream_of(declaration, **more)
    act(stream, 0)
    return stream


def seqs(taken: Post) -> list[int]:
    return [seq for seq, _ in taken.frames]
