"""A worker's record of one episode, as the wire describes it and no more."""

from __future__ import annotations

from typing import Any

from seq_harness.client.posts import Post, Question
from seq_harness.contract import obs_schedule
from seq_harness.contract.obs_schedule import Schedule


class ModelWorker:
    """
    Keep the frames of episodes by number, and say what an act would wait for and be handed.

    An episode is counted from the first number that it is sent, and never from a lower one.
    """

    def __init__(self, schedule: Schedule | None) -> None:
        self.schedule = schedule
        self.base: dict[str, int] = {}
        self.frames: dict[str, dict[int, Any]] = {}
        self.skipped: dict[str, set[int]] = {}
        self.t_prev: dict[str, int] = {}
        self.told: dict[str, set[int]] = {}
        """Every number that was ever sent or declared."""

    def observe(self, post: Post) -> None:
        """Store the frames of a post."""
        self._open(post.episode_id, min([seq for seq, _ in post.frames] + list(post.skipped)))
        for seq, payload in post.frames:
            self.frames[post.episode_id].setdefault(seq, payload)
        self.skipped[post.episode_id].update(post.skipped)
        self.told[post.episode_id].update(post.skipped, (seq for seq, _ in post.frames))

    def take(self, question: Question, own: Any) -> None:
        """Store an act's own observation, as the act is taken."""
        self._open(question.episode_id, question.seq)
        self.frames[question.episode_id].setdefault(question.seq, own)
        self.told[question.episode_id].add(question.seq)

    def missing(self, question: Question) -> set[int]:
        """Return what the act reads and the worker knows nothing of."""
        episode = question.episode_id
        held = self.frames[episode].keys() | self.skipped[episode]
        return {step for step, _ in self._picks(question)} - held - {question.seq}

    def picks(self, question: Question) -> list[tuple[int, Any]]:
        """Return what the act is handed: the step's number and its observation, or None."""
        frames = self.frames[question.episode_id]
        return [(step, frames.get(step)) for step, _ in self._picks(question)]

    def serve(self, question: Question) -> None:
        """Answer the act: what no later act reads is dropped."""
        episode = question.episode_id
        self.t_prev[episode] = question.seq
        floor = obs_schedule.keeps_from(self.schedule, question.seq)
        self.frames[episode] = {n: f for n, f in self.frames[episode].items() if n >= floor}

    def _picks(self, question: Question) -> list[Any]:
        t_prev = self.t_prev.get(question.episode_id, -1)
        return obs_schedule.picks(self.schedule, question.seq, t_prev)

    def _open(self, episode: str, first: int) -> None:
        self.base.setdefault(episode, first)
        self.frames.setdefault(episode, {})
        self.skipped.setdefault(episode, set())
        self.told.setdefault(episode, set())
