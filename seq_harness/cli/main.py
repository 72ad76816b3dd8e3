"""The command seq-harness: its first argument names the command to run."""

import atexit
from importlib import import_module
import os
import select
import signal
import sys
from typing import TextIO

from seq_harness.cli.needs import missing
from seq_harness.ros.signals import end_at_once, ending_signals, ignore_signals

# name: (module of this package, one line for people)
COMMANDS = {
    'demo': ('demo', 'run the simulated arm, a worker and the harness together'),
    'harness': ('harness', 'run the harness node'),
    'worker': ('worker', 'serve a policy: worker MODULE:CLASS --port N'),
    'sim-arm': ('sim_arm', 'run the simulated arm with a camera'),
    'watchdog': ('watchdog', 'zero what a harness commands once it is dead or frozen'),
    'record-bag': ('record_bag', 'record topics into a bag'),
    'play-bag': ('play_bag', 'play a bag into the graph, with /clock'),
    'probe': ('probe', 'ask a policy about one instant of a recording, and draw its answer'),
    'replay': ('replay', 'run a recording through the harness in lockstep, without ROS'),
    'report': ('report', 'write a page about a run that was recorded, or about two'),
    'preflight': ('preflight', 'name what is wrong with robot and worker before motion'),
    'schemas': ('schemas', 'print the JSON schemas of what crosses the worker wire'),
}

UNREAD = 128 + signal.SIGPIPE
"""The status of a command whose output went to `head` or the like, which had enough of it."""


def main(argv: list[str] | None = None) -> int:
    """
    Run the named command with the arguments that follow it.

    Only the command's own module is imported, so that a worker starts without ROS. Returns the
    process's exit status: what the command returned, or 2 when the command is not known.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments:
        _help(sys.stderr)
        return 2
    name, *rest = arguments
    if name in ('-h', '--help', 'help'):
        _help(sys.stdout)
        return 0
    if name not in COMMANDS:
        known = ', '.join(COMMANDS)
        print(f'seq-harness: expected a command ({known}), got {name!r}', file=sys.stderr)
        return 2
    # Until the command takes the signals over, one ends it without a trace.
    end_at_once()
    try:
        command = import_module(f'seq_harness.cli.{COMMANDS[name][0]}')
        for number in ending_signals():
            signal.signal(number, _leave)
        status: int = command.main(rest)
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        said = missing(name, error)
        if said is None:
            raise
        print(said, file=sys.stderr)
        return 2
    except BrokenPipeError:
        if not _unread():
            raise
        return UNREAD
    return status


def _unread() -> bool:
    """Tell whether nobody reads what is printed any more, and let what is left go nowhere."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    if not output.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _leave(number: int, frame: object) -> None:
    # Where the exit is lost, as in a finaliser, or takes long, the next signal does not ask.
    end_at_once()
    # Python gives its handlers up before it has ended.
    atexit.register(ignore_signals)
    raise SystemExit(0)


def _help(stream: TextIO) -> None:
    """List the commands."""
    print('usage: seq-harness COMMAND [ARGUMENT ...]', file=stream)
    print('       seq-harness COMMAND --help', file=stream)
    print(file=stream)
    for name, (_, summary) in COMMANDS.items():
        print(f'  {name:<11} {summary}', file=stream)


if __name__ == '__main__':
    sys.exit(main())
