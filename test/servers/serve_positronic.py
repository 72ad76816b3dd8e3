"""A model behind the real positronic-model-server; its session parameters say how it behaves."""

from __future__ import annotations

import argparse
from collections.abc import Callable
import json
from typing import Any

import numpy as np
from positronic_model_server.server import Model, ModelServer, Session
from positronic_model_server.server_wire import ServedHostPort
from positronic_model_server.spec import component, sequence
from positronic_model_server.websocket_wire import WebsocketWire
from servers.reaching import Reaching

# What a session may set, and what it is unless `--defaults` says otherwise.
DEFAULTS: dict[str, Any] = {
    'width': 6,
    'form': 'array',
    'stack': None,
    'fps': 20,
    'prepare_s': 0.0,
    'slow_at': -1,
    'slow_s': 0.0,
    'slow_session': 0,
    'fail_at': -1,
    'release_s': 0.0,
    'jumps': 3,
}
STATE = 'state'


class Sessions(Model):  # type: ignore[misc]
    """Counts its sessions; the first row of an answer says which session and which inference."""

    def __init__(self, metadata: dict[str, Any], defaults: dict[str, Any]) -> None:
        super().__init__(parameters={**DEFAULTS, **defaults}, metadata=metadata)
        self.opened = 0

    def prepare_session(self, params: dict[str, Any]) -> Told:
        say('prepare', params)
        self.preparation_cancelled.wait(params['prepare_s'])
        self.opened += 1
        return Told(params, self.opened, self.preparation_cancelled)


class Told(Session):  # type: ignore[misc]
    """Behaves as its parameters tell."""

    def __init__(self, params: dict[str, Any], number: int, never: Any) -> None:
        schedule = sequence(
            component('stop_on_fault', version=2),
            component('chunked_schedule', version=3, fps=params['fps']),
        )
        super().__init__(params['stack'] or schedule)
        self._of = params
        self._number = number
        self._count = 0
        self._never = never
        self._reaching = Reaching(params['jumps'])

    def infer(self, observation: Any) -> Any:
        count, self._count = self._count, self._count + 1
        say('infer', {key: _told(value) for key, value in observation.items()})
        if count == self._of['fail_at']:
            raise ValueError('the gripper model has no weights')
        slow = self._of['slow_session'] in (0, self._number)
        if slow and count == self._of['slow_at']:
            self._never.wait(self._of['slow_s'])
        return self._result(observation, count)

    def close(self) -> None:
        self._never.wait(self._of['release_s'])
        say('released', self._number)

    def _result(self, observation: Any, count: int) -> Any:
        rows = np.full((4, self._of['width']), 0.01, np.float32)
        rows[0, :2] = self._number, count
        forms: dict[str, Callable[[], Any]] = {
            'array': lambda: rows,
            'list': lambda: rows.tolist(),
            'row': lambda: rows[0],
            'mapping': lambda: {'actions': rows, 'end': 'done'},
            'actions': lambda: [
                {'action': row, 'timestamp': i / 20} for i, row in enumerate(rows)
            ],
            'commands': lambda: [command(i, row) for i, row in enumerate(rows)],
            'mode': lambda: [command(0, rows[0], mode={'type': 'impedance'})],
            'nothing': lambda: None,
            'text': lambda: 'left a bit',
            'reach': lambda: self._reaching.answer(observation['front'], observation[STATE]),
        }
        return forms[self._of['form']]()


def command(number: int, row: Any, **more: Any) -> dict[str, Any]:
    told = {'type': 'joint_pos', 'positions': row[:-1], **more}
    return {'robot_command': told, 'target_grip': float(row[-1]), 'timestamp': number / 20}


def _told(value: Any) -> Any:
    return [str(value.dtype), list(value.shape)] if isinstance(value, np.ndarray) else value


def say(what: str, value: Any) -> None:
    print(json.dumps({what: value}, default=repr), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--token')
    parser.add_argument('--metadata', type=json.loads, default={'checkpoint_id': 'tests'})
    parser.add_argument('--defaults', type=json.loads, default={})
    parser.add_argument('--status-s', type=float, default=0.1)
    told = parser.parse_args()
    ModelServer.WAITING_INTERVAL_SEC = told.status_s
    server = ModelServer(lambda: Sessions(told.metadata, told.defaults), auth_token=told.token)
    server.serve([WebsocketWire(ServedHostPort('127.0.0.1', told.port))])


if __name__ == '__main__':
    main()
