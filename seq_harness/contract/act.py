"""The models of one act: a question to the policy, and its answer."""

from typing import Any

from pydantic import Field
from seq_harness.contract.model import WireModel


class ActRequest(WireModel):
    """
    What an act asks.

    Real bodies hold more keys than these (`model`, `call`): a worker reads the keys it knows and
    ignores the others, so it must not validate a body with this model as it came.
    """

    inputs: Any
    """What the policy's `infer` takes."""
    seed: int | None = None
    episode_id: str | None = None
    params: dict[str, Any] | None = None
    """Values for the inference parameters that the policy declares."""
    embodiment: str | None = None
    plan: dict[str, Any] | None = None
    """What the robot still holds of the chunk before; see the `PLAN_*` keys."""
    seq: int | None = Field(default=None, ge=0)
    """The number of this act's own observation in the episode's stream."""


class ActResponse(WireModel):
    """What an act answers."""

    outputs: Any
    """What `infer` returned, untouched."""
    perf: dict[str, Any] | None = None
    """Timings; `handler_ms` is the worker's outermost wall time."""
    usage: dict[str, Any] | None = None
    warnings: list[str] = Field(default_factory=list)
    """What went wrong without failing the act, such as a clipped value."""
    request_id: str | None = None
    action_chunk: dict[str, Any] | None = None
    """The version 1 name of a robot-arm chunk; equals `outputs`."""
    plan: dict[str, Any] | None = None
