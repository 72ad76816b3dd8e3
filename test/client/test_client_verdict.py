"""What an answer that is no success says, and how much of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from seq_harness.client.transport import Reply
from seq_harness.client.verdict import judge, Verdict

TRACEBACK = 'Traceback (most recent call last):\n  File "policy.py", line 1\nKeyError: 3'


def failed(detail: str, **more: Any) -> Reply:
    return Reply(500, {'detail': detail, 'code': 'policy_error', **more})


def test_a_traceback_ends_an_act_with_its_last_line_and_goes_to_the_log_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        judgement = judge(failed(TRACEBACK))
    assert judgement.verdict is Verdict.FAILED
    assert judgement.text == 'policy_error: KeyError: 3'
    assert TRACEBACK in caplog.text


def test_what_the_policy_raised_is_one_line_that_no_terminal_obeys() -> None:
    raised = {'type': 'ValueError', 'message': 'bad\x1b[2J row\n' + 'x' * 3000}
    text = judge(failed('it failed', details={'exception': raised})).text
    assert text.startswith(r'ValueError: bad\x1b[2J row\nx')
    assert len(text) == 200


def test_a_short_text_is_not_said_twice(caplog: pytest.LogCaptureFixture) -> None:
    assert judge(failed('no such key', hint='declare it')).text == (
        'policy_error: no such key (declare it)'
    )
    assert not caplog.records
