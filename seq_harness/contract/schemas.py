"""The contract as one JSON document, for whoever writes the other half in another language."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema
from seq_harness.contract.act import ActRequest, ActResponse
from seq_harness.contract.arm import ActionChunk, ImageFrame, Observation
from seq_harness.contract.connect import ConnectRequest, ConnectResponse, WorkerDeclaration
from seq_harness.contract.errors import ErrorBody, ERRORS, WarmingError
from seq_harness.contract.flags import SeqFlags
from seq_harness.contract.limits import CONTRACT_VERSION
from seq_harness.contract.model import WireModel
from seq_harness.contract.observe import ObserveRequest, ObserveResponse
from seq_harness.contract.policy import DeploymentPolicy, PolicySpec, Timeouts
from seq_harness.contract.wire import WS_PATH, WS_SUBPROTOCOL

ROOTS: tuple[type[WireModel], ...] = (
    ActionChunk,
    ActRequest,
    ActResponse,
    ConnectRequest,
    ConnectResponse,
    DeploymentPolicy,
    ErrorBody,
    ImageFrame,
    Observation,
    ObserveRequest,
    ObserveResponse,
    PolicySpec,
    Timeouts,
    WarmingError,
    WorkerDeclaration,
)
"""Models from which every other one is reached."""


def schema_document() -> dict[str, Any]:
    """Describe every model as JSON Schema, and the codes of errors and calls as tables."""
    _, schema = models_json_schema([(model, 'validation') for model in ROOTS])
    return {
        '$schema': 'https://json-schema.org/draft/2020-12/schema',
        'contract': CONTRACT_VERSION,
        'websocket': {'path': WS_PATH, 'subprotocol': WS_SUBPROTOCOL},
        '$defs': schema['$defs'],
        'errors': {code.value: rule._asdict() for code, rule in ERRORS.items()},
        'flags': {flag.name: flag.value for flag in SeqFlags},
    }
