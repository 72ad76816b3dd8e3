"""A worker and a gateway on one HTTP port that answer as a test says."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import queue
import socket
import ssl
import threading
from typing import Any

from client.scripted_worker import Answer, Body, Drop, Held, Silence, Stale
from seq_harness.contract import wire
from seq_harness.contract.frames import unpack_frames
from seq_harness.contract.json_body import pack_json, unpack_json
from seq_harness.contract.msgpack import pack, unpack
from support.ports import free_port
from support.waiting import PATIENCE_S

FORMATS = (wire.FORMAT_MSGPACK, wire.FORMAT_OBSERVE, wire.FORMAT_ACT_ONCE)


@dataclass(frozen=True)
class Posted:
    """One request as it came."""

    verb: str
    target: str
    headers: Message
    raw: bytes
    connection: int

    @property
    def body(self) -> dict[str, Any]:
        """Return what the body holds, by its content type."""
        kind = self.headers[wire.HEADER_CONTENT_TYPE]
        if kind == wire.FRAMES_TYPE:
            return unpack_frames(self.raw)
        body: dict[str, Any] = (unpack if kind == wire.MSGPACK_TYPE else unpack_json)(self.raw)
        return body


class ScriptedHttp:
    """
    Serve the HTTP binding and a gateway's routes; what is not scripted is answered plainly.

    Every request lands in `asked`, in the order of arrival.
    """

    def __init__(
        self,
        declaration: Body | None = None,
        *,
        formats: tuple[str, ...] = FORMATS,
        instance: str | None = 'worker-a',
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.declaration = dict(declaration or {})
        self.formats = formats
        self.instance = instance
        self.asked: queue.Queue[Posted] = queue.Queue()
        self.lease: dict[str, Any] = {'ttl_s': 300, 'epoch': 1}
        self.keepalive: dict[str, Any] | None = None
        self.coordinates: dict[str, Any] = {'cert_fingerprint': '0' * 64, 'direct_secret': 'open'}
        self.connections = 0
        self._script: dict[str, deque[Answer]] = {}
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._server: _Server | None = None
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        """Return the address to give to a client."""
        return f'{"http" if self._tls is None else "https"}://127.0.0.1:{self.port}'

    def start(self) -> None:
        """Listen, always on the same port."""
        self._server = _Server(self, self.port, self._tls)
        threading.Thread(
            target=self._server.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        """Go away as a killed process does."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for sock in list(self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def script(self, path: str, *answers: Answer) -> None:
        """Give these answers to the next requests of a path."""
        self._script.setdefault(path, deque()).extend(answers)

    def next(self, path: str) -> Posted:
        """Return the next request of a path; those of others are passed over."""
        while True:
            posted = self.asked.get(timeout=PATIENCE_S)
            if posted.target.partition('?')[0] == path:
                return posted

    def pending(self, path: str) -> list[Posted]:
        """Return the requests of a path that have come and were not looked at."""
        found = []
        with suppress(queue.Empty):
            while True:
                posted = self.asked.get_nowait()
                if posted.target.partition('?')[0] == path:
                    found.append(posted)
        return found

    def opens(self, sock: socket.socket) -> int:
        """Count a connection."""
        self._open.add(sock)
        self.connections += 1
        return self.connections

    def answer_to(self, posted: Posted) -> Answer:
        """Take note of a request and return what it is answered."""
        path = posted.target.partition('?')[0]
        self.asked.put(posted)
        scripted = self._script.get(path)
        return scripted.popleft() if scripted else self.plain(posted)

    def plain(self, posted: Posted) -> tuple[int, Body]:
        """Return what a well worker answers."""
        path = posted.target.partition('?')[0]
        if path == wire.PATH_CONNECT:
            told = {'worker_url': self.url, 'lease': self.lease, 'keepalive': self.keepalive}
            return 200, {'params': {}, **told, **self.coordinates, **self.declaration}
        if path == wire.PATH_ACT:
            return 200, {wire.KEY_OUTPUTS: {'seq': posted.body[wire.KEY_SEQ]}}
        plain: dict[str, Body] = {
            wire.PATH_OBSERVE: {wire.KEY_THROUGH: -1},
            wire.PATH_READY: {'ready': True},
            wire.PATH_KEEPALIVE: {'held': True},
        }
        return 200, plain.get(path, {})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ScriptedHttp, port: int, tls: ssl.SSLContext | None) -> None:
        self.script = script
        super().__init__(('127.0.0.1', port), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Take an end of a connection as what it is."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.number = self.server.script.opens(self.connection)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._take(b'')

    def do_POST(self) -> None:
        self._take(self.rfile.read(int(self.headers[wire.HEADER_CONTENT_LENGTH])))

    def _take(self, raw: bytes) -> None:
        script = self.server.script
        posted = Posted(self.command, self.path, self.headers, raw, self.number)
        answer = script.answer_to(posted)
        if isinstance(answer, Held):
            answer.go.wait(PATIENCE_S)
            answer = answer.answer or script.plain(posted)
        if isinstance(answer, (Drop, Silence, Stale)):
            self.close_connection = isinstance(answer, Drop)
            return
        self._give(posted, *answer)

    def _give(self, posted: Posted, status: int, body: Body) -> None:
        script = self.server.script
        wants = wire.MSGPACK_TYPE in self.headers.get(wire.HEADER_ACCEPT, '')
        data = pack(body) if wants else pack_json(body)
        self.send_response(status)
        self.send_header(wire.HEADER_CONTENT_TYPE, wire.MSGPACK_TYPE if wants else wire.JSON_TYPE)
        self.send_header(wire.HEADER_CONTENT_LENGTH, str(len(data)))
        if script.formats:
            self.send_header(wire.HEADER_FORMATS, wire.write_formats(script.formats))
        if script.instance is not None:
            self.send_header(wire.HEADER_INSTANCE, script.instance)
        self.end_headers()
        self.wfile.write(data)
