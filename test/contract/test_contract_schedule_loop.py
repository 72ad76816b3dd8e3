"""The schedule's promise over whole episodes: what is read was sent, and is still kept."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from seq_harness.contract import obs_schedule, Observations, Schedule
from seq_harness.contract.obs_schedule import Keys

NAMES = ('cam', 'wrist', 'state', 'imu')

offsets = st.lists(st.integers(-30, 0), min_size=1, max_size=5, unique=True)
streams = st.one_of(
    st.builds(lambda at: {'at': at}, offsets),
    st.builds(lambda every: {'every': every}, st.integers(1, 12)),
    st.just({}),
)
pads = st.sampled_from(['repeat_first', 'drop'])
declarations = st.one_of(
    st.builds(
        lambda named, pad: Observations(named, pad=pad),
        st.dictionaries(st.sampled_from(NAMES), streams),
        pads,
    ),
    st.builds(
        lambda every, pad: Observations(every=every, pad=pad),
        st.none() | st.integers(1, 12),
        pads,
    ),
)
gaps = st.lists(st.integers(1, 25), min_size=1, max_size=12)


@dataclass
class Episode:
    """A robot that sends only what is wanted, and a worker that keeps only what it must."""

    schedule: Schedule | None
    held: dict[int, Keys] = field(default_factory=dict)
    t: int = -1

    def act(self, t_next: int) -> None:
        """Send what the gap before `t_next` is wanted for, act, and drop what is passed."""
        self.held.update(obs_schedule.wanted(self.schedule, self.t, t_next))
        for step, keys in obs_schedule.picks(self.schedule, t_next, self.t):
            if step != t_next:
                self.check_held(step, keys)
        self.held[t_next] = None
        kept_from = obs_schedule.keeps_from(self.schedule, t_next)
        self.held = {step: keys for step, keys in self.held.items() if step >= kept_from}
        self.t = t_next

    def check_held(self, step: int, keys: Keys) -> None:
        """Check that a step is held with the keys that are read of it."""
        assert step in self.held, f'step {step} is read, and {sorted(self.held)} are held'
        held = self.held[step]
        if held is not None:
            assert keys is not None, f'the whole of step {step} is read, and {held} are held'
            assert set(keys) <= set(held)


@given(declarations, st.integers(0, 25), gaps)
def test_every_pick_was_wanted_or_an_acts_own_and_is_still_kept(
    declared: Observations, first: int, turns: list[int]
) -> None:
    episode = Episode(obs_schedule.of(declared))
    episode.act(first)
    for turn in turns:
        episode.act(episode.t + turn)


@given(declarations, st.integers(0, 60), st.integers(-1, 60))
def test_needed_is_what_is_picked_beside_the_acts_own(
    declared: Observations, t: int, t_prev: int
) -> None:
    schedule = obs_schedule.of(declared)
    steps = [step for step, _ in obs_schedule.picks(schedule, t, t_prev)]
    assert obs_schedule.needed(schedule, t, t_prev) == set(steps) - {t}
    assert steps == sorted(steps)
    assert all(0 <= step <= t for step in steps)


@given(st.integers(1, 12), st.integers(0, 60), st.integers(0, 60))
def test_a_record_that_starts_later_is_asked_for_nothing_before_it(
    every: int, t: int, base: int
) -> None:
    schedule = obs_schedule.of({'streams': {'cam': {'every': every}, 'state': {}}})
    steps = obs_schedule.needed(schedule, t, base - 1)
    assert all(step >= base for step in steps)
    assert steps == {s for s in obs_schedule.needed(schedule, t) if s >= base}
