"""What a worker answers, packed once, whichever wire it leaves by."""

from __future__ import annotations

from collections.abc import Mapping
import json
import logging
import time
import traceback
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError
from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.contract.msgpack import pack, unpack
from seq_harness.contract.wire import DETAIL_EXCEPTION, KEY_INSTANCE

OK = 200

REPEAT_S = 10.0
"""How often a failure that goes on is logged."""

log = logging.getLogger('seq_harness.worker')


class FailureLog:
    """Log failures with their tracebacks, and one that goes on only now and then."""

    def __init__(self) -> None:
        self._last = ''
        self._told_s = 0.0
        self._repeats = 0

    def tell(self, what: str, error: BaseException) -> None:
        """Log a failure, unless it is the last one again within `REPEAT_S`."""
        said, now_s = f'{what}: {describe(error)}', time.monotonic()
        if said == self._last and now_s - self._told_s < REPEAT_S:
            self._repeats += 1
            return
        more = f' (and {self._repeats} times before)' if said == self._last else ''
        log.error('%s%s', what, more, exc_info=error)
        self._last, self._told_s, self._repeats = said, now_s, 0


FAILURES = FailureLog()


class Seldom(logging.Filter):
    """Let one record in `REPEAT_S` through, for what any stranger can make happen."""

    def __init__(self) -> None:
        super().__init__()
        self._told_s = -REPEAT_S

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record goes out."""
        now_s = time.monotonic()
        if now_s - self._told_s < REPEAT_S:
            return False
        self._told_s = now_s
        return True


class Reply(NamedTuple):
    """A status and the msgpack of a body; made on any thread, read by any other."""

    status: int
    body: bytes
    retry_after_s: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the status is a success."""
        return self.status == OK

    def json(self) -> bytes:
        """
        Return the body as JSON, its arrays as nested lists.

        Raises
        ------
        TransportError
            It holds bytes, which JSON does not carry.

        """
        return json.dumps(_plain(unpack(self.body)), separators=(',', ':')).encode()


def accept(instance: str, body: Mapping[str, Any]) -> Reply:
    """Make the reply of a request that succeeded."""
    return Reply(OK, pack({**body, KEY_INSTANCE: instance}))


def refuse(instance: str, error: Exception, debug: bool, request_id: str | None = None) -> Reply:
    """
    Make the reply of a request that failed.

    An error that the wire has no name for is the worker's own: its traceback goes to the log, and
    to the client only under `debug`.
    """
    if not isinstance(error, TransportError):
        FAILURES.tell('a request failed in the worker', error)
        detail = f'the worker failed: {describe(error)}'
        error = TransportError(ErrorCode.INTERNAL, detail, details=exception_details(error, debug))
    body = error.body(request_id)
    fields = body.model_dump(mode='json', exclude_none=True)
    return Reply(body.status, pack({**fields, KEY_INSTANCE: instance}), body.retry_after_s)


def describe(error: BaseException) -> str:
    """Name an exception in one line."""
    return f'{type(error).__name__}: {str(error)[:2000]}'


def exception_details(error: BaseException, debug: bool) -> dict[str, Any]:
    """Return the details of an error body that tells of `error`."""
    told = {'type': type(error).__name__, 'message': str(error)[:2000]}
    if debug:
        told['traceback'] = ''.join(traceback.format_exception(error))
    return {DETAIL_EXCEPTION: told}


def invalid(what: str, error: ValidationError) -> TransportError:
    """Say which fields of a body were not as expected."""
    wrong = '; '.join(
        f'{".".join(str(part) for part in problem["loc"]) or "body"}: {problem["msg"]}'
        for problem in error.errors(include_input=False, include_url=False)[:5]
    )
    return TransportError(ErrorCode.INVALID_REQUEST, f'the body of {what} is wrong: {wrong}')


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, bytes):
        raise TransportError(
            ErrorCode.INVALID_REQUEST,
            'the answer holds bytes, which JSON does not carry',
            hint='ask for the answer in msgpack with the Accept header',
        )
    return value
