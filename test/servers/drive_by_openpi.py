"""Drive a policy with openpi's own client, and print what came as one line of JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.websocket_client_policy import WebsocketClientPolicy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--api-key')
    parser.add_argument('--way', choices=('chunks', 'broker', 'failing'), default='chunks')
    options = parser.parse_args()
    policy = WebsocketClientPolicy('127.0.0.1', options.port, options.api_key)
    told = {'metadata': policy.get_server_metadata(), 'came': list(WAYS[options.way](policy))}
    print(json.dumps(told, default=as_json))


def chunks(policy: WebsocketClientPolicy) -> Any:
    """Ask for three chunks, as a robot without a broker does."""
    for number in range(3):
        yield policy.infer(observation(number))


def broker(policy: WebsocketClientPolicy) -> Any:
    """Ask for single rows, as openpi's runtime does."""
    broker = ActionChunkBroker(policy, action_horizon=2)
    for number in range(5):
        yield broker.infer(observation(number))['actions']


def failing(policy: WebsocketClientPolicy) -> Any:
    """Ask what the policy fails on, and tell what the client says of it."""
    try:
        policy.infer({'prompt': 'fail'})
    except RuntimeError as error:
        yield str(error)


def observation(number: int) -> dict[str, Any]:
    return {
        'observation/image': np.full((4, 6, 3), number, np.uint8),
        'observation/state': np.arange(3, dtype=np.float32) + number,
        'images': {'cam': np.full((3, 4, 6), number, np.uint8)},
        'gripper': np.float32(0.5),
        'prompt': 'pick it up',
    }


def as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {'dtype': value.dtype.str, 'values': value.tolist()}
    return value.item()


WAYS = {'chunks': chunks, 'broker': broker, 'failing': failing}

if __name__ == '__main__':
    main()
