"""What an answer to an act means for whoever asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
import logging
from typing import Any

from seq_harness.client.transport import Reply
from seq_harness.contract import wire
from seq_harness.contract.errors import ErrorBody, ErrorCode, read_error
from seq_harness.contract.excerpt import excerpt, logged

HEAD_OF_LINE_S = 1.0
IN_LINE_S = 2.0
LINE_DEFAULT_S = 5.0
LINE_LAST_S = 30.0
"""Waits in a line: the shortest at its head and behind it, the usual one, the longest."""


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
    NO_PLACE = 'no place'
    """The place that was held is gone: give it back, and ask for another."""
    EXPIRED = 'expired'
    """The secret is not the worker's any more: ask for its coordinates anew."""
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
    never_ran: bool = False
    """Whether the worker says that it did not take the act; a proxy's bare 503 does not."""
    resend_from: int = 0
    """The first observation that the worker lacks, as it counts."""


ANSWERED = Judgement(Verdict.ANSWERED)

log = logging.getLogger('seq_harness.client')


def judge(reply: Reply) -> Judgement:
    """Say what an answer to an act means."""
    if reply.ok:
        return ANSWERED
    # An answer's body names the worker process beside what the contract's error holds.
    fields = {name: reply.body[name] for name in ErrorBody.model_fields if name in reply.body}
    error = read_error(reply.status, fields)
    verdict, text = _verdict(error), _text(error)
    if verdict is Verdict.FAILED and (whole := logged(_whole(error))) not in text:
        log.error('the worker failed an act:\n%s', whole)
    return Judgement(
        verdict,
        error.code,
        text,
        _retry_after_s(error),
        error.code is ErrorCode.UNAVAILABLE and 'code' in fields,
        _resend_from(error.details),
    )


def _verdict(error: ErrorBody) -> Verdict:
    reason = error.details.get(wire.DETAIL_REASON)
    if error.code is ErrorCode.CONFLICT and reason == wire.FRAMES_MISSING:
        return Verdict.RESEND
    if reason == wire.EPISODE_LOST or reason in wire.COPY_LOST_REASONS:
        return Verdict.FORGOTTEN
    if error.code is ErrorCode.WARMING or wire.DETAIL_QUEUE_POSITION in error.details:
        return Verdict.WARMING
    if error.code is ErrorCode.BUSY:
        return Verdict.NO_PLACE if reason == wire.NO_PLACE else Verdict.BUSY
    if error.code is ErrorCode.UNAUTHENTICATED:
        return Verdict.EXPIRED
    return Verdict.AWAY if error.retryable else Verdict.FAILED


def _retry_after_s(error: ErrorBody) -> float | None:
    """Return how long to wait; in a line, not so often that the line is slowed."""
    place = error.details.get(wire.DETAIL_QUEUE_POSITION)
    if not isinstance(place, int):
        return error.retry_after_s
    soonest_s = HEAD_OF_LINE_S if place <= 1 else IN_LINE_S
    return min(max(error.retry_after_s or LINE_DEFAULT_S, soonest_s), LINE_LAST_S)


def _whole(error: ErrorBody) -> str:
    """Return what failed in the worker's own words."""
    raised = _raised(error)
    return f'{raised["type"]}: {raised.get("message", error.detail)}' if raised else error.detail


def _raised(error: ErrorBody) -> Mapping[str, Any]:
    """Return what the policy itself raised, by type and message; empty if it is not known."""
    raised = error.details.get(wire.DETAIL_EXCEPTION)
    return raised if isinstance(raised, Mapping) and 'type' in raised else {}


def _text(error: ErrorBody) -> str:
    detail = excerpt(_whole(error))
    if _raised(error):
        return detail
    eta_s = error.details.get(wire.DETAIL_ETA_S)
    if error.code is ErrorCode.WARMING and isinstance(eta_s, (int, float)):
        return f'{error.code.value}: {detail}; about {eta_s:.0f} s more'
    place = error.details.get(wire.DETAIL_QUEUE_POSITION)
    if isinstance(place, int):
        return f'{error.code.value}: {detail}; place {place} in the line'
    hint = f' ({excerpt(error.hint)})' if error.hint else ''
    return f'{error.code.value}: {detail}{hint}'


def _resend_from(details: Mapping[str, Any]) -> int:
    first = details.get(wire.DETAIL_FROM)
    return first if isinstance(first, int) and not isinstance(first, bool) else 0
