"""Whatever happens on the way, an act reads the real observations or what was declared skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from client.model_worker import ModelWorker
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, RuleBasedStateMachine
from seq_harness.client.posts import Job, Post, Question, StreamLimits, WhenBehind
from seq_harness.client.stream import ObservationStream
from seq_harness.contract import obs_schedule

LIMITS = StreamLimits(unsent_frames=8, references=5, post_bytes=12)
ROOM = StreamLimits(post_bytes=2)

offsets = st.lists(st.integers(-12, 0), min_size=1, max_size=4, unique=True)
keys: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({'at': offsets}),
    st.fixed_dictionaries({'every': st.integers(1, 5)}),
    st.just({}),
)
declarations: st.SearchStrategy[dict[str, Any] | None] = st.one_of(
    st.none(),
    st.just({}),
    st.fixed_dictionaries({'every': st.integers(1, 5)}),
    st.fixed_dictionaries(
        {
            'streams': st.dictionaries(st.sampled_from('abc'), keys, max_size=3),
            'pad': st.sampled_from(['repeat_first', 'drop']),
        }
    ),
)


def payload_of(number: int) -> bytes:
    return number.to_bytes(2, 'big')


class StreamMachine(RuleBasedStateMachine):
    """
    A robot, its stream and workers; every hand-over may come late, fail or be refused.

    While it is `gentle` nothing is dropped, refused or given up, so that nothing may be missing.
    """

    @initialize(
        declaration=declarations, when_behind=st.sampled_from(WhenBehind), gentle=st.booleans()
    )
    def open(
        self, declaration: dict[str, Any] | None, when_behind: WhenBehind, gentle: bool
    ) -> None:
        self.gentle = gentle
        self.schedule = obs_schedule.of(declaration)
        self.worker = ModelWorker(self.schedule)
        self.workers = 1
        limits = ROOM if gentle else LIMITS
        self.stream = ObservationStream(self.schedule, 'ep', 'w1', limits, when_behind)
        self.never_sent: set[int] = set()
        self.number = 0
        self.given_up: set[int] = set()
        self.job: Job | None = None
        self.post: Post | None = None
        self.acting: int | None = None
        self.question: Question | None = None

    # The robot's thread.

    @rule()
    def observe(self) -> None:
        taken = self.stream.observe(self.number, {'n': self.number})
        self.number += taken.name == 'ACCEPTED'

    @rule()
    def skip(self) -> None:
        self.stream.skip(self.number)
        self.never_sent.add(self.number)
        self.number += 1

    @rule(ahead=st.integers(0, 12))
    def expect(self, ahead: int) -> None:
        self.stream.expect(self.number + ahead)

    # The encoder's.

    @precondition(lambda self: self.job is None)
    @rule()
    def encode_begins(self) -> None:
        self.job = self.stream.next_job()

    @precondition(lambda self: self.job is not None)
    @rule(works=st.booleans())
    def encode_ends(self, works: bool) -> None:
        job, self.job = self.job, None
        assert job is not None
        if works or self.gentle:
            self.stream.encoded(job, payload_of(job.number))
        else:
            self.stream.unencodable(job)

    # The poster's.

    @precondition(lambda self: self.post is None)
    @rule()
    def post_begins(self) -> None:
        self.post = self.stream.next_post()

    @precondition(lambda self: self.post is not None)
    @rule(outcome=st.sampled_from(['landed', 'answer lost', 'failed', 'refused']))
    def post_ends(self, outcome: str) -> None:
        post, self.post = self.post, None
        assert post is not None
        arrives = post.generation == self.stream.restarts and outcome in ('landed', 'answer lost')
        if arrives:
            self.worker.observe(post)
        if outcome == 'landed' and arrives:
            self.stream.landed(post)
        elif outcome == 'refused' and not self.gentle:
            self.stream.refused(post)
            if not post.frames:
                self.given_up.update(post.numbers)
        else:
            self.stream.failed(post)

    # The runtime's.

    @precondition(lambda self: self.acting is None)
    @rule()
    def act_begins(self) -> None:
        self.acting = self.number
        self.number += 1
        self.stream.begin_act(self.acting)
        self.stream.own(self.acting, payload_of(self.acting))

    @precondition(lambda self: self.acting is not None and self.question is None)
    @rule()
    def act_goes_out(self) -> None:
        if not self.stream.clear():
            self.let_it_settle()
        assert self.stream.clear()
        assert self.acting is not None
        self.question = self.stream.ask()
        self.worker.take(self.question, payload_of(self.acting))

    @precondition(lambda self: self.question is not None)
    @rule()
    def act_is_served(self) -> None:
        question = self.question
        assert question is not None
        if question.generation == self.stream.restarts:
            self.let_it_settle(until=lambda: not self.worker.missing(question))
            base = question.number - question.seq
            assert self.worker.missing(question) <= {n - base for n in self.given_up}
            self.check_picks(question)
            self.worker.serve(question)
        self.stream.served(question)
        self.acting = self.question = None

    @precondition(lambda self: self.question is not None)
    @rule()
    def act_must_go_again(self) -> None:
        assert self.acting is not None
        self.stream.returned(self.acting)
        self.question = None

    @precondition(lambda self: self.question is not None and self.may_lose_history())
    @rule(back=st.integers(0, 14))
    def worker_asks_again(self, back: int) -> None:
        question = self.question
        assert question is not None
        if question.generation == self.stream.restarts:
            self.stream.returned(question.number)
            self.stream.resend(max(0, question.seq - back))
            if self.stream.restarts != question.generation:
                self.post = None
            self.question = None

    @precondition(lambda self: self.acting is not None and self.may_lose_history())
    @rule()
    def act_fails(self) -> None:
        assert self.acting is not None
        self.stream.unanswered(self.acting)
        self.acting = self.question = None

    @precondition(lambda self: self.may_lose_history())
    @rule()
    def worker_restarts(self) -> None:
        self.workers += 1
        self.worker = ModelWorker(self.schedule)
        self.stream.meet(f'w{self.workers}')

    @precondition(lambda self: self.question is not None)
    @rule()
    def worker_is_told_of_every_step(self) -> None:
        question = self.question
        assert question is not None
        if question.generation == self.stream.restarts and self.stream.opened:
            self.let_it_settle()
            base = question.number - question.seq
            told = self.worker.told[question.episode_id]
            assert set(range(question.seq + 1)) - told <= {n - base for n in self.given_up}

    def may_lose_history(self) -> bool:
        """Tell whether steps may be wanted that an act before had no use for."""
        fed = self.schedule is not None and (self.schedule.fed or self.schedule.every)
        return not (self.gentle and fed)

    # What must hold.

    def let_it_settle(self, until: Callable[[], bool] = lambda: False) -> None:
        """Finish what is under way, and let the encoder and the poster run while they must."""
        if self.post is not None:
            self.post_ends('landed')
        if self.job is not None:
            self.encode_ends(True)
        while not until():
            job = self.stream.next_job()
            post = self.stream.next_post() if job is None else None
            if job is not None:
                self.stream.encoded(job, payload_of(job.number))
            elif post is not None:
                self.worker.observe(post)
                self.stream.landed(post)
            else:
                return

    def check_picks(self, question: Question) -> None:
        base = question.number - question.seq
        skipped = self.worker.skipped[question.episode_id]
        for seq, payload in self.worker.picks(question):
            if payload is None:
                assert seq in skipped or seq + base in self.given_up
                assert not self.gentle or seq + base in self.never_sent
            else:
                assert payload == payload_of(seq + base)

    @invariant()
    def is_bounded(self) -> None:
        if not hasattr(self, 'stream'):
            return
        # What is sent again for another worker was bounded when it was taken.
        figures = self.stream.figures()
        held = LIMITS.unsent_frames + LIMITS.references + 1
        assert self.gentle or figures.backlog <= held + figures.resent


TestStream = StreamMachine.TestCase
TestStream.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)


@dataclass
class Turn:
    """The steps from one act to the next, and how far their upload comes meanwhile."""

    steps: int
    expected: int | None
    encoded: int
    posted: int


turns = st.lists(
    st.builds(
        Turn,
        steps=st.integers(0, 12),
        expected=st.none() | st.integers(0, 14),
        encoded=st.integers(0, 12),
        posted=st.integers(0, 12),
    ),
    min_size=2,
    max_size=8,
)


@given(declaration=declarations, turns=turns)
@settings(deadline=None, max_examples=300)
def test_an_act_is_served_the_real_observations_however_slow_the_upload(
    declaration: dict[str, Any] | None, turns: list[Turn]
) -> None:
    machine = StreamMachine()
    machine.open(declaration, WhenBehind.WAIT, gentle=True)
    for turn in turns:
        if turn.expected is not None:
            machine.expect(turn.expected)
        for _ in range(turn.steps):
            machine.observe()
        for _ in range(turn.encoded):
            machine.encode_begins()
            if machine.job is not None:
                machine.encode_ends(True)
        for _ in range(turn.posted):
            machine.post_begins()
            if machine.post is not None:
                machine.post_ends('landed')
        machine.act_begins()
        machine.act_goes_out()
        machine.act_is_served()
