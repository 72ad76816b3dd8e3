"""What a websocket handshake that failed says of the peer, and whether to try again."""

from __future__ import annotations

from seq_harness.client.endpoint import Endpoint
from seq_harness.client.transport import HandshakeRefused, Unreachable
from websockets.exceptions import InvalidStatus
from websockets.http11 import Response


class StatusRefused(HandshakeRefused):
    """The peer answered the handshake with an HTTP status that will not change by itself."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def handshake_error(endpoint: Endpoint, error: Exception) -> Exception:
    """Return Unreachable where another attempt may help, else a HandshakeRefused."""
    if isinstance(error, InvalidStatus):
        return _refused(endpoint, error.response)
    if isinstance(error.__cause__, EOFError):
        return Unreachable(f'{endpoint}: {error}')
    return HandshakeRefused(
        f'{endpoint} opens no websocket: is it the address of a worker? ({error})'
    )


def _refused(endpoint: Endpoint, response: Response) -> Exception:
    status = response.status_code
    if status in (401, 403):
        shown = 'the token' if endpoint.token is not None else 'a client without a token'
        return StatusRefused(
            f'{endpoint} refused {shown} (HTTP {status}); some servers '
            'answer so where the path, or the scheme of worker_url, is another',
            status,
        )
    if status >= 500 or status == 429:
        return Unreachable(f'{endpoint} takes no connections now (HTTP {status})')
    return StatusRefused(
        f'{endpoint} answered HTTP {status}: is it the address of a worker, or of a server '
        'that speaks as the scheme of worker_url says, at this path?',
        status,
    )
