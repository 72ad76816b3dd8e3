"""What an answer to an act means for whoever asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from seq_harness.client.websocket import Reply
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorBody, ErrorCode, read_error


class Verdict(Enum):
    """What to do with an answer."""

    ANSWERED = 'answered'
    RESEND = 'resend'
    """The worker lacks observations: send them again, then the same act."""
    BUSY = 'busy'
    """Every place is taken: the same act again, soon."""
    WARMING = 'warming'
    """The worker is not ready: the same act again, while the reconnect time lasts."""
    AWAY = 'away'
    """It cannot answer on this connection: connect again, then the same act."""
    FORGOTTEN = 'forgotten'
    """The worker has lost the episode: begin it anew there."""
    FAILED = 'failed'


@dataclass(frozen=True)
class Judgement:
    """An answer's meaning, and what goes with it."""

    verdict: Verdict
    code: ErrorCode | None = None
    text: str = ''
    """The remote type and message of what went wrong."""
    retry_after_s: float | None = None
    resend_from: int = 0
    """The first observation that the worker lacks, as it counts."""


def judge(reply: Reply) -> Judgement:
    """Say what an answer to an act means."""
    if reply.ok:
        return Judgement(Verdict.ANSWERED)
    # An answer's body names the worker process beside what the contract's error holds.
    fields = {name: reply.body[name] for name in ErrorBody.model_fields if name in reply.body}
    error = read_error(reply.status, fields)
    return Judgement(
        _verdict(error),
        error.code,
        _text(error),
        error.retry_after_s,
        _resend_from(error.details),
    )


def _verdict(error: ErrorBody) -> Verdict:
    reason = error.details.get(wire.DETAIL_REASON)
    if error.code is ErrorCode.CONFLICT and reason == wire.FRAMES_MISSING:
        return Verdict.RESEND
    if reason == wire.EPISODE_LOST or reason in wire.COPY_LOST_REASONS:
        return Verdict.FORGOTTEN
    if error.code is ErrorCode.WARMING:
        return Verdict.WARMING
    if error.code is ErrorCode.BUSY and reason != wire.NO_PLACE:
        return Verdict.BUSY
    return Verdict.AWAY if error.retryable else Verdict.FAILED


def _text(error: ErrorBody) -> str:
    raised = error.details.get(wire.DETAIL_EXCEPTION)
    if isinstance(raised, Mapping) and 'type' in raised:
        return f'{raised["type"]}: {raised.get("message", error.detail)}'
    eta_s = error.details.get(wire.DETAIL_ETA_S)
    if error.code is ErrorCode.WARMING and isinstance(eta_s, (int, float)):
        return f'{error.code.value}: {error.detail}; about {eta_s:.0f} s more'
    hint = f' ({error.hint})' if error.hint else ''
    return f'{error.code.value}: {error.detail}{hint}'


def _resend_from(details: Mapping[str, Any]) -> int:
    first = details.get(wire.DETAIL_FROM)
    return first if isinstance(first, int) and not isinstance(first, bool) else 0
