"""The threads under the observation stream: one packs observations, one posts them."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time

from seq_harness.client.cancel import Cancel
from seq_harness.client.link import Link
from seq_harness.client.notices import Notices
from seq_harness.client.packing import joined, observe_parts, pack_observation
from seq_harness.client.posts import Job, Post, Question, Resend, StreamFigures
from seq_harness.client.stream import ObservationStream
from seq_harness.client.transport import (
    AnswerTimedOut,
    ConnectionLost,
    HandshakeRefused,
    Pieces,
    Reply,
    Unreachable,
)
from seq_harness.client.verdict import judge, Verdict
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorCode
from seq_harness.contract.msgpack import pack
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import Queued

POST_S = 5.0
SLOWEST_UPLINK = 125_000
"""A post is given so many seconds, and one more for each so many bytes."""

END_S = 2.0
"""How long the end of an episode may take to tell."""

Failure = (Unreachable, HandshakeRefused, ConnectionLost, AnswerTimedOut)
"""What keeps a post from being answered."""

LATER = (Verdict.BUSY, Verdict.NO_PLACE, Verdict.WARMING, Verdict.AWAY, Verdict.FORGOTTEN)
"""Answers after which the same numbers are posted again."""


class Uploader:
    """
    Run one episode's observation stream beside its acts.

    The paced thread calls `observe`, `skip`, `expect` and `close`, the runtime's thread what
    belongs to an act. Nothing is packed and nothing is sent under the lock.
    """

    def __init__(
        self,
        stream: ObservationStream,
        link: Link,
        notices: Notices,
        drop_after_s: float,
        posts: bool = True,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Let a full stream drop once posts failed for `drop_after_s`, so that acts go on.

        Without `posts` nothing is posted: the worker takes no observations beside the acts.
        """
        self._posts = posts
        self._stream = stream  # under _lock
        self._link = link  # used by the poster alone
        self._notices = notices
        self._drop_after_s = drop_after_s
        self._now_s = now_s
        self._lock = threading.Lock()
        self._to_encode = threading.Condition(self._lock)
        self._to_post = threading.Condition(self._lock)
        self._landed = threading.Condition(self._lock)
        self._closing = False  # under _lock
        self._touched = False  # under _lock: the worker may know of the episode
        self._hold_until_s = 0.0  # under _lock
        self._failing_since_s: float | None = None  # the poster's
        self._posting = Cancel()  # set when nothing is to be posted any more
        self._cancel = Cancel()  # set when nothing is to be told any more
        self._threads = [threading.Thread(target=self._post, name='observe-post', daemon=True)]
        if stream.reads_past:
            self._threads.append(
                threading.Thread(target=self._encode, name='observe-encode', daemon=True)
            )
        for thread in self._threads:
            thread.start()

    # What the paced thread calls.

    def observe(self, number: int, observation: Observation) -> Queued:
        """Take a step that no act carries."""
        with self._lock:
            queued = self._stream.observe(number, observation)
            self._to_encode.notify()
        return queued

    def skip(self, number: int) -> None:
        """Note a step that will never be sent."""
        with self._lock:
            self._stream.skip(number)

    def expect(self, next_ask: int) -> None:
        """Note which step the next ask will be."""
        with self._lock:
            self._stream.expect(next_ask)
            self._to_encode.notify()

    def close(self) -> None:
        """Post nothing more; the poster tells the worker that the episode is over."""
        with self._lock:
            self._closing = True
            self._stream.end()
            self._to_encode.notify_all()
            self._to_post.notify_all()
            self._landed.notify_all()
        self._posting.set()

    def join(self, deadline_s: float) -> None:
        """Wait for the threads until `deadline_s` on the monotonic clock, then cut them off."""
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        self._cancel.set()

    @property
    def ended(self) -> bool:
        """Tell whether both threads are done."""
        return not any(thread.is_alive() for thread in self._threads)

    def figures(self) -> StreamFigures:
        """Return what the stream has done so far."""
        with self._lock:
            return self._stream.figures()

    # What the runtime's thread calls, for one act at a time.

    def begin_act(self, number: int) -> None:
        """Take a step as an act's own, and decide what becomes of those before it."""
        with self._lock:
            self._stream.begin_act(number)
            self._wake_threads()

    def own(self, number: int, payload: Pieces) -> None:
        """Take the packed observation of the act, if it may have to be sent again by itself."""
        if self._stream.reads_past:
            kept = joined(payload)
            with self._lock:
                if not self._closing:
                    self._stream.own(number, kept)

    def ask(self, within_s: float, cancel: Cancel) -> Question | None:
        """
        Return how the act names itself, as it goes out.

        None when what it depends on did not get through in time, or `cancel` was set.
        """
        with self._lock:
            if not self._posts or self._stream.clear():
                return self._ask()
        with cancel.calling(self._wake), self._lock:
            self._landed.wait_for(
                lambda: self._stream.clear() or cancel.is_set() or self._closing, within_s
            )
            return self._ask() if self._stream.clear() else None

    def _ask(self) -> Question:
        self._touched = True
        return self._stream.ask()

    def returned(self, number: int) -> None:
        """Note that the act is not under way any more, and may go again."""
        with self._lock:
            self._stream.returned(number)
            self._wake_threads()

    def served(self, question: Question) -> None:
        """Note that the act was answered."""
        with self._lock:
            self._stream.served(question)
            self._wake_threads()

    def unanswered(self, number: int) -> None:
        """End an act without an answer."""
        with self._lock:
            self._stream.unanswered(number)
            self._wake_threads()

    def resend(self, wire_from: int) -> Resend:
        """Send again what the worker lacks, at once."""
        with self._lock:
            self._hold_until_s = 0.0
            outcome = self._stream.resend(wire_from)
            self._to_post.notify()
            return outcome

    def meet(self, instance: str) -> int:
        """Note which worker process answers; return how often the episode began anew."""
        with self._lock:
            if self._stream.meet(instance):
                self._began_anew()
            return self._stream.restarts

    def restart(self) -> None:
        """Begin the episode anew on a worker that has lost it."""
        with self._lock:
            self._stream.restart()
            self._began_anew()

    def _wake_threads(self) -> None:
        # Waking a thread for nothing costs an act more than packing its observation.
        if self._stream.has_work:
            self._to_encode.notify()
            self._to_post.notify()

    def _began_anew(self) -> None:
        self._hold_until_s = 0.0
        self._to_encode.notify()
        self._to_post.notify()
        self._landed.notify_all()

    def _wake(self) -> None:
        with self._lock:
            self._landed.notify_all()

    # The encoder's thread.

    def _encode(self) -> None:
        while (job := self._next_job()) is not None:
            payload = self._packed(job)
            with self._lock:
                if payload is None:
                    self._stream.unencodable(job)
                else:
                    self._stream.encoded(job, payload)
                self._to_post.notify()

    def _next_job(self) -> Job | None:
        with self._lock:
            while not self._closing:
                job = self._stream.next_job()
                if job is not None:
                    return job
                self._to_encode.wait()
        return None

    def _packed(self, job: Job) -> bytes | None:
        try:
            return pack_observation(job.observation, job.keys)
        except Exception as error:
            self._notices.say('unsendable', f'an observation cannot be sent: {error!r}')
            return None

    # The poster's thread.

    def _post(self) -> None:
        try:
            self._post_all()
            self._end_episode()
        finally:
            self._link.close()

    def _post_all(self) -> None:
        while (post := self._next_post()) is not None:
            try:
                reply = self._deliver(post)
            except Failure as error:
                self._failed(post, str(error))
            else:
                if reply is not None:
                    self._answered(post, reply)

    def _next_post(self) -> Post | None:
        with self._lock:
            while not self._closing:
                hold_s = self._hold_until_s - self._now_s()
                post = self._stream.next_post() if self._posts and hold_s <= 0 else None
                if post is not None:
                    self._touched = True
                    return post
                self._to_post.wait(hold_s if hold_s > 0 else None)
        return None

    def _deliver(self, post: Post) -> Reply | None:
        """Send a post; None when its worker is gone, and the episode began anew on another."""
        within_s = POST_S + post.nbytes / SLOWEST_UPLINK
        connection = self._link.connection(within_s, self._posting)
        if self.meet(connection.instance) != post.generation:
            return None
        try:
            return connection.call(wire.OBSERVE, observe_parts(post), within_s, self._posting)
        except (ConnectionLost, AnswerTimedOut):
            self._link.drop(connection)
            raise

    def _answered(self, post: Post, reply: Reply) -> None:
        judgement = judge(reply)
        again = judgement.verdict in LATER or judgement.code is ErrorCode.UNAUTHENTICATED
        if judgement.verdict is not Verdict.ANSWERED and again:
            self._failed(post, judgement.text)
            return
        with self._lock:
            if judgement.verdict is Verdict.ANSWERED:
                self._failing_since_s = None
                self._stream.landed(post)
            else:
                self._stream.refused(post)
            self._landed.notify_all()
        if judgement.verdict is Verdict.ANSWERED:
            self._notices.clear('stream')
        else:
            self._notices.say('refused', f'the worker refused observations: {judgement.text}')

    def _failed(self, post: Post, reason: str) -> None:
        if self._posting.is_set():
            return
        now_s = self._now_s()
        since_s = self._failing_since_s = self._failing_since_s or now_s
        with self._lock:
            self._hold_until_s = now_s + self._stream.failed(post)
            if now_s - since_s >= self._drop_after_s:
                self._stream.drains(False)
        self._notices.say('stream', f'observations do not get through: {reason}')

    def _end_episode(self) -> None:
        with self._lock:
            episode_id, touched = self._stream.episode_id, self._touched
        if not touched:
            return
        try:
            connection = self._link.connection(END_S, self._cancel)
            parts = {wire.KEY_EPISODE_ID: pack(episode_id)}
            connection.call(wire.EPISODE_END, parts, END_S, self._cancel)
        except Failure:
            pass  # the worker ends an idle episode by itself
