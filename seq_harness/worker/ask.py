"""What an act asks, read from the bodies that clients send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError
from seq_harness.contract.act import ActRequest
from seq_harness.contract.errors import Rejected
from seq_harness.contract.limits import MAX_EPISODE_ID
from seq_harness.contract.wire import (
    KEY_CALL,
    KEY_EPISODE_ID,
    KEY_INPUTS,
    KEY_OBSERVATION,
    KEY_REQUEST_ID,
    KEY_SEQ,
)
from seq_harness.worker.reply import invalid

MAX_REQUEST_ID = 256
"""Characters in the id of a request."""

MAX_NUMBER = 2**53
"""The last number of an observation: what every JSON reader still counts exactly."""

VERSION_1, VERSION_2, BARE, CALL = 1, 2, 0, -1
"""The styles of a body: `observation`, `inputs`, the inputs alone, and none at all."""


class _Ask(ActRequest):
    inputs: Any = None
    episode_id: str | None = Field(default=None, min_length=1, max_length=MAX_EPISODE_ID)
    request_id: str | None = Field(default=None, min_length=1, max_length=MAX_REQUEST_ID)


_FIELDS = tuple(_Ask.model_fields)
USUAL_KEYS = 4
"""The keys of an act as most are: inputs, episode_id, seq and request_id."""


@dataclass(frozen=True)
class Caller:
    """Who sent a request, as far as a worker cares."""

    session: str = ''
    """Keeps the request ids of clients apart where no episode does."""
    refills: bool = False
    """It can send again what came before this worker's first observation."""
    request_id: str | None = None
    """The request's id, where a header carries it."""


@dataclass(eq=False)
class Ask:
    """One act, asked in any style; what it carries is let go of once it is answered."""

    style: int
    inputs: Any
    seed: int | None
    episode_id: str | None
    params: dict[str, Any] | None
    plan: dict[str, Any] | None
    number: int | None
    """The number of the newest observation the act may read; none is an act by itself."""
    embodiment: str | None
    request_id: str | None
    refills: bool

    @property
    def carries_own(self) -> bool:
        """Whether the act brings its own observation."""
        return self.style != CALL


def read_ask(body: Any, caller: Caller, bare: bool = False) -> Ask:
    """
    Read the body of an act; keys that are not known are ignored.

    `bare` lets a body without `inputs` be the inputs themselves.

    Raises
    ------
    Rejected
        A field is not as the contract says, or nothing is asked.

    """
    style = _style(body, bare)
    if style == VERSION_2 and _is_usual(body):
        return _usual(body)
    fields = body if style != BARE else {KEY_INPUTS: body}
    known = {name: fields[name] for name in _FIELDS if name in fields}
    if style == VERSION_1:
        known[KEY_INPUTS] = fields[KEY_OBSERVATION]
    try:
        ask = _Ask.model_validate(known)
    except ValidationError as error:
        raise invalid('an act', error) from None
    if ask.seq is not None:
        check_numbers((ask.seq,))
    return Ask(
        style=style,
        inputs=ask.inputs,
        seed=ask.seed,
        episode_id=ask.episode_id,
        params=ask.params,
        plan=ask.plan,
        number=_newest(ask, style),
        embodiment=ask.embodiment,
        request_id=ask.request_id or caller.request_id,
        refills=caller.refills or (style != BARE and KEY_REQUEST_ID in fields),
    )


def _is_usual(fields: dict[Any, Any]) -> bool:
    """Tell whether an act is one as most are, whose fields the model would take as they are."""
    seq, episode_id = fields.get(KEY_SEQ), fields.get(KEY_EPISODE_ID)
    request_id = fields.get(KEY_REQUEST_ID)
    return (
        len(fields) == USUAL_KEYS
        and (type(seq) is int and 0 <= seq <= MAX_NUMBER)
        and (type(episode_id) is str and 0 < len(episode_id) <= MAX_EPISODE_ID)
        and (type(request_id) is str and 0 < len(request_id) <= MAX_REQUEST_ID)
    )


def _usual(fields: dict[Any, Any]) -> Ask:
    return Ask(
        style=VERSION_2,
        inputs=fields[KEY_INPUTS],
        seed=None,
        episode_id=fields[KEY_EPISODE_ID],
        params=None,
        plan=None,
        number=fields[KEY_SEQ],
        embodiment=None,
        request_id=fields[KEY_REQUEST_ID],
        refills=True,
    )


def check_numbers(numbers: Iterable[int]) -> None:
    """
    Refuse a number that no episode reaches, before it is counted with.

    Raises
    ------
    Rejected
        One is too high.

    """
    highest = max(numbers, default=0)
    if highest > MAX_NUMBER:
        raise Rejected(
            f'an observation has a number of {highest.bit_length()} bits; {MAX_NUMBER} is the last'
        )


def _style(body: Any, bare: bool) -> int:
    if isinstance(body, dict):
        if KEY_INPUTS in body:
            return VERSION_2
        if KEY_OBSERVATION in body:
            return VERSION_1
        if isinstance(body.get(KEY_CALL), str):
            return CALL
    if bare:
        return BARE
    raise Rejected(
        'the body of an act holds no inputs',
        hint='send {"inputs": <the observation>, "episode_id": ..., "seq": ...}',
    )


def _newest(ask: _Ask, style: int) -> int | None:
    if style != CALL:
        return ask.seq if ask.episode_id is not None else None
    if ask.episode_id is None or not ask.seq:
        raise Rejected(
            'an act without inputs reads the observations of its episode, and none was sent',
            hint='observe first, and send episode_id and seq, the count of observations so far',
        )
    return ask.seq - 1
