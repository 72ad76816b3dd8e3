"""Ask an endpoint at one instant of a recording, and see what it would command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seq_harness.bags.charges import charged_real
from seq_harness.bags.lockstep import BagClock, Charged
from seq_harness.bags.mending import opened
from seq_harness.bags.observing import observations_at
from seq_harness.bags.params import Params, settings_from
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError
from seq_harness.bags.replaying import client_of
from seq_harness.harness import Opened
from seq_harness.observation import SampledObservation
from seq_harness.pipeline import Pipeline
from seq_harness.playback.probe import Commanded, Probed, SPAN_NS


def probe_at(bag: Path | str, params: Params, policy: Any, at_s: float) -> Probed:
    """
    Ask once about what is seen `at_s` seconds into a recording, and walk along the answer.

    `params` and `policy` are those of `replay`. What is seen stays as it is meanwhile (R93), and
    nothing more is asked (R89).

    Raises
    ------
    BagError
        The recording cannot be read or holds no such instant, or an input has no message by
        then; says which.
    SettingsError, DeclarationRefused
        The parameters are wrong, or do not fit the policy.
    PolicyError, WorkerLost
        The policy cannot be reached.

    """
    settings = settings_from(params)
    with opened(bag, mend=True) as (read, _):
        _check_instant(read, at_s)
        client = client_of(policy, settings)
        try:
            pipeline = Pipeline(settings, client.connect())
            at_ns = read.start_ns + round(at_s * 1e9)
            seen = next(observations_at(read, settings, pipeline.spec, [at_ns]))
            missing = [i.topic for i in settings.inputs if i.name not in seen.snapshot]
            if missing:
                raise BagError(f'{bag} has no {", ".join(missing)} in its first {at_s:g} s')
            clock = BagClock(at_ns)
            walk = _Walk(clock, Charged(clock, charged_real), seen)
            return walk.along(walk.charged.opened(pipeline, client.open_episode(clock.now_ns)))
        finally:
            client.close()


def _check_instant(bag: Bag, at_s: float) -> None:
    length_s = (bag.end_ns - bag.start_ns) / 1e9
    if not 0 <= at_s <= length_s:
        raise BagError(f'expected an instant from 0 to {length_s:.3f} s of {bag.path}, got {at_s}')


class _Walk:
    """One question, and the calls of the session until its answer is used up."""

    def __init__(self, clock: BagClock, charged: Charged, seen: SampledObservation) -> None:
        self.charged = charged
        self._clock = clock
        self._seen = seen
        self._from_ns = clock.now_ns()

    def along(self, opened: Opened) -> Probed:
        """Walk, and close what was opened."""
        with opened.stack:
            commanded = self._walk(opened)
            acts = self.charged.acts
            finding = '' if commanded else _why_nothing(opened, bool(acts))
        return Probed(acts[0].real_ns if acts else 0, tuple(commanded), finding)

    def _walk(self, opened: Opened) -> list[Commanded]:
        commanded: list[Commanded] = []
        player = opened.player
        while player.finished is None:
            t = self._clock.now_ns()
            commands, resume_at_ns = opened.session(self._seen, t)
            if commands:
                commanded.append(Commanded(t - self._from_ns, commands))
            asked = bool(self.charged.acts)
            # What is asked a second time is never run, so nothing comes after the rows held.
            if not asked and self.charged.run():
                resume_at_ns = self.charged.visible_ns() or resume_at_ns
            elif asked and not player.held and not commands:
                break
            if resume_at_ns - self._from_ns > SPAN_NS:
                break
            self._clock.move(resume_at_ns)
        return commanded


def _why_nothing(opened: Opened, asked: bool) -> str:
    """Say why nothing was commanded (R92)."""
    if not asked:
        return 'the endpoint was not asked: a layer above the player held it back'
    player = opened.player
    reason = player.statistics.last_refusal or player.finished or 'it answered no rows'
    return f'no row was played: {reason}'
