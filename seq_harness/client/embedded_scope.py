"""One episode of a policy that runs in this process."""

from __future__ import annotations

from collections.abc import Mapping
import threading
import time
from typing import Any, Protocol

from seq_harness.client.figures import ActTally, ScopeFigures
from seq_harness.client.packing import pack_observation
from seq_harness.client.posts import Job, Post
from seq_harness.client.stream import ObservationStream
from seq_harness.contract import wire
from seq_harness.contract.msgpack import pack, unpack
from seq_harness.contract.obs_schedule import Keys
from seq_harness.playback.uplink import PolicyError, Queued, Retired, Step


class Host(Protocol):
    """A worker that is called instead of written to."""

    def call(self, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body of an answer, or raise PolicyError with what the worker says."""


class EmbeddedScope:
    """
    Hand an episode's steps to a worker in this process (PolicyScope).

    What is observed is packed and unpacked as on a wire, and only what the policy reads is handed
    over, so that it sees what it would see of a worker far away. That happens within `infer`, on
    its thread, or within `flush`; `observe` takes a reference.
    """

    def __init__(
        self, host: Host, stream: ObservationStream, keys: Keys, constants: Mapping[str, Any]
    ) -> None:
        """`keys` are those of an act's own observation, and `constants` go with every act."""
        self._host = host
        self._stream = stream  # under _lock
        self._keys = keys
        self._constants = dict(constants)
        self._tally = ActTally()
        self._lock = threading.Lock()  # held for a few assignments, never during a call
        self._handing = threading.Lock()  # held while observations are handed over, in order
        self._closed = False
        self._touched = False
        self.request_id = ''
        """What the newest act is called."""

    def infer(self, step: Step, plan: Mapping[str, Any] | None = None) -> Any:
        """
        Ask the policy about `step` and return its outputs.

        Raises
        ------
        PolicyError
            The policy failed; carries its exception's type and message.
        Retired
            The episode is closed.
        MsgpackError
            The observation holds what no wire carries.

        """
        if self._closed:
            raise Retired('the episode is closed')
        with self._lock:
            self._stream.begin_act(step.number)
        self._tally.count('asked')
        try:
            return self._asked(step, plan)
        except BaseException:
            self._tally.count('failed')
            with self._lock:
                self._stream.unanswered(step.number)
            raise

    def observe(self, step: Step) -> Queued:
        """Take a step that no act carries."""
        with self._lock:
            return self._stream.observe(step.number, step.observation)

    def skip(self, number: int) -> None:
        """Note a step that will never be handed over."""
        with self._lock:
            self._stream.skip(number)

    def expect(self, next_ask: int) -> None:
        """Say which step the next ask will be."""
        with self._lock:
            self._stream.expect(next_ask)

    def retire(self) -> None:
        """Let a running act end by itself: what runs in this process cannot be given up."""

    def close(self) -> None:
        """End the episode; the policy hears of it once its running act is over."""
        if self._closed:
            return
        self._closed = True
        with self._lock:
            self._stream.end()
        if self._touched:
            self._host.call(wire.EPISODE_END, {wire.KEY_EPISODE_ID: self._stream.episode_id})

    def flush(self) -> None:
        """Hand over, on the caller's thread, everything that is wanted so far."""
        with self._handing:
            while True:
                self._pack_wanted()
                with self._lock:
                    post = self._stream.next_post()
                if post is None:
                    return
                self._touched = True
                self._host.call(wire.OBSERVE, _body_of(post))
                with self._lock:
                    self._stream.landed(post)

    def figures(self) -> ScopeFigures:
        """Return what this episode did so far; may be called from any thread."""
        with self._lock:
            stream = self._stream.figures()
        return ScopeFigures(self._tally.figures(), stream)

    def _asked(self, step: Step, plan: Mapping[str, Any] | None) -> Any:
        payload = pack_observation(step.observation, self._keys)
        with self._lock:
            self._stream.own(step.number, payload)
        self.flush()
        with self._lock:
            question = self._stream.ask()
        self.request_id = wire.new_request_id()
        body = {
            wire.KEY_INPUTS: unpack(payload),
            wire.KEY_EPISODE_ID: question.episode_id,
            wire.KEY_SEQ: question.seq,
            wire.KEY_REQUEST_ID: self.request_id,
            **self._constants,
        }
        if plan is not None:
            body[wire.KEY_PLAN] = unpack(pack(dict(plan)))
        self._touched = True
        began_s = time.perf_counter()
        answer = self._host.call(wire.ACT, body)
        self._tally.answered((time.perf_counter() - began_s) * 1e3, None)
        if wire.KEY_OUTPUTS not in answer:
            raise PolicyError('the answer to an act holds no outputs')
        with self._lock:
            self._stream.served(question)
        return answer[wire.KEY_OUTPUTS]

    def _pack_wanted(self) -> None:
        while True:
            with self._lock:
                job = self._stream.next_job()
            if job is None:
                return
            payload = _packed(job)
            with self._lock:
                if payload is None:
                    self._stream.unencodable(job)
                else:
                    self._stream.encoded(job, payload)


def _packed(job: Job) -> bytes | None:
    """Return a packed observation; None for one that cannot be, which is then skipped."""
    try:
        return pack_observation(job.observation, job.keys)
    except Exception:
        return None


def _body_of(post: Post) -> dict[str, Any]:
    frames = [
        {wire.KEY_SEQ: seq, wire.KEY_INPUTS: unpack(payload)} for seq, payload in post.frames
    ]
    return {
        wire.KEY_EPISODE_ID: post.episode_id,
        wire.KEY_FRAMES: frames,
        wire.KEY_SKIPPED: list(post.skipped),
    }
