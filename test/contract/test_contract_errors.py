"""Errors on the wire: their table, their body, and the exceptions that become one."""

from typing import Any

from pydantic import ValidationError
import pytest
from seq_harness.contract import (
    code_of_status,
    ErrorBody,
    ErrorCode,
    ERRORS,
    Overloaded,
    read_error,
    Rejected,
    TransportError,
    Unavailable,
    Warming,
    WarmingError,
)

TABLE = """
invalid_request 400 no InvalidRequest 2
payload_too_large 413 no InvalidRequest 2
unauthenticated 401 no AuthError 3
forbidden 403 no PermissionDenied 3
insufficient_credit 402 no OutOfCredit 6
budget_exhausted 402 no OutOfCredit 6
not_found 404 no NotFound 4
conflict 409 no Conflict 5
gone 410 no Gone 4
busy 429 yes Unavailable 7
warming 503 yes Unavailable 7
unavailable 503 yes Unavailable 7
upstream_error 502 yes Unavailable 7
timeout 504 yes Unavailable 7
policy_error 500 no PolicyError 1
internal 500 no InternalError 1
dependency_missing 424 no InternalError 1
"""
ROWS = [line.split() for line in TABLE.split('\n') if line]


@pytest.mark.parametrize(('name', 'status', 'retryable', 'raised', 'exit_code'), ROWS)
def test_each_code_means_what_the_table_says(
    name: str, status: str, retryable: str, raised: str, exit_code: str
) -> None:
    rule = ERRORS[ErrorCode(name)]
    assert rule == (int(status), retryable == 'yes', raised, int(exit_code))
    body = ErrorBody(detail='d', code=ErrorCode(name))
    assert (body.status, body.retryable) == (rule.status, rule.retryable)


def test_every_code_is_in_the_table() -> None:
    assert [row[0] for row in ROWS] == [code.value for code in ErrorCode]
    assert set(ERRORS) == set(ErrorCode)


@pytest.mark.parametrize(
    ('status', 'code'),
    [
        (402, 'insufficient_credit'),
        (405, 'invalid_request'),
        (418, 'invalid_request'),
        (422, 'invalid_request'),
        (409, 'conflict'),
        (424, 'dependency_missing'),
        (429, 'busy'),
        (500, 'internal'),
        (501, 'internal'),
        (502, 'upstream_error'),
        (503, 'unavailable'),
        (504, 'timeout'),
        (599, 'internal'),
    ],
)
def test_a_bare_status_names_a_code(status: int, code: str) -> None:
    assert code_of_status(status).value == code


def test_a_body_has_exactly_these_fields_and_defaults() -> None:
    assert ErrorBody.model_validate({'detail': 'd', 'code': 'busy'}).model_dump() == {
        'detail': 'd',
        'code': ErrorCode.BUSY,
        'retryable': True,
        'retry_after_s': None,
        'request_id': None,
        'hint': None,
        'details': {},
    }


@pytest.mark.parametrize('given', [{}, {'retryable': None}, {'retryable': False}])
def test_retryable_is_filled_from_the_table(given: dict[str, Any]) -> None:
    assert not ErrorBody.model_validate({'detail': 'd', 'code': 'gone', **given}).retryable


@pytest.mark.parametrize(
    'given',
    [
        {'code': 'gone', 'retryable': True},
        {'code': 'busy', 'retryable': False},
        {'code': 'unheard_of'},
        {},
        {'code': 'gone', 'extra': 1},
    ],
)
def test_a_body_that_disagrees_with_the_table_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ErrorBody.model_validate({'detail': 'd', **given})


def test_warming_says_when_to_come_back() -> None:
    body = WarmingError(detail='loading', retry_after_s=5)
    assert (body.code, body.retryable, body.status) == (ErrorCode.WARMING, True, 503)
    with pytest.raises(ValidationError):
        WarmingError.model_validate({'detail': 'loading'})


@pytest.mark.parametrize(
    ('error', 'status', 'retry_after_s'),
    [
        (Unavailable('x'), 503, None),
        (Warming('x', eta_s=12.0), 503, 12.0),
        (Rejected('x'), 400, None),
        (Overloaded('x'), 429, 1.0),
        (Overloaded('x', retry_after_s=3.0), 429, 3.0),
        (TransportError(ErrorCode.CONFLICT, 'x', details={'from': 3}), 409, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_failure_before_an_answer_knows_its_body(
    error: TransportError, status: int, retry_after_s: float | None
) -> None:
    body = error.body(request_id='r-1')
    assert (body.status, body.retry_after_s, body.request_id) == (status, retry_after_s, 'r-1')
    assert body.details == error.details
    assert str(error) == body.detail == 'x'


def test_warming_carries_its_eta() -> None:
    assert Warming('x', eta_s=12.0).body().details == {'eta_s': 12.0}


def test_a_good_body_is_read_as_it_is() -> None:
    sent = ErrorBody(detail='d', code=ErrorCode.CONFLICT, details={'reason': 'frames_missing'})
    assert read_error(409, sent.model_dump(mode='json')) == sent


@pytest.mark.parametrize('body', [None, 'Bad Gateway', b'', [1], {'detail': 'd'}, {'code': 'x'}])
def test_a_body_of_someone_elses_gets_the_code_of_its_status(body: Any) -> None:
    read = read_error(502, body)
    assert read.code is ErrorCode.UPSTREAM_ERROR
    assert read.detail
