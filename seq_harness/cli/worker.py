"""The command worker: serve a policy to robots."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
import contextlib
import hashlib
from importlib import import_module
import inspect
import json
import logging
import os
from pathlib import Path
import signal
import ssl
import sys
from typing import Any, TextIO

from seq_harness.contract.errors import TransportError
from seq_harness.contract.wire import FORMAT_CALL
from seq_harness.ros.signals import ending_signals, ignore_signals
from seq_harness.worker.limits import Limits
from seq_harness.worker.memory import keep_large_blocks
from seq_harness.worker.policies.lerobot import LeRobot
from seq_harness.worker.policy import Policy
from seq_harness.worker.running import LOOPBACK, serve, THREAD_WAIT_S
from seq_harness.worker.server import Access, is_loopback, NotAllowed
from seq_harness.worker.service import FORMATS, Worker

DEFAULT_PORT = 8765

LEROBOT = 'lerobot'
"""What stands before the colon where a policy of LeRobot's is served."""

SWITCH_INTERVAL_S = 0.0005
"""How soon a computing policy lets go of the interpreter, so that pings are answered meanwhile."""

log = logging.getLogger('seq_harness.worker')


class UsageError(Exception):
    """Arguments that name nothing to serve, or a way to serve it that is not allowed."""


def main(argv: list[str] | None = None) -> int:
    """
    Serve a policy until SIGTERM or SIGINT.

    Return 0 when told to stop, 1 when the policy could not be loaded, 2 for wrong arguments.
    """
    options = _parser().parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if options.debug else logging.INFO,
        format='%(asctime)s %(levelname)s %(name)s: %(message)s',
    )
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_large_blocks()
    try:
        return _serve(options, sys.stdout)
    except (UsageError, NotAllowed, OSError) as error:
        print(f'worker: {error}', file=sys.stderr)
        return 2
    except TransportError as error:
        print(f'worker: {error.detail}', file=sys.stderr)
        return 1


def _serve(options: argparse.Namespace, stdout: TextIO) -> int:
    access = _access(options)
    access.check_host(options.host)
    if access.tls is None and not is_loopback(options.host):
        log.warning('the token travels in the clear: give --tls-cert, or use a tunnel')
    policy = find_policy(options.policy, dict(options.set))
    limits = Limits(episode_idle_s=options.episode_idle_s)
    formats = (*FORMATS, FORMAT_CALL) if options.call else FORMATS
    worker = Worker(policy, limits, formats=formats, debug=options.debug)
    name = policy.name or options.policy.partition(':')[2]

    def announce(url: str) -> None:
        print(f'serving {name} on {url}', file=stdout, flush=True)

    # What a policy prints goes to the log's stream: standard output carries one line.
    with contextlib.redirect_stdout(sys.stderr):
        asyncio.run(_until_signalled(worker, access, options, announce))
        if not worker.close(THREAD_WAIT_S):
            _leave_running_call()
    return 0


async def _until_signalled(
    worker: Worker,
    access: Access,
    options: argparse.Namespace,
    announce: Callable[[str], None],
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(number: int, frame: object) -> None:
        ignore_signals()
        loop.call_soon_threadsafe(stop.set)

    # The loop would give its own handlers back before this process has ended.
    for number in ending_signals():
        signal.signal(number, end)
    await serve(worker, access, options.host, options.port, announce, stop)


def _leave_running_call() -> None:
    """End the process now: a policy's call that still runs may hold up the interpreter's end."""
    log.warning('the policy was still busy and was left')
    logging.shutdown()
    sys.stderr.flush()
    os._exit(0)


def find_policy(reference: str, arguments: dict[str, Any]) -> Policy:
    """
    Import what MODULE:POLICY names, the module from the current folder too.

    After `lerobot:` stands the folder of a policy of LeRobot's, or its name on the hub.

    Raises
    ------
    UsageError
        There is no such module or name, or arguments were given for what is no class.

    """
    module_name, colon, attribute = reference.partition(':')
    if module_name == LEROBOT and attribute:
        return Policy(LeRobot, {'source': attribute, **arguments})
    if not (module_name and colon and attribute):
        raise UsageError(f'MODULE:POLICY was expected, got {reference!r}')
    sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{module_name}.'.startswith(f'{error.name}.'):
            raise
        raise UsageError(
            f'there is no module {module_name!r} in {os.getcwd()} or on the path'
        ) from None
    if not hasattr(module, attribute):
        raise UsageError(f'module {module_name!r} has no {attribute!r}')
    found = getattr(module, attribute)
    if arguments and not inspect.isclass(found):
        raise UsageError(f'--set needs a class, and {reference} is none')
    return Policy(found, arguments)


def _access(options: argparse.Namespace) -> Access:
    token = None
    if options.token_file is not None:
        token = options.token_file.read_text().strip()
        if not token:
            raise UsageError(f'{options.token_file} holds no token')
    if (options.tls_cert is None) != (options.tls_key is None):
        raise UsageError('--tls-cert and --tls-key go together')
    if options.tls_cert is None:
        return Access(token)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.tls_cert, options.tls_key)
    der = ssl.PEM_cert_to_DER_cert(_first_certificate(options.tls_cert))
    return Access(token, context, hashlib.sha256(der).hexdigest())


def _first_certificate(path: Path) -> str:
    """Return the first of the certificates in a PEM file, which is the server's own."""
    before, footer, _ = path.read_text().partition(ssl.PEM_FOOTER)
    _, header, encoded = before.rpartition(ssl.PEM_HEADER)
    return f'{header}{encoded}{footer}'


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='worker', description='Serve a policy to robots.')
    parser.add_argument(
        'policy',
        metavar='MODULE:POLICY',
        help='an object with infer(inputs), or its class; MODULE may lie in the current folder. '
        "lerobot:PATH_OR_ID serves a policy of LeRobot's",
    )
    parser.add_argument('--host', default=LOOPBACK, help='the address to listen on (%(default)s)')
    parser.add_argument(
        '--port', type=_port, default=DEFAULT_PORT, help='0 picks a free one (%(default)s)'
    )
    parser.add_argument(
        '--token-file', type=Path, help='a file with the bearer token that clients must show'
    )
    parser.add_argument('--tls-cert', type=Path, help='a PEM certificate; serves wss and https')
    parser.add_argument('--tls-key', type=Path, help="the certificate's key, PEM")
    parser.add_argument(
        '--set',
        type=_setting,
        action='append',
        default=[],
        metavar='NAME=VALUE',
        help='an argument for the class, as JSON or text; may be repeated',
    )
    parser.add_argument(
        '--episode-idle-s',
        type=float,
        default=Limits().episode_idle_s,
        help='end an episode without an act for this long (%(default)s)',
    )
    parser.add_argument(
        '--call',
        action='store_true',
        help='announce acts without inputs, for clients that observe everything',
    )
    parser.add_argument(
        '--debug', action='store_true', help="send a failing policy's traceback to the client"
    )
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'a port of 0..65535 was expected, got {text!r}')
    return int(text)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition('=')
    if not (name.isidentifier() and equals):
        raise argparse.ArgumentTypeError(f'NAME=VALUE was expected, got {text!r}')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


if __name__ == '__main__':
    sys.exit(main())
