"""The first request on a connection for acts, and what a worker declares in its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from seq_harness.client.cancel import Cancel
from seq_harness.client.transport import Connection, HandshakeRefused, Reply
from seq_harness.contract import wire
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.msgpack import pack

HELLO_S = 5.0
"""How long the first request on a connection may take."""

NO_SUCH_ROUTE = (404, 405)


def ping(connection: Connection, cancel: Cancel) -> Reply:
    """Ask a connection whose it is."""
    return connection.call(wire.PING, {}, HELLO_S, cancel)


class Greeting:
    """
    Learn what the worker declares, which must stay the same but for the instance.

    `declared` returns what a gateway has said of the worker, or None where the worker itself is
    asked.
    """

    def __init__(
        self,
        name: str,
        request: Mapping[str, Any],
        declared: Callable[[], Mapping[str, Any] | None],
    ) -> None:
        self._name = name
        self._parts = {key: pack(value) for key, value in request.items()}
        self._declared = declared
        self.declaration: WorkerDeclaration | None = None
        """Replaced whole, by who connects."""

    def __call__(self, connection: Connection, cancel: Cancel) -> Reply:
        """
        Greet the worker and take note of what it declares.

        Raises
        ------
        HandshakeRefused
            It declares something else than before, or what is not understood.

        """
        told = self._declared()
        if told is not None:
            reply = ping(connection, cancel)
        else:
            reply = connection.call(wire.CONNECT, self._parts, HELLO_S, cancel)
            told = reply.body
            if reply.status in NO_SUCH_ROUTE:  # it serves acts, and declares nothing
                reply, told = ping(connection, cancel), {}
        if reply.ok and reply.instance is not None:
            self._learn(told, reply.instance, connection.formats)
        return reply

    def _learn(self, told: Mapping[str, Any], instance: str, formats: frozenset[str]) -> None:
        known = {name: told[name] for name in told if name in WorkerDeclaration.model_fields}
        named = known.get('formats')
        formats |= set(named) if isinstance(named, list) else set()
        known |= {'formats': sorted(formats), wire.KEY_INSTANCE: instance}
        try:
            declaration = WorkerDeclaration.model_validate(known)
        except ValidationError as error:
            raise HandshakeRefused(
                f'{self._name} declares its policy in a way that is not understood: {error}'
            ) from error
        before = self.declaration
        if before is not None and _facts(declaration) != _facts(before):
            raise HandshakeRefused(
                f'{self._name} serves another policy than the one this robot was configured for: '
                'configure again'
            )
        self.declaration = declaration


def _facts(declaration: WorkerDeclaration) -> dict[str, Any]:
    return declaration.model_dump(exclude={'instance'})
