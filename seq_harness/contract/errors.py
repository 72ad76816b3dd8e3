"""What goes wrong on the wire: codes, their table, the body that carries them, exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from pydantic import Field, field_validator, ValidationError, ValidationInfo
from seq_harness.contract.model import WireModel
from seq_harness.contract.wire import DETAIL_ETA_S


class ErrorCode(str, Enum):
    """What kind of failure a body tells of."""

    INVALID_REQUEST = 'invalid_request'
    PAYLOAD_TOO_LARGE = 'payload_too_large'
    UNAUTHENTICATED = 'unauthenticated'
    FORBIDDEN = 'forbidden'
    INSUFFICIENT_CREDIT = 'insufficient_credit'
    BUDGET_EXHAUSTED = 'budget_exhausted'
    NOT_FOUND = 'not_found'
    CONFLICT = 'conflict'
    GONE = 'gone'
    BUSY = 'busy'
    WARMING = 'warming'
    UNAVAILABLE = 'unavailable'
    UPSTREAM_ERROR = 'upstream_error'
    TIMEOUT = 'timeout'
    POLICY_ERROR = 'policy_error'
    INTERNAL = 'internal'
    DEPENDENCY_MISSING = 'dependency_missing'


class ErrorRule(NamedTuple):
    """What one code means to whoever meets it."""

    status: int
    """The HTTP status it travels with."""
    retryable: bool
    """Whether the same request may be sent again."""
    client_error: str
    """The name of the exception that the public client raises."""
    exit_code: int
    """The exit status of a command that ends with it."""


ERRORS: Mapping[ErrorCode, ErrorRule] = {
    ErrorCode.INVALID_REQUEST: ErrorRule(400, False, 'InvalidRequest', 2),
    ErrorCode.PAYLOAD_TOO_LARGE: ErrorRule(413, False, 'InvalidRequest', 2),
    ErrorCode.UNAUTHENTICATED: ErrorRule(401, False, 'AuthError', 3),
    ErrorCode.FORBIDDEN: ErrorRule(403, False, 'PermissionDenied', 3),
    ErrorCode.INSUFFICIENT_CREDIT: ErrorRule(402, False, 'OutOfCredit', 6),
    ErrorCode.BUDGET_EXHAUSTED: ErrorRule(402, False, 'OutOfCredit', 6),
    ErrorCode.NOT_FOUND: ErrorRule(404, False, 'NotFound', 4),
    ErrorCode.CONFLICT: ErrorRule(409, False, 'Conflict', 5),
    ErrorCode.GONE: ErrorRule(410, False, 'Gone', 4),
    ErrorCode.BUSY: ErrorRule(429, True, 'Unavailable', 7),
    ErrorCode.WARMING: ErrorRule(503, True, 'Unavailable', 7),
    ErrorCode.UNAVAILABLE: ErrorRule(503, True, 'Unavailable', 7),
    ErrorCode.UPSTREAM_ERROR: ErrorRule(502, True, 'Unavailable', 7),
    ErrorCode.TIMEOUT: ErrorRule(504, True, 'Unavailable', 7),
    ErrorCode.POLICY_ERROR: ErrorRule(500, False, 'PolicyError', 1),
    ErrorCode.INTERNAL: ErrorRule(500, False, 'InternalError', 1),
    ErrorCode.DEPENDENCY_MISSING: ErrorRule(424, False, 'InternalError', 1),
}

# Where several codes share a status, a bare status means the plainest of them.
_CODE_OF_STATUS = {
    **{rule.status: code for code, rule in ERRORS.items()},
    402: ErrorCode.INSUFFICIENT_CREDIT,
    405: ErrorCode.INVALID_REQUEST,
    422: ErrorCode.INVALID_REQUEST,
    500: ErrorCode.INTERNAL,
    503: ErrorCode.UNAVAILABLE,
}


def code_of_status(status: int) -> ErrorCode:
    """Name the code that a status without a readable body stands for."""
    known = _CODE_OF_STATUS.get(status)
    if known is not None:
        return known
    return ErrorCode.INVALID_REQUEST if 400 <= status < 500 else ErrorCode.INTERNAL


class ErrorBody(WireModel):
    """The body of every answer that is no success."""

    detail: str
    code: ErrorCode
    retryable: bool = Field(default_factory=lambda: None, validate_default=True)
    """Filled from the table when it is absent; a value that disagrees with it is refused."""
    retry_after_s: float | None = None
    """Also sent in the `Retry-After` header."""
    request_id: str | None = None
    hint: str | None = None
    """What the reader can do about it."""
    details: dict[str, Any] = Field(default_factory=dict)

    @field_validator('retryable', mode='before')
    @classmethod
    def _retryable_comes_from_the_table(cls, value: Any, info: ValidationInfo) -> Any:
        code = info.data.get('code')
        return ERRORS[code].retryable if value is None and code is not None else value

    @field_validator('retryable')
    @classmethod
    def _retryable_agrees_with_the_table(cls, value: bool, info: ValidationInfo) -> bool:
        code = info.data.get('code')
        if code is not None and ERRORS[code].retryable != value:
            raise ValueError(f'{code.value} is retryable={ERRORS[code].retryable}, got {value}')
        return value

    @property
    def status(self) -> int:
        """Return the HTTP status that the table gives its code."""
        return ERRORS[self.code].status


class WarmingError(ErrorBody):
    """The worker is not ready yet; `details.eta_s` says when it may be."""

    code: ErrorCode = ErrorCode.WARMING
    retry_after_s: float


def read_error(status: int, body: Any) -> ErrorBody:
    """
    Read the answer to a request that failed, whatever came as its body.

    A body that is no `ErrorBody`, as a proxy's, becomes one with the code of its status.
    """
    try:
        return ErrorBody.model_validate(body)
    except ValidationError:
        detail = body.get('detail') if isinstance(body, Mapping) else body
        text = detail if isinstance(detail, str) else f'the answer has status {status}'
        return ErrorBody(detail=text[:2000], code=code_of_status(status))


class TransportError(RuntimeError):
    """A failure before any answer was made; knows the body that tells of it."""

    def __init__(
        self,
        code: ErrorCode,
        detail: str,
        *,
        retry_after_s: float | None = None,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.hint = hint
        self.details = dict(details or {})

    def body(self, request_id: str | None = None) -> ErrorBody:
        """Make the body to answer with."""
        return ErrorBody(
            detail=self.detail,
            code=self.code,
            retry_after_s=self.retry_after_s,
            request_id=request_id,
            hint=self.hint,
            details=self.details,
        )


class Unavailable(TransportError):
    """The worker cannot answer now (503)."""

    def __init__(self, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(ErrorCode.UNAVAILABLE, detail, retry_after_s=retry_after_s)


class Warming(TransportError):
    """The worker is loading; `eta_s` is when it may be ready, in seconds (503)."""

    def __init__(self, detail: str, *, eta_s: float) -> None:
        super().__init__(
            ErrorCode.WARMING, detail, retry_after_s=eta_s, details={DETAIL_ETA_S: eta_s}
        )
        self.eta_s = eta_s


class Rejected(TransportError):
    """The request is wrong and is never to be sent again (400)."""

    def __init__(
        self, detail: str, *, hint: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, detail, hint=hint, details=details)


class Overloaded(TransportError):
    """Every place is taken (429)."""

    def __init__(self, detail: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(ErrorCode.BUSY, detail, retry_after_s=retry_after_s)
