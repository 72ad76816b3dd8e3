"""Opening a websocket for whole messages."""

from __future__ import annotations

from collections.abc import Mapping
import logging

from seq_harness.client.cancel import Cancel
from seq_harness.client.channel import dial
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.opening import opened
from seq_harness.client.plain_websocket import PlainWebsocket
from seq_harness.client.transport import HandshakeRefused
from websockets.client import ClientProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

wire_log = logging.getLogger('seq_harness.client.websocket')
# At DEBUG the library logs the headers of the handshake, and with them the token.
wire_log.setLevel(logging.WARNING)


def connected_websocket(
    endpoint: Endpoint,
    within_s: float,
    cancel: Cancel,
    *,
    headers: Mapping[str, str],
    subprotocol: str | None = None,
) -> PlainWebsocket:
    """
    Connect and shake hands within `within_s` seconds, or until `cancel` is set.

    `headers` go with the handshake; no compression is offered.

    Raises
    ------
    Unreachable
        Nobody answered, the peer takes no connections now, or `cancel` was set.
    HandshakeRefused
        The peer refused the token, or does not speak `subprotocol`; a `StatusRefused` where an
        HTTP status says so.

    """

    def make(deadline_s: float, given_up: Cancel) -> PlainWebsocket:
        return _connected(endpoint, deadline_s, given_up, headers, subprotocol)

    return opened(endpoint, make, within_s, cancel)


def _connected(
    endpoint: Endpoint,
    deadline_s: float,
    given_up: Cancel,
    headers: Mapping[str, str],
    subprotocol: str | None,
) -> PlainWebsocket:
    protocol = ClientProtocol(
        parse_uri(endpoint.url),
        subprotocols=None if subprotocol is None else [Subprotocol(subprotocol)],
        max_size=endpoint.max_message_bytes,
        logger=wire_log,
    )
    channel = dial(endpoint, deadline_s, given_up)
    socket = PlainWebsocket(channel, protocol, endpoint.max_message_bytes)
    try:
        with given_up.calling(socket.abort):
            socket.shake_hands(endpoint, headers, deadline_s)
        if socket.subprotocol != subprotocol:
            raise HandshakeRefused(
                f'{endpoint} does not speak {subprotocol}: is it the address of a worker? '
                'A server of another make has a scheme of its own, such as openpi+ws://'
            )
    except BaseException:
        socket.abort()
        socket.close()
        raise
    return socket
