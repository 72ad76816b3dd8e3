"""The observation stream's models."""

from typing import Any

from pydantic import Field
from seq_harness.contract.limits import MAX_EPISODE_ID
from seq_harness.contract.model import WireModel


class ObserveFrame(WireModel):
    """One observation of an episode."""

    seq: int = Field(ge=0)
    """Its number in the episode; the first is 0."""
    inputs: Any
    """The observation as the robot built it; never inspected on the way."""


class ObserveRequest(WireModel):
    """Observations on their way to the worker; one with neither list asks for `through` alone."""

    episode_id: str = Field(min_length=1, max_length=MAX_EPISODE_ID)
    frames: list[ObserveFrame] = Field(default_factory=list)
    """A number may come again: it is answered the same and stored once."""
    skipped: list[int] = Field(default_factory=list)
    """Numbers that the robot will never send."""


class ObserveResponse(WireModel):
    """How far the worker's record of an episode reaches without a gap."""

    through: int = Field(ge=-1)
    """The highest n such that every number up to n is held or was skipped; -1 when none is."""
