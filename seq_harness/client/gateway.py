"""The way to a worker that a gateway tells, for as long as its lease is renewed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
import secrets
import threading
import time
from typing import Any
from urllib.parse import urlencode

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.http import decoded, HttpConnection, open_http, Say
from seq_harness.client.lease import Lease, read_lease
from seq_harness.client.transport import (
    AnswerTimedOut,
    Connection,
    ConnectionLost,
    HandshakeRefused,
    NotReady,
    Reply,
    Unreachable,
)
from seq_harness.client.verdict import judge, Verdict
from seq_harness.contract import wire
from seq_harness.contract.json_body import pack_json

ASK_S = 5.0
RELEASE_S = 3.0
"""How long the gateway may take to answer, and to be told goodbye."""

RETRY_S = 2.0
RETRY_LAST_S = 60.0
"""When a renewal or a keepalive that failed is tried again: from the first to the last."""

WAITING = (Verdict.WARMING, Verdict.BUSY, Verdict.NO_PLACE, Verdict.AWAY)
"""Answers after which the gateway is asked again."""

Failure = (ConnectionLost, AnswerTimedOut, Unreachable, HandshakeRefused)


@dataclass(frozen=True)
class Wanted:
    """Which worker a gateway is asked for, and what its connections may do."""

    model: str
    embodiment: str | None
    allow_plaintext: bool
    max_message_bytes: int


class GatewayRoute:
    """
    Ask a gateway where the worker is, and hold the place there (Route).

    A thread renews the lease ahead of its end and keeps the seat. Under another epoch the
    connections of before lead nowhere, and the episode begins anew on the next ones.
    """

    def __init__(self, gateway: Endpoint, wanted: Wanted, say: Say, cancel: Cancel) -> None:
        """Keep what is found until `cancel` is set."""
        self._gateway = gateway
        self._wanted = wanted
        self._say = say
        self._cancel = cancel
        self._session = secrets.token_hex(16)
        self._lock = threading.Lock()  # held for a few assignments
        self._lease: Lease | None = None  # under _lock
        self._stale = False  # under _lock: the worker may be elsewhere by now
        self._keeper: threading.Thread | None = None  # under _lock
        self._waiting = False  # whether the gateway said to wait; any thread may note it

    def __str__(self) -> str:
        return str(self._gateway)

    def declared(self) -> Mapping[str, Any] | None:
        """Return what the gateway has said of the worker."""
        with self._lock:
            return None if self._lease is None else self._lease.declared

    def open(self, within_s: float, cancel: Cancel) -> Connection:
        """Connect to the worker of now (Route)."""
        deadline_s = time.monotonic() + within_s
        lease = self._current(within_s, cancel)
        left_s = max(0.1, deadline_s - time.monotonic())
        try:
            exchange = open_http(lease.endpoint, left_s, cancel)
        except (Unreachable, HandshakeRefused):
            self.failed()
            raise
        return HttpConnection(exchange, self._session, lease.mark, self._say)

    def leads_to(self, connection: Connection) -> bool:
        """Tell whether a connection was made under the epoch of now (Route)."""
        with self._lock:
            return self._lease is not None and connection.instance.endswith(self._lease.mark)

    def failed(self) -> None:
        """Ask the gateway again before the next connection (Route)."""
        with self._lock:
            self._stale = True

    def renew(self, give_back: bool) -> bool:
        """Ask the gateway again before the next connection (Route)."""
        if give_back:
            self._release()
        self.failed()
        return True

    def close(self) -> None:
        """Give the place back, if one was held."""
        with self._lock:
            held, self._lease = self._lease, None
        if held is not None:
            self._release()

    def _current(self, within_s: float, cancel: Cancel) -> Lease:
        with self._lock:
            if self._lease is not None and not self._stale:
                return self._lease
        return self._connect(within_s, cancel)

    def _connect(self, within_s: float, cancel: Cancel) -> Lease:
        if self._waiting:
            self._look(within_s, cancel)
        body: dict[str, Any] = {**self._named(), 'keepalive': True}
        if self._wanted.embodiment is not None:
            body[wire.KEY_EMBODIMENT] = self._wanted.embodiment
        reply = self._ask(wire.PATH_CONNECT, body, within_s, cancel)
        if not reply.ok:
            raise self._refusal(reply)
        self._waiting = False
        lease = read_lease(
            reply.body, self._gateway, self._wanted.allow_plaintext, self._wanted.max_message_bytes
        )
        self._hold(lease)
        return lease

    def _hold(self, lease: Lease) -> None:
        with self._lock:
            before, self._lease, self._stale = self._lease, lease, False
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name='lease', daemon=True)
                self._keeper.start()
        if before is not None and before.mark != lease.mark:
            self._say('lease', 'the gateway has given us another worker: the episode begins anew')

    def _look(self, within_s: float, cancel: Cancel) -> None:
        """Ask how far the worker is, and raise NotReady unless it serves."""
        query = urlencode({**self._named(), 'keepalive': 'true'})
        reply = self._ask(f'{wire.PATH_READY}?{query}', None, within_s, cancel)
        if reply.ok and reply.body.get('ready') is False:
            raise NotReady(_progress(reply.body), _number(reply.body.get('retry_after_s')) or 1.0)

    def _refusal(self, reply: Reply) -> Exception:
        judgement = judge(reply)
        if judgement.verdict in WAITING:
            self._waiting = True
            return NotReady(judgement.text, judgement.retry_after_s or 0.0)
        return HandshakeRefused(f'{self._gateway} refused to serve: {judgement.text}')

    def _ask(
        self, target: str, body: Mapping[str, Any] | None, within_s: float, cancel: Cancel
    ) -> Reply:
        """
        Ask the gateway, on a connection for this request alone.

        Raises
        ------
        Unreachable, HandshakeRefused
            As `Route.open` says.

        """
        within_s = min(within_s, ASK_S)
        exchange = open_http(self._gateway, within_s, cancel)
        try:
            verb, data = ('GET', None) if body is None else ('POST', pack_json(body))
            headers = {} if body is None else {wire.HEADER_CONTENT_TYPE: wire.JSON_TYPE}
            head, answer = exchange.call(verb, target, data, headers, within_s, cancel)
            return Reply(head.status, decoded(head, answer))
        except (ConnectionLost, AnswerTimedOut) as error:
            raise Unreachable(f'{self._gateway}: {error}') from error
        finally:
            exchange.close()

    def _named(self) -> dict[str, Any]:
        return {wire.KEY_MODEL: self._wanted.model, wire.KEY_SESSION: self._session}

    def _release(self) -> None:
        with suppress(*Failure):
            self._ask(wire.PATH_RELEASE, self._named(), RELEASE_S, Cancel())

    # The keeper's thread.

    def _keep(self) -> None:
        failures, seat_at_s, renew_at_s = 0, time.monotonic(), 0.0
        while (lease := self._held()) is not None:
            renew_at_s = max(renew_at_s, lease.renew_at_s)
            due_s = min(renew_at_s, seat_at_s) if lease.keepalive_s else renew_at_s
            if self._cancel.wait(min(due_s - time.monotonic(), RETRY_LAST_S)):
                return
            now_s = time.monotonic()
            if lease.keepalive_s and now_s >= seat_at_s:
                held = self._keep_seat()
                seat_at_s = now_s + (RETRY_S if held is None else lease.keepalive_s)
                renew_at_s = now_s if held is False else renew_at_s
            if now_s >= renew_at_s:
                failures = 0 if self._renewed() else failures + 1
                back_off_s = min(RETRY_S * 2 ** (failures - 1), RETRY_LAST_S)
                renew_at_s = now_s + back_off_s if failures else 0.0

    def _held(self) -> Lease | None:
        with self._lock:
            return self._lease

    def _renewed(self) -> bool:
        try:
            self._connect(ASK_S, self._cancel)
        except (Unreachable, HandshakeRefused) as error:
            if not self._cancel.is_set():
                self._say('lease', f'the lease could not be renewed: {error}')
            return False
        return True

    def _keep_seat(self) -> bool | None:
        """Tell whether the gateway holds the seat; None where it did not say."""
        try:
            reply = self._ask(wire.PATH_KEEPALIVE, self._named(), ASK_S, self._cancel)
        except (Unreachable, HandshakeRefused):
            return None
        return reply.body.get('held') is not False if reply.ok else None


def _progress(told: Mapping[str, Any]) -> str:
    """Say how far a worker is that does not serve yet."""
    said = [str(told.get('status') or 'starting')]
    if isinstance(stage := told.get('stage'), str):
        said.append(stage)
    if isinstance(place := told.get(wire.DETAIL_QUEUE_POSITION), int):
        said.append(f'place {place} in the line')
    if (eta_s := _number(told.get(wire.DETAIL_ETA_S))) is not None:
        said.append(f'about {eta_s:.0f} s more')
    return '; '.join(said)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
