"""What a worker reads of the body of an act, whichever keys it has."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from seq_harness.contract.errors import TransportError
from seq_harness.contract.limits import MAX_EPISODE_ID
from seq_harness.worker.ask import Caller, MAX_NUMBER, MAX_REQUEST_ID, read_ask

USUAL = {'inputs': {'state': 1}, 'episode_id': 'e', 'seq': 7, 'request_id': 'r-1'}
VALUES: list[Any] = [
    *(None, True, False, 1.0, 1.5, '7', b'e', [], {}, 'r-1'),
    *(-1, 0, 7, MAX_NUMBER, MAX_NUMBER + 1, 2**64),
    *('', 'x' * MAX_REQUEST_ID, 'x' * (MAX_REQUEST_ID + 1), 'x' * MAX_EPISODE_ID),
    'x' * (MAX_EPISODE_ID + 1),
]
CALLERS = (Caller(), Caller(refills=True), Caller(request_id='header'))


def read(body: dict[str, Any], caller: Caller) -> dict[str, Any] | None:
    """Return what is read; None where the body is refused."""
    try:
        return asdict(read_ask(body, caller))
    except TransportError:
        return None


@pytest.mark.parametrize('key', [*USUAL, 'seed', 'params', 'plan', 'embodiment'])
def test_an_act_of_the_usual_keys_is_read_as_one_of_any_others(key: str) -> None:
    without = {name: value for name, value in USUAL.items() if name != key}
    for body in (USUAL, without, *({**USUAL, key: value} for value in VALUES)):
        for caller in CALLERS:
            # A key of a later contract is ignored.
            assert read(body, caller) == read({**body, 'later': 1}, caller), (body, caller)


def test_an_act_of_the_usual_keys_is_read() -> None:
    ask = read_ask(USUAL, Caller())
    assert ask.inputs is USUAL['inputs']
    assert (ask.episode_id, ask.number, ask.request_id, ask.refills) == ('e', 7, 'r-1', True)
    assert (ask.seed, ask.params, ask.plan, ask.embodiment) == (None, None, None, None)
