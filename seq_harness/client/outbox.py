"""The posts of one episode, one at a time: what goes into the next, and what came of the last."""

from __future__ import annotations

from seq_harness.client.ledger import Entry, Ledger, Place, UNSENT
from seq_harness.client.posts import Post, StreamLimits, Tally

MAX_BATCH = 64
"""Frames of one post."""

MAX_SKIPPED = 1024
"""Skipped numbers of one post."""

FIRST_BACK_OFF_S = 0.05
LAST_BACK_OFF_S = 2.0
"""How long no post is made after a failed one: from the first to the last, doubling."""


class Outbox:
    """Take posts from the ledger, and put their contents where the answer says."""

    def __init__(self, ledger: Ledger, limits: StreamLimits, tally: Tally) -> None:
        self._ledger = ledger
        self._limits = limits
        self._tally = tally
        self._flying: Post | None = None
        self._skips_first = False
        self._back_off_s = FIRST_BACK_OFF_S

    @property
    def busy(self) -> bool:
        """Tell whether a post is under way."""
        return self._flying is not None

    @property
    def full(self) -> bool:
        """Tell whether what waits to be sent has reached a bound; one frame alone never has."""
        frames = self._ledger.count(*UNSENT)
        if frames >= self._limits.unsent_frames:
            return True
        return frames > 0 and self._ledger.unsent_bytes() >= self._limits.unsent_bytes

    def take(
        self, generation: int, episode_id: str, base: int, due: int, must_hold: int | None
    ) -> Post | None:
        """
        Make the next post of what is ready, and of the numbers that are skipped.

        A post of skipped numbers alone waits until one of them is below `due`. A post that does
        not hold `must_hold` is not made.
        """
        skips = list(self._ledger.at(Place.SKIPPED))[:MAX_SKIPPED]
        frames = [] if self._skips_first and skips else self._batch()
        if not frames and not (self._skips_first or any(skip.number < due for skip in skips)):
            return None
        numbers = tuple(entry.number for entry in (*frames, *skips))
        if not numbers or (must_hold is not None and must_hold not in numbers):
            return None
        self._skips_first = False
        self._flying = Post(
            generation,
            episode_id,
            tuple((entry.number - base, entry.payload or b'') for entry in frames),
            tuple(entry.number - base for entry in skips),
            numbers,
        )
        for entry in frames:
            self._ledger.move(entry, Place.FLYING)
        for entry in skips:
            self._ledger.move(entry, Place.DECLARING)
        return self._flying

    def landed(self, post: Post) -> bool:
        """Note that a post was answered; return False for one that was given up before."""
        if not self._comes_back(post):
            return False
        self._back_off_s = FIRST_BACK_OFF_S
        self._tally.count(
            posts=1, posted=len(post.frames), posted_bytes=post.nbytes, skipped=len(post.skipped)
        )
        self._put_away(post)
        self._trim_kept()
        return True

    def failed(self, post: Post) -> float:
        """Note that a post was not answered; return how long not to post, in seconds."""
        self._tally.count(failures=1)
        if self._comes_back(post):
            self._return(Place.READY)
        wait_s = self._back_off_s
        self._back_off_s = min(2 * wait_s, LAST_BACK_OFF_S)
        return wait_s

    def refused(self, post: Post) -> bool:
        """
        Note that a post is never to be sent again: its frames are skipped, ahead of the rest.

        Returns True for a post of skipped numbers alone, which is dropped.
        """
        if not self._comes_back(post):
            return False
        self._back_off_s = FIRST_BACK_OFF_S
        if not post.frames:
            self._put_away(post)
            return True
        self._tally.count(refused=len(post.frames))
        self._return(Place.SKIPPED)
        self._skips_first = True
        return False

    def hurry(self) -> None:
        """Start the back-off anew."""
        self._back_off_s = FIRST_BACK_OFF_S

    def give_up(self) -> None:
        """Take back what is under way, whatever becomes of it."""
        self._flying = None
        self._skips_first = False
        self.hurry()
        self._return(Place.READY)

    def _batch(self) -> list[Entry]:
        batch: list[Entry] = []
        room = self._limits.post_bytes
        for entry in self._ledger.at(Place.READY):
            room -= len(entry.payload or b'')
            if batch and (room < 0 or len(batch) == MAX_BATCH):
                break
            batch.append(entry)
        return batch

    def _comes_back(self, post: Post) -> bool:
        if self._flying is not post:
            return False
        self._flying = None
        return True

    def _put_away(self, post: Post) -> None:
        for number in post.numbers:
            entry = self._ledger.get(number)
            if entry is not None and entry.place is Place.FLYING:
                self._ledger.move(entry, Place.LANDED)
            elif entry is not None and entry.place is Place.DECLARING:
                self._ledger.move(entry, Place.DECLARED)
        self._ledger.forget_passed(Place.LANDED, Place.DECLARED)

    def _return(self, frames_to: Place) -> None:
        self._ledger.skip_passed(Place.FLYING)
        for entry in self._ledger.at(Place.FLYING):
            self._ledger.move(entry, frames_to)
        for entry in self._ledger.at(Place.DECLARING):
            self._ledger.move(entry, Place.SKIPPED)

    def _trim_kept(self) -> None:
        """Let go of the oldest payloads that a resend could use, beyond what a worker keeps."""
        spare_frames = self._ledger.count(Place.LANDED) - self._limits.kept_frames
        spare_bytes = self._ledger.payload_bytes(Place.LANDED) - self._limits.kept_bytes
        for entry in self._ledger.at(Place.LANDED):
            if spare_frames <= 0 and spare_bytes <= 0:
                return
            spare_frames -= 1
            spare_bytes -= len(entry.payload or b'')
            self._ledger.pack(entry, None)
