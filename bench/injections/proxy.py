"""
A proxy between a robot and its worker that fails as it is told, as a process of its own.

Lines of JSON on standard input change `Mode`; what is on its way then is treated so at once.
"""

from __future__ import annotations

from contextlib import suppress
import json
import socket
import struct
import sys
import threading
import time
from typing import Any

CHUNK_BYTES = 1 << 16


class Mode:
    """What happens to bytes; `pass` lets them through."""

    def __init__(self) -> None:
        """Let everything through."""
        self.down = 'pass'
        """To the robot: `pass`, `hold`, `flip`, `noise`, `cut`, `twice`, `huge`, `text`."""
        self.up = 'pass'
        """To the worker: `pass` or `hold`."""
        self.door = 'open'
        """To new connections: `open`, `closed`, `silent`, `http`."""
        self.delay_s = 0.0
        self.bytes_s = 0.0
        """How fast bytes travel to the robot; 0 for no bound."""


class Proxy:
    """Carry connections between a port of its own and the worker's."""

    def __init__(self, port: int) -> None:
        """`port` is the worker's."""
        self._port = port
        self._mode = Mode()
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port: int = self._listener.getsockname()[1]

    def obey(self, orders: dict[str, Any]) -> None:
        """Take orders: fields of the mode, and `drop` ends every connection: fin or reset."""
        with self._changed:
            how = orders.pop('drop', '')
            for name, value in orders.items():
                setattr(self._mode, name, value)
            self._changed.notify_all()
        if how:
            self._drop(reset=how == 'reset')

    def serve(self) -> None:
        """Accept until the process ends."""
        while True:
            near = self._listener.accept()[0]
            door = self._mode.door
            if door == 'closed':
                near.close()
            elif door == 'silent':
                self._open.add(near)
            elif door == 'http':
                near.recv(CHUNK_BYTES)
                near.sendall(b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n')
                near.close()
            else:
                self._join(near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(('127.0.0.1', self._port))
        except OSError:
            near.close()
            return
        self._open.update((near, far))
        for source, sink, way in ((near, far, 'up'), (far, near, 'down')):
            sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._carry, args=(source, sink, way), daemon=True).start()

    def _drop(self, reset: bool) -> None:
        for sock in list(self._open):
            with suppress(OSError):
                if reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                # What reads it ends by this, and closes it: with an RST where it lingers for 0 s.
                sock.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)

    def _carry(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                with self._changed:
                    self._changed.wait_for(lambda: getattr(self._mode, way) != 'hold')
                self._send(sink, data, way)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RD)
        self._open.discard(source)
        source.close()

    def _send(self, sink: socket.socket, data: bytes, way: str) -> None:
        mode = self._mode
        if way == 'up':
            sink.sendall(data)
            return
        time.sleep(mode.delay_s)
        data = _changed(data, mode.down)
        if not mode.bytes_s:
            sink.sendall(data)
        for at in range(0, len(data) if mode.bytes_s else 0, 64):
            sink.sendall(data[at : at + 64])
            time.sleep(64 / mode.bytes_s)
        if mode.down in ('cut', 'huge'):
            sink.shutdown(socket.SHUT_RDWR)


def _changed(data: bytes, how: str) -> bytes:
    """Return what becomes of bytes on their way to the robot."""
    if how == 'flip':
        return data[: len(data) // 2] + bytes(byte ^ 0x55 for byte in data[len(data) // 2 :])
    if how == 'noise':
        return b'\xff' * 64 + data
    if how == 'cut':
        return data[: len(data) // 2]
    if how == 'twice':
        return data + data
    if how == 'huge':
        return b'\x82\x7f' + struct.pack('>Q', 1 << 62) + data
    if how == 'text':
        return b'\x81\x0bno message!' + data
    return data


def main() -> None:
    """Print the port, then obey and serve."""
    proxy = Proxy(int(sys.argv[1]))
    print(f'listening on {proxy.port}', flush=True)
    threading.Thread(target=proxy.serve, daemon=True).start()
    with suppress(KeyboardInterrupt):
        for line in sys.stdin:
            proxy.obey(json.loads(line))


if __name__ == '__main__':
    main()
