"""The way to a worker whose address is known."""

from __future__ import annotations

import secrets

from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.http import HttpConnection, open_http, Say
from seq_harness.client.transport import Connection
from seq_harness.client.websocket import open_websocket


class DirectRoute:
    """Connect to one address, whose scheme names the binding (Route)."""

    def __init__(self, endpoint: Endpoint, say: Say) -> None:
        self._endpoint = endpoint
        self._session = secrets.token_hex(16)
        self._say = say

    def __str__(self) -> str:
        return str(self._endpoint)

    def open(self, within_s: float, cancel: Cancel) -> Connection:
        """Connect (Route)."""
        if self._endpoint.is_websocket:
            return open_websocket(self._endpoint, within_s, cancel)
        exchange = open_http(self._endpoint, within_s, cancel)
        return HttpConnection(exchange, self._session, '', self._say)

    def leads_to(self, connection: Connection) -> bool:
        """Tell that the address never changes."""
        return True

    def failed(self) -> None:
        """Note a failure, after which the address is the same."""

    def renew(self, give_back: bool) -> bool:
        """Tell that there is nobody to ask."""
        return False

    def close(self) -> None:
        """Release nothing: no place is held."""
