"""A slow network between a client and a worker on this machine: so many bits a second, so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import queue
import socket
import threading
import time

CHUNK_BYTES = 1460 * 4
"""What travels as one: a few packets."""

QUEUED_CHUNKS = 1024
"""What one connection may have on the link; beyond it the sender is held back."""

BUFFER_BYTES = 1 << 16
"""What the system may hold of a connection on its way into the link."""


class OneWay:
    """One direction of the link, which all connections share."""

    def __init__(self, bits_per_s: float, delay_s: float) -> None:
        self._bits_per_s = bits_per_s
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self._free_s = 0.0  # under _lock: when the link has sent what it was given

    def arrives_s(self, nbytes: int) -> float:
        """Put bytes on the link; return when the last of them arrives, on the monotonic clock."""
        with self._lock:
            begin_s = max(time.monotonic(), self._free_s)
            self._free_s = begin_s + 8 * nbytes / self._bits_per_s
            return self._free_s + self._delay_s

    def sent_s(self) -> float:
        """Return when the link has sent all it was given."""
        with self._lock:
            return self._free_s


def _carry(source: socket.socket, sink: socket.socket, way: OneWay) -> None:
    """Carry what one socket receives to another, until either ends."""
    travelling: queue.Queue[tuple[float, bytes]] = queue.Queue(QUEUED_CHUNKS)

    def deliver() -> None:
        while (chunk := travelling.get())[1]:
            time.sleep(max(0.0, chunk[0] - time.monotonic()))
            with suppress(OSError):
                sink.sendall(chunk[1])
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    threading.Thread(target=deliver, daemon=True).start()
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            travelling.put((way.arrives_s(len(data)), data))
            # The next is taken when this one is sent: a sender waits for the link, not for us.
            time.sleep(max(0.0, way.sent_s() - time.monotonic()))
    travelling.put((0.0, b''))


def _connect(client: socket.socket, port: int, up: OneWay, down: OneWay) -> None:
    worker = socket.create_connection(('127.0.0.1', port))
    for sock in (client, worker):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for source, sink, way in ((client, worker, up), (worker, client, down)):
        threading.Thread(target=_carry, args=(source, sink, way), daemon=True).start()


@contextmanager
def slow_link(port: int, bits_per_s: float, round_trip_s: float) -> Iterator[int]:
    """Lead a port of this machine to another over a link; yield the port to connect to."""
    up, down = (OneWay(bits_per_s, round_trip_s / 2) for _ in range(2))
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        listener.bind(('127.0.0.1', 0))
        listener.listen()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    _connect(listener.accept()[0], port, up, down)

        threading.Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1])
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
