"""Run a worker: on this thread until it is told to stop, or on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
import threading
from typing import Any

from seq_harness.worker.limits import Limits
from seq_harness.worker.policy import Policy
from seq_harness.worker.server import Access, Server
from seq_harness.worker.service import Worker

LOOPBACK = '127.0.0.1'

THREAD_WAIT_S = 0.05
"""How long a policy's running call is waited for once the worker has closed."""


async def serve(
    worker: Worker,
    access: Access,
    host: str,
    port: int,
    announce: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """
    Serve until `stop` is set; `announce` is called with the URL once connections are accepted.

    Raises
    ------
    TransportError
        The policy could not be loaded.
    NotAllowed, OSError
        The address cannot be listened on.

    """
    server = Server(worker, access)
    announce(await server.start(host, port))
    running = asyncio.create_task(worker.run())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        running.cancel()
        stopping.cancel()
        await server.close()


@contextmanager
def served(
    policy: Any, *, limits: Limits | None = None, access: Access | None = None, port: int = 0
) -> Iterator[str]:
    """
    Serve a policy on the loopback from a thread of this process; yield the websocket's URL.

    Raises
    ------
    NotAllowed, OSError
        The address cannot be listened on.

    """
    url: Future[str] = Future()
    told: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        worker, stopped = Worker(Policy(policy), limits), asyncio.Event()
        told.set_result((asyncio.get_running_loop(), stopped))
        try:
            await serve(worker, access or Access(), LOOPBACK, port, url.set_result, stopped)
        except Exception as error:
            if not url.done():
                url.set_exception(error)
        finally:
            worker.close(THREAD_WAIT_S)

    thread = threading.Thread(target=lambda: asyncio.run(main()), name='worker', daemon=True)
    thread.start()
    try:
        yield url.result()
    finally:
        loop, stopped = told.result()
        with suppress(RuntimeError):  # The loop may have ended by itself.
            loop.call_soon_threadsafe(stopped.set)
        thread.join()
