"""The observation stream of one episode: a state machine without threads, I/O or a clock."""

from __future__ import annotations

from dataclasses import replace

from seq_harness.client.ledger import Entry, Ledger, PENDING, Place, UNSENT
from seq_harness.client.outbox import MAX_SKIPPED, Outbox
from seq_harness.client.posts import (
    Job,
    Post,
    Question,
    Resend,
    StreamFigures,
    StreamLimits,
    Tally,
    WhenBehind,
)
from seq_harness.client.reading import count_short, Reading, Wish
from seq_harness.contract.obs_schedule import Keys, Schedule
from seq_harness.playback.session import Observation
from seq_harness.playback.uplink import Queued


class ObservationStream:
    """
    Decide what of an episode's observations is sent, when, and what the worker is told instead.

    Every step of the robot ends up in a post or an act, or is declared skipped in a post before
    the act that passes it. One post and one act are under way at a time. The caller serialises
    the calls; none of them blocks.

    Numbers are the robot's steps. On the wire an episode starts at 0 on each worker process, so
    a step travels as its distance from the episode's base there.
    """

    def __init__(
        self,
        schedule: Schedule | None,
        episode_id: str,
        instance: str,
        limits: StreamLimits | None = None,
        when_behind: WhenBehind = WhenBehind.WAIT,
    ) -> None:
        self._reading = Reading(schedule)
        self._episode_id = episode_id
        self._instance = instance
        self._limits = limits or StreamLimits()
        self._when_behind = when_behind
        self._tally = Tally()
        self._ledger = Ledger()
        self._outbox = Outbox(self._ledger, self._limits, self._tally)
        self._draining = True
        self._asked = -1  # how far the acts have come: every step below is decided
        self._served: int | None = None
        self._acting: int | None = None
        self._act_is_out = False
        self._depends: set[int] = set()  # what the worker must be told before the act goes out
        self._next_ask: int | None = None
        self._table: dict[int, Keys] | None = None  # what is wanted before _next_ask
        # The episode as the worker knows it.
        self._generation = 0
        self._base = 0
        self._opened = False

    @property
    def reads_past(self) -> bool:
        """Tell whether an act reads any step before its own; if not, no frame is ever sent."""
        return self._reading.reads_past

    @property
    def opened(self) -> bool:
        """Tell whether the worker has answered for this episode."""
        return self._opened

    @property
    def restarts(self) -> int:
        """Count how often the episode began anew on a worker that did not know it."""
        return self._generation

    @property
    def episode_id(self) -> str:
        """Return the episode's name on the wire, another one after each restart."""
        return f'{self._episode_id}.{self._generation}' if self._generation else self._episode_id

    @property
    def has_work(self) -> bool:
        """Tell whether the encoder or the poster may find something to do."""
        return self._ledger.holds((*PENDING, Place.SKIPPED))

    def figures(self) -> StreamFigures:
        """Return what the stream has done so far."""
        return replace(
            self._tally.figures,
            restarts=self._generation,
            backlog=self._ledger.count(*UNSENT),
            backlog_bytes=self._ledger.unsent_bytes(),
        )

    # The robot's steps.

    def observe(self, number: int, observation: Observation) -> Queued:
        """
        Take the step `number`, which no act carries.

        Raises
        ------
        ValueError
            The number was given before.

        """
        self._check_new(number)
        if not self.reads_past:
            self.skip(number)
            return Queued.ACCEPTED
        if self._outbox.full:
            self._tally.count(full=1)
            if self._when_behind is WhenBehind.WAIT and self._draining:
                return Queued.FULL
            self._drop_oldest()
        self._ledger.put(Entry(number, Place.QUEUED, observation=observation))
        return Queued.ACCEPTED

    def skip(self, number: int) -> None:
        """Note that the step `number` will never be sent."""
        if number not in self._ledger and number > self._asked:
            self._ledger.put(Entry(number, Place.SKIPPED))

    def expect(self, next_ask: int) -> None:
        """Note which step the next ask will be."""
        self._next_ask, self._table = next_ask, None

    def drains(self, yes: bool) -> None:
        """Say whether posts get through; while they do not, a full stream drops its oldest."""
        self._draining = yes

    def end(self) -> None:
        """Let go of all observations: the episode is over, and nothing is sent any more."""
        self._outbox.give_up()
        self._ledger.clear()

    def _check_new(self, number: int) -> None:
        if number in self._ledger or number <= self._asked:
            raise ValueError(f'step {number} was given before: each has a number of its own')

    def _drop_oldest(self) -> None:
        for entry in self._ledger.at(Place.QUEUED, Place.ENCODING, Place.READY):
            if not self._outbox.full:
                return
            self._ledger.move(entry, Place.SKIPPED)
            self._tally.count(dropped=1)

    # The encoder.

    def next_job(self) -> Job | None:
        """Return the next observation to pack, or None; one job at a time."""
        self._sort_pending()
        for entry in self._ledger.at(Place.QUEUED):
            if entry.observation is not None:
                self._ledger.move(entry, Place.ENCODING)
                return Job(entry.number, entry.observation, entry.keys)
        return None

    def encoded(self, job: Job, payload: bytes) -> None:
        """Take the packed observation of a job, unless it was given up meanwhile."""
        entry = self._ledger.get(job.number)
        if entry is None or entry.place is not Place.ENCODING:
            return
        if len(payload) > self._limits.frame_bytes:
            self.unencodable(job)
            return
        self._ledger.pack(entry, payload)
        self._ledger.move(entry, Place.READY)

    def unencodable(self, job: Job) -> None:
        """Note that a job's observation cannot be sent: its number is skipped."""
        entry = self._ledger.get(job.number)
        if entry is not None and entry.place is Place.ENCODING:
            self._ledger.move(entry, Place.SKIPPED)
            self._tally.count(refused=1)

    def _sort_pending(self) -> None:
        """Part what is wanted from what is not, as far as the next ask is known."""
        for entry in self._ledger.at(Place.REFERENCE, Place.QUEUED, Place.READY):
            if entry.number > self._asked:
                self._place(entry, self._wish(entry.number))
        spare = self._ledger.count(Place.REFERENCE) - self._limits.references
        for entry in self._ledger.at(Place.REFERENCE):
            if spare <= 0:
                break
            self._ledger.move(entry, Place.SKIPPED)
            spare -= 1

    def _wish(self, number: int) -> Wish | None:
        """Return what is wanted of a step after the last ask, or None."""
        if self._next_ask is None or number >= self._next_ask:
            return Wish(self._reading.past_keys)
        if self._table is None:
            self._table = self._reading.wanted(self._base, self._served, self._next_ask)
        return self._wish_in(self._table, number)

    def _wish_in(self, table: dict[int, Keys], number: int) -> Wish | None:
        if number in table:
            return Wish(table[number])
        # The worker counts an episode from the first number that it is sent.
        opens = number == self._base and not self._opened
        return Wish(self._reading.past_keys) if opens else None

    def _place(self, entry: Entry, wish: Wish | None) -> None:
        if wish is None:
            place = Place.REFERENCE
        elif entry.payload is None:
            place, entry.keys = Place.QUEUED, wish.keys
        else:
            place = Place.READY
        if place is not entry.place:
            self._ledger.move(entry, place)

    # The poster.

    def next_post(self) -> Post | None:
        """Return the next post, or None while there is nothing to post or one is under way."""
        if self._outbox.busy or (self._act_is_out and not self._opened):
            return None
        self._sort_pending()
        return self._outbox.take(
            self._generation,
            self.episode_id,
            self._base,
            due=self._asked,
            must_hold=None if self._opened else self._base,
        )

    def landed(self, post: Post) -> None:
        """Note that a post was answered."""
        if self._outbox.landed(post):
            self._opened = True
            self._draining = True
            self._depends.difference_update(post.numbers)

    def failed(self, post: Post) -> float:
        """Note that a post was not answered; return how long not to post, in seconds."""
        return self._outbox.failed(post)

    def refused(self, post: Post) -> None:
        """Note that a post is never to be sent again: its frames become skipped."""
        if self._outbox.refused(post):
            self._opened = True  # as far as it ever will be by a post
            self._depends.difference_update(post.numbers)

    # The act.

    def begin_act(self, number: int) -> None:
        """
        Take the step `number` as an act's own; decide what becomes of every step before it.

        Raises
        ------
        ValueError
            The number was given before.

        """
        self._check_new(number)
        if self._acting is not None:
            self.unanswered(self._acting)
        for missing in range(max(self._asked + 1, self._ledger.floor), number):
            self.skip(missing)
        self._ledger.put(Entry(number, Place.ACTING))
        before, self._asked, self._acting = self._asked, number, number
        self._next_ask = self._table = None
        self._decide(before, number)

    def own(self, number: int, payload: bytes) -> None:
        """Take the packed observation of the act, which is kept like a frame."""
        entry = self._own_entry(number)
        if entry is not None:
            self._ledger.pack(entry, payload)

    def clear(self) -> bool:
        """Tell whether nothing that the act depends on is still to be sent or declared."""
        return not self._depends

    def ask(self) -> Question:
        """Return how the act names itself, as it goes out."""
        self._act_is_out = True
        return Question(self._generation, self.episode_id, self._asked - self._base, self._asked)

    def returned(self, number: int) -> None:
        """Note that the act is not under way: it was not answered, or it waits to go again."""
        if number == self._acting:
            self._act_is_out = False

    def served(self, question: Question) -> None:
        """Note that the act was answered; forget what no act can read any more."""
        if question.generation != self._generation:
            self.unanswered(question.number)  # the worker that answered is gone with all it knew
            return
        entry = self._end_act(question.number)
        if entry is None:
            return
        self._opened = True
        self._served, self._table = entry.number, None
        self._ledger.floor = self._reading.keeps_from(self._base, entry.number)
        self._ledger.move(entry, Place.LANDED)
        self._ledger.forget_passed(Place.LANDED, Place.DECLARED)
        self._ledger.skip_passed(*PENDING)
        self._ledger.bound_passed(Place.SKIPPED, MAX_SKIPPED)

    def unanswered(self, number: int) -> None:
        """End an act without an answer: its observation is a step like any other."""
        entry = self._end_act(number)
        if entry is not None:
            sent = entry.payload is not None and self.reads_past and not self._outbox.full
            self._ledger.move(entry, Place.READY if sent else Place.SKIPPED)

    def resend(self, wire_from: int) -> Resend:
        """
        Queue again all that is kept from a number on, as the worker counts.

        The act depends on it, so that it goes out again when the worker has it all.
        """
        first = max(wire_from, 0) + self._base
        self._outbox.hurry()
        if first < self._ledger.floor:
            self.restart()
            return Resend.BEGUN_ANEW
        for entry in self._ledger.at(Place.LANDED, Place.DECLARED):
            if first <= entry.number < self._asked:
                self._send_again(entry)
        for number in range(first, self._asked):
            if number not in self._ledger:
                self._ledger.put(Entry(number, Place.SKIPPED))
        self._depends.update(range(first, self._asked))
        return Resend.QUEUED

    def meet(self, instance: str) -> bool:
        """
        Note which worker process a connection leads to; return whether it is another one.

        Then the episode begins anew on it, from what is kept.
        """
        if instance == self._instance:
            return False
        self._instance = instance
        self.restart()
        return True

    def restart(self) -> None:
        """Begin the episode anew at 0 on the wire, and queue what is kept for it."""
        self._generation += 1
        self._base, self._served, self._table = self._ledger.floor, None, None
        self._opened = self._act_is_out = False
        self._outbox.give_up()
        self._ledger.forget_passed(*Place)
        for entry in self._ledger.at(Place.LANDED, Place.DECLARED):
            self._send_again(entry)
        if self._acting is not None:
            self._decide(self._base - 1, self._acting)

    def _decide(self, after: int, asked: int) -> None:
        """Decide each step between `after` and `asked`: sent, or skipped for good."""
        if not self.reads_past:
            self._depends = self._untold_needs(asked)
            return
        table = self._reading.wanted(self._base, self._served, asked)
        for entry in self._ledger.at(*PENDING):
            if not after < entry.number < asked:
                continue
            wish = self._wish_in(table, entry.number)
            if wish is None:
                self._ledger.move(entry, Place.SKIPPED)
            elif entry.place is not Place.ENCODING:
                self._place(entry, wish)
        sent = self._ledger.at(Place.LANDED, Place.FLYING, Place.READY, Place.ENCODING)
        short = count_short(((entry.number, entry.keys) for entry in sent), table)
        self._tally.count(short_of_keys=short)
        self._depends = self._untold_needs(asked)

    def _untold_needs(self, asked: int) -> set[int]:
        needs = self._reading.needed(self._base, self._served, asked)
        if needs:
            untold = self._ledger.at(Place.SKIPPED, Place.DECLARING)
            needs &= {entry.number for entry in untold}
        if not self._opened and asked > self._base:
            needs.add(self._base)
        return needs

    def _send_again(self, entry: Entry) -> None:
        again = entry.place is Place.LANDED and entry.payload is not None
        self._ledger.move(entry, Place.READY if again else Place.SKIPPED)
        self._tally.count(resent=int(again))

    def _end_act(self, number: int) -> Entry | None:
        entry = self._own_entry(number)
        if entry is not None:
            self._acting, self._act_is_out, self._depends = None, False, set()
        return entry

    def _own_entry(self, number: int) -> Entry | None:
        return self._ledger.get(number) if number == self._acting else None
