"""Texts from outside, as reasons, topics and the log show them."""

from __future__ import annotations

import pytest
from seq_harness.contract.excerpt import escaped, excerpt, LOGGED, logged, SHOWN

TRACEBACK = (
    'Traceback (most recent call last):\n'
    '  File "serve.py", line 7, in infer\n'
    '    return self.model(x)\n'
    'RuntimeError: CUDA out of memory\n'
)


def test_a_traceback_comes_to_its_last_line() -> None:
    assert excerpt(TRACEBACK) == 'RuntimeError: CUDA out of memory'
    assert excerpt(f'PolicyFailed: {TRACEBACK}') == 'RuntimeError: CUDA out of memory'


def test_the_end_of_a_long_traceback_is_kept_though_a_beginning_alone_would_fit() -> None:
    long = TRACEBACK.replace('    return', '    # ' + 'x' * 5000 + '\n    return')
    assert excerpt(long) == 'RuntimeError: CUDA out of memory'


def test_another_text_keeps_its_beginning_in_one_line() -> None:
    assert excerpt('one\n\ntwo\n') == r'one\ntwo'
    shown = excerpt('x' * 5000)
    assert len(shown) == SHOWN
    assert shown.endswith('...')
    assert excerpt('x' * SHOWN) == 'x' * SHOWN


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('\x1b[2Jgone', r'\x1b[2Jgone'),
        ('a\rb', r'a\nb'),
        ('bell\a', r'bell\x07'),
        ('left\u202eright', r'left\u202eright'),
        ('grüße, 你好', 'grüße, 你好'),
    ],
)
def test_no_text_writes_to_a_terminal_what_it_likes(text: str, shown: str) -> None:
    assert excerpt(text) == shown
    assert escaped(excerpt(text)).isprintable()


def test_the_log_keeps_the_lines_and_the_first_4000_characters() -> None:
    assert logged(TRACEBACK) == TRACEBACK.rstrip('\n')
    assert logged('\x1b[2J\n\ttab') == '\\x1b[2J\n    tab'
    assert len(logged('x\n' * 100_000)) == LOGGED


def test_what_is_no_text_is_shown_as_one() -> None:
    assert excerpt(['a', 1]) == "['a', 1]"
    assert excerpt('') == ''
