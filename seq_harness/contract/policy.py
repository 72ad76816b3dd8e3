"""What a policy declares of itself to a worker or to a platform."""

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from seq_harness.contract.arm import ActionContract, Embodiment, ObservationContract
from seq_harness.contract.limits import MAX_IO_LENGTH, MAX_PARAMS
from seq_harness.contract.model import WireModel
from seq_harness.contract.own_io import Actions, check_own_io, Observations, Tensors
from seq_harness.contract.params import InferParam
from typing_extensions import Self

Episodes = Literal['shared', 'own']
"""Where an episode's state lives: in an `Episode` that `infer` is given, or on its own copy."""

_FAMILY = r'^[a-z0-9][a-z0-9._-]{0,31}$'


class Timeouts(WireModel):
    """How long a platform waits, in seconds."""

    request: int = Field(ge=1, le=3600)
    """For one inference."""
    startup: int = Field(ge=60, le=18000)
    episode_idle: int | None = Field(default=None, ge=10, le=86400)
    """Without an act, before the worker ends the episode."""


class _Declaration(WireModel):
    """What every form of a declaration says to the robot's side."""

    action: ActionContract | None = None
    observation: ObservationContract | None = None
    embodiments: dict[str, Embodiment] | None = None
    io: str | None = Field(default=None, max_length=MAX_IO_LENGTH)
    """Free text about inputs and outputs."""
    family: str | None = Field(default=None, pattern=_FAMILY)
    episodes: Episodes | None = None
    streaming: bool = Field(default=False, exclude=True)
    """An older way to say `episodes='own'`; read, and never written."""
    observations: Observations | None = None
    actions: Actions | None = None
    tensors: Tensors | None = None

    @model_validator(mode='after')
    def _streaming_is_episodes_own(self) -> Self:
        if self.streaming and self.episodes not in (None, 'own'):
            raise ValueError(
                f"streaming is an older word for episodes='own', and episodes is "
                f'{self.episodes!r}: leave streaming out'
            )
        if self.streaming:
            self.episodes = 'own'
        self.streaming = self.episodes == 'own'
        return self

    @model_validator(mode='after')
    def _inputs_and_outputs_are_said_once(self) -> Self:
        check_own_io(self)
        return self


class PolicySpec(_Declaration):
    """A policy as its author declares it."""

    name: str
    # What a platform needs to start the policy is carried and never read here.
    gpu: str | None = None
    image: Any = None
    weights: str | None = None
    weights_name: str | None = None
    extra_weights: dict[str, str] | None = None
    secrets: list[Any] = Field(default_factory=list)
    min_containers: int = 0
    max_gpus: int | None = Field(default=None, ge=1, le=256)
    buffer_containers: int | None = None
    scaledown_window: int = 600
    on_full: Literal['queue', 'reject'] = 'queue'
    queue_timeout_s: int = Field(default=120, ge=5, le=3600)
    concurrency: Any = None


class DeploymentPolicy(_Declaration):
    """A policy as a deployment holds it."""

    handler_ref: str
    """Where its code is."""
    action_declared: bool | None = None
    params: dict[str, InferParam] | None = Field(default=None, max_length=MAX_PARAMS)
    models: list[str] | None = Field(default=None, max_length=16)
    plan_every_s: float | None = Field(default=None, gt=0)
    secrets: list[Any] = Field(default_factory=list)

    @field_validator('params')
    @classmethod
    def _params_are_arguments(
        cls, params: dict[str, InferParam] | None
    ) -> dict[str, InferParam] | None:
        for name in params or {}:
            if not name.isidentifier() or name.startswith('_'):
                raise ValueError(
                    f'{name!r} is no public Python name, which an inference parameter must be'
                )
        return params
