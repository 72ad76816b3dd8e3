"""The robot-arm preset: observations and chunks with fixed names, and what they must hold."""

from enum import Enum
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from seq_harness.contract.camera import Camera
from seq_harness.contract.model import WireModel
from typing_extensions import Self

PROPRIO_FIELDS = ('joint_positions', 'joint_velocities', 'end_effector_pose', 'gripper')
MAX_IMAGES = 256


class ImageFrame(WireModel):
    """One encoded camera frame."""

    view: str
    """The camera's name; it repeats where one view sends several instants."""
    data: str
    """Base64 of a PNG or a JPEG; an address is never fetched."""
    timestamp_ms: int | None = None
    kind: Literal['rgb', 'depth'] | None = None
    """Unset is rgb; depth is a 16-bit PNG in mm, 0 where there is no reading."""


class Proprioception(WireModel):
    """What the arm knows of itself."""

    joint_positions: list[float] | None = None
    """In rad."""
    joint_velocities: list[float] | None = None
    end_effector_pose: list[float] | None = Field(default=None, min_length=7, max_length=7)
    gripper: list[float] | None = None


class Observation(WireModel):
    """What an arm's policy reads at one step."""

    images: list[ImageFrame] = Field(min_length=1, max_length=MAX_IMAGES)
    proprioception: Proprioception
    instruction: str
    state: dict[str, list[float]] | None = None


class ActionSpace(str, Enum):
    """What an arm's numbers command."""

    JOINT_ABSOLUTE = 'joint_absolute'
    JOINT_DELTA = 'joint_delta'
    EE_ABSOLUTE = 'ee_absolute'
    EE_DELTA = 'ee_delta'
    JOINT_VELOCITY = 'joint_velocity'


class ActionStep(WireModel):
    """One row of an arm's chunk."""

    index: int
    values: list[float]


class ActionChunk(WireModel):
    """The rows that an arm's policy answers."""

    steps: list[ActionStep]
    robot: str
    action_space: ActionSpace
    action_dim: int
    control_frequency_hz: float
    covers_seconds: float
    """How long the rows last: the next act must be answered before that."""
    open_loop_horizon: int | None = None
    sustains_seconds: float | None = None


class ActionContract(WireModel):
    """What every row of an arm's policy holds."""

    robot: str
    action_space: ActionSpace
    action_dim: int
    control_frequency_hz: float
    bounds: list[tuple[float, float]] | None = Field(default=None, max_length=256)
    """One `(low, high)` for each dimension."""
    max_delta: float | list[float] | None = None
    """The largest step of a value between two rows, for all dimensions or for each."""

    @model_validator(mode='after')
    def _every_dimension_is_bounded(self) -> Self:
        self._check_length('bounds', self.bounds)
        for i, (low, high) in enumerate(self.bounds or []):
            if low > high:
                raise ValueError(f'bounds[{i}] has its low, {low}, above its high, {high}')
        return self

    @model_validator(mode='after')
    def _every_delta_is_positive(self) -> Self:
        if isinstance(self.max_delta, list):
            self._check_length('max_delta', self.max_delta)
        for value in _as_list(self.max_delta):
            if value <= 0:
                raise ValueError(f'max_delta must be above 0, got {value}')
        return self

    def _check_length(self, name: str, values: list[Any] | None) -> None:
        if values is not None and len(values) != self.action_dim:
            raise ValueError(
                f'{name} holds {len(values)} entries; action_dim={self.action_dim} of them were '
                'expected'
            )


class ObservationContract(WireModel):
    """What every observation for an arm's policy holds."""

    cameras: dict[str, Camera] = Field(default_factory=dict)
    history: int = Field(default=1, ge=1, le=64)
    """Frames of each view, the newest last."""
    proprio: dict[str, int] = Field(default_factory=dict)
    """Proprioception field to its length."""
    state: dict[str, int] = Field(default_factory=dict)
    """Further state's name to its length."""
    instruction: bool = True
    """Whether the instruction must not be empty."""

    @field_validator('cameras')
    @classmethod
    def _cameras_leave_coding_out(cls, cameras: dict[str, Camera]) -> dict[str, Camera]:
        for view, camera in cameras.items():
            for name in ('codec', 'quality', 'layout'):
                if getattr(camera, name) is not None:
                    raise ValueError(
                        f'camera {view!r} declares {name}, which only a policy of its own inputs '
                        'may: declare observations instead, or leave it out'
                    )
        return cameras

    @field_validator('proprio')
    @classmethod
    def _proprio_is_known(cls, proprio: dict[str, int]) -> dict[str, int]:
        for name, length in proprio.items():
            if name not in PROPRIO_FIELDS:
                raise ValueError(f'proprio names {name!r}; its fields are {PROPRIO_FIELDS}')
            if length < 1:
                raise ValueError(f'proprio field {name!r} has length {length}; at least 1 is due')
        return proprio


class Embodiment(WireModel):
    """One body that a policy drives."""

    action: ActionContract
    observation: ObservationContract | None = None
    meta: dict[str, Any] = Field(default_factory=dict)


def _as_list(value: float | list[float] | None) -> list[float]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
