"""The models of connecting to a worker."""

from datetime import datetime

from pydantic import Field
from seq_harness.contract.arm import ActionContract, ObservationContract
from seq_harness.contract.limits import (
    MAX_IO_LENGTH,
    MAX_MESSAGE_BYTES,
    MAX_STREAM_BYTES,
    MAX_STREAM_FRAMES,
)
from seq_harness.contract.model import WireModel
from seq_harness.contract.own_io import Actions, Observations
from seq_harness.contract.params import InferParam


class ConnectRequest(WireModel):
    """Which policy a session wants; real bodies hold more keys, which a worker ignores."""

    model: str
    embodiment: str | None = None
    """Which of the declared bodies the session drives."""


class Lease(WireModel):
    """How long a worker's coordinates hold."""

    ttl_s: int
    expires_at: datetime
    epoch: int
    """The generation of worker and secret; under another one the client connects afresh."""


class ConnectResponse(WireModel):
    """A worker's coordinates and what its policy declares, as a gateway answers them."""

    worker_url: str
    cert_fingerprint: str
    """The sha256 of the worker's DER certificate, in hex."""
    direct_secret: str = Field(repr=False)
    lease: Lease
    action: ActionContract | None = None
    observation: ObservationContract | None = None
    embodiment: str | None = None
    io: str | None = None
    observations: Observations | None = None
    actions: Actions | None = None


class WorkerDeclaration(WireModel):
    """What a worker answers to `connect` over the websocket: its policy's needs, its limits."""

    instance: str
    """A random id of the worker process."""
    io: str | None = Field(default=None, max_length=MAX_IO_LENGTH)
    """Free text about inputs and outputs."""
    observations: Observations | None = None
    actions: Actions | None = None
    action: ActionContract | None = None
    observation: ObservationContract | None = None
    embodiment: str | None = None
    params: dict[str, InferParam] = Field(default_factory=dict)
    columns: list[str] | None = None
    """Names of the action's columns, in order."""
    rtc: bool = False
    """Whether the policy's `infer` takes `plan`."""
    keeps_state: bool = False
    """Whether the policy keeps state that is lost with the worker process."""
    max_message_bytes: int = Field(default=MAX_MESSAGE_BYTES, ge=1)
    max_stream_frames: int = Field(default=MAX_STREAM_FRAMES, ge=1)
    max_stream_bytes: int = Field(default=MAX_STREAM_BYTES, ge=1)
    formats: list[str] = Field(default_factory=list)
