"""A robot that meets roboarena's wire, of which there is no server package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
import time
from typing import Any

import numpy as np
import pytest
from seq_harness.client.endpoint import EndpointRefused
from seq_harness.client.registry import Policy, policy_at
from seq_harness.client.roboarena import GreetingRefused
from seq_harness.client.transport import HandshakeRefused
from seq_harness.playback.uplink import ActAbandoned, PolicyError, StateLost, Step
from servers.scripted import packed, Scripted, scripted, Silence
from support.waiting import PATIENCE_S

ROWS = np.zeros((4, 8), np.float32)

ALL = {
    'image_resolution': [180, 320],
    'needs_wrist_camera': True,
    'n_external_cameras': 2,
    'needs_stereo_camera': False,
    'needs_session_id': True,
    'action_space': 'joint_position',
}

SEEN = {
    'wrist': np.zeros((180, 320, 3), np.uint8),
    'exterior_1': np.zeros((180, 320, 3), np.uint8),
    'exterior_2': np.ones((180, 320, 3), np.uint8),
    'joints': np.zeros(7, np.float32),
    'gripper': np.zeros(1, np.float32),
    'cartesian': np.zeros(6, np.float32),
    'prompt': 'stack',
    'unasked': 'whatever',
}

STATE = {
    'observation/joint_position',
    'observation/gripper_position',
    'observation/cartesian_position',
    'prompt',
    'endpoint',
}


class Server:
    """Answers as a stock server does, unless told otherwise."""

    def __init__(self, answer: Any = ROWS, reset: Any = 'reset successful') -> None:
        self.answer = answer
        self.reset = reset

    def __call__(self, connection: Any, message: dict[str, Any]) -> Any:
        if message['endpoint'] == 'reset':
            return self.reset
        return self.answer(connection) if callable(self.answer) else self.answer


Meet = Callable[..., tuple[Scripted, Policy]]


@pytest.fixture
def meet() -> Iterator[Meet]:
    """Start a scripted server and make the policy behind it; both end with the test."""
    with ExitStack() as stack:

        def met(greeting: Any = ALL, handler: Any = None, **server: Any) -> Any:
            there = stack.enter_context(scripted(handler or Server(), greeting))
            policy = policy_at(
                f'roboarena+ws://127.0.0.1:{there.port}',
                connect_timeout_s=PATIENCE_S,
                reconnect_s=1.0,
                server=server,
            )
            stack.callback(policy.close)
            return there, policy

        yield met


def step(number: int = 0) -> Step:
    return Step(number, time.monotonic_ns(), SEEN)


def episode(policy: Policy) -> Any:
    return policy.open_episode(time.monotonic_ns)


def test_roboarena_is_sent_exactly_what_it_announces(meet: Meet) -> None:
    server, policy = meet()
    policy.connect()
    assert episode(policy).infer(step())['actions'].shape == (4, 8)
    _, asked = server.messages
    assert set(asked) == STATE | {
        'observation/wrist_image_left',
        'observation/exterior_image_1_left',
        'observation/exterior_image_2_left',
        'session_id',
    }
    assert asked['endpoint'] == 'infer'
    assert asked['observation/exterior_image_2_left'].max() == 1
    assert asked['observation/joint_position'].shape == (7,)


def test_roboarena_frames_are_declared_at_the_announced_resolution_height_first(
    meet: Meet,
) -> None:
    _, policy = meet()
    declaration = policy.connect()
    assert declaration.observations is not None
    streams = declaration.observations.streams or {}
    camera = streams['wrist'].camera
    assert camera is not None
    assert (camera.height, camera.width, camera.resize) == (180, 320, 'pad')
    assert set(streams) == set(SEEN) - {'unasked'}
    assert declaration.columns == [*(f'joint_{i}' for i in range(1, 8)), 'gripper']


def test_roboarena_without_a_resolution_takes_frames_as_they_are(meet: Meet) -> None:
    _, policy = meet({**ALL, 'image_resolution': None})
    declaration = policy.connect()
    assert declaration.observations is not None
    assert (declaration.observations.streams or {})['wrist'].camera is None


def test_roboarena_second_eye_of_each_camera_is_sent_where_it_is_asked_for(meet: Meet) -> None:
    _, policy = meet({**ALL, 'needs_stereo_camera': True, 'n_external_cameras': 1})
    declaration = policy.connect()
    assert declaration.observations is not None
    streams = set(declaration.observations.streams or {})
    assert {'wrist', 'wrist_right', 'exterior_1', 'exterior_1_right'} < streams
    assert 'exterior_2' not in streams


def test_roboarena_greeting_has_defaults_and_what_is_unknown_is_ignored(meet: Meet) -> None:
    server, policy = meet({'invented': {'by': 'a fork'}})
    policy.connect()
    episode(policy).infer(step())
    reset, asked = server.messages
    assert reset == {'endpoint': 'reset'}
    assert set(asked) == STATE | {
        'observation/wrist_image_left',
        'observation/exterior_image_1_left',
    }


def test_roboarena_cameras_are_counted_from_0_where_that_is_set(meet: Meet) -> None:
    server, policy = meet(server_first_camera=0)
    policy.connect()
    episode(policy).infer(step())
    keys = {key for key in server.messages[1] if 'exterior' in key}
    assert keys == {'observation/exterior_image_0_left', 'observation/exterior_image_1_left'}


def test_roboarena_keys_are_made_of_other_own_keys_or_left_out(meet: Meet) -> None:
    keys = (
        '{"observation/cartesian_position": null, "observation/gripper_position": null, '
        '"observation/joint_position": ["joints", "gripper"]}'
    )
    server, policy = meet(server_keys=keys)
    policy.connect()
    episode(policy).infer(step())
    asked = server.messages[1]
    assert asked['observation/joint_position'].shape == (8,)
    assert not {'observation/cartesian_position', 'observation/gripper_position'} & set(asked)


@pytest.mark.parametrize(
    'answer', [ROWS, {'actions': ROWS}, {'action': ROWS}], ids=['bare', 'actions', 'action']
)
def test_roboarena_rows_are_understood_in_all_three_forms(meet: Meet, answer: Any) -> None:
    _, policy = meet(handler=Server(answer))
    policy.connect()
    assert np.array_equal(episode(policy).infer(step())['actions'], ROWS)


@pytest.mark.parametrize(
    'reset', ['reset successful', packed({'status': 'reset successful'})], ids=['text', 'status']
)
def test_roboarena_episode_begins_with_a_reset_that_is_acknowledged(
    meet: Meet, reset: Any
) -> None:
    server, policy = meet(handler=Server(reset=reset))
    policy.connect()
    scope = episode(policy)
    scope.infer(step())
    scope.infer(step(1))
    episode(policy).infer(step())
    said = [message['endpoint'] for message in server.messages]
    assert said == ['reset', 'infer', 'infer', 'reset', 'infer']
    first, second = ({m['session_id'] for m in part} for part in
                     (server.messages[:3], server.messages[3:]))  # fmt: skip
    assert len(first) == len(second) == 1
    assert first != second


@pytest.mark.parametrize('reset', ['Traceback\n\nKeyError: 1', packed({'status': 'no'}), b'\xc1'])
def test_roboarena_reset_that_is_not_acknowledged_is_an_error(meet: Meet, reset: Any) -> None:
    _, policy = meet(handler=Server(reset=reset))
    policy.connect()
    with pytest.raises(PolicyError, match='reset'):
        episode(policy).infer(step())


def test_roboarena_text_is_an_error_anywhere_else(meet: Meet) -> None:
    """Even the text that acknowledges a reset."""
    for text in ('Traceback\n\nValueError: no', 'reset successful'):
        _, policy = meet(handler=Server(text))
        policy.connect()
        with pytest.raises(PolicyError, match=r'ValueError: no|reset successful'):
            episode(policy).infer(step())


@pytest.mark.parametrize(
    ('changed', 'said'),
    [
        (
            {'action_space': 'joint_velocity'},
            "'joint_velocity'; this robot takes 'joint_position'",
        ),
        ({'action_space': 'torque'}, 'action_space'),
        ({'n_external_cameras': 3}, 'n_external_cameras'),
        ({'image_resolution': [224]}, 'image_resolution'),
        ({'image_resolution': [0, 224]}, '1 to 8192'),
        ({'needs_wrist_camera': 'perhaps'}, 'needs_wrist_camera'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_roboarena_greeting_that_cannot_be_obeyed_is_refused_at_connect(
    meet: Meet, changed: Any, said: str
) -> None:
    server, policy = meet({**ALL, **changed})
    with pytest.raises(GreetingRefused, match=said):
        policy.connect()
    assert server.messages == []


def test_roboarena_action_space_that_is_set_is_taken(meet: Meet) -> None:
    space = 'cartesian_velocity'
    _, policy = meet({**ALL, 'action_space': space}, server_action_space=space)
    assert policy.connect().columns == ['x', 'y', 'z', 'rx', 'ry', 'rz', 'gripper']


def test_roboarena_connection_is_made_anew_before_the_first_answer_of_an_episode(
    meet: Meet,
) -> None:
    server, policy = meet()
    policy.connect()
    scope = episode(policy)
    server.connections.get().close()
    scope.infer(step())
    assert [message['endpoint'] for message in server.messages] == ['reset', 'infer']


def test_roboarena_connection_that_is_lost_after_an_answer_takes_the_episode_along(
    meet: Meet,
) -> None:
    """Some servers reset the policy when a client leaves."""
    server, policy = meet()
    policy.connect()
    scope = episode(policy)
    scope.infer(step())
    server.connections.get().close()
    with pytest.raises(StateLost):
        scope.infer(step(1))
    assert len(server.messages) == 2
    episode(policy).infer(step())


def test_roboarena_policy_that_remembers_nothing_is_reset_and_asked_over_another_connection(
    meet: Meet,
) -> None:
    server, policy = meet(server_keeps_state=False)
    policy.connect()
    scope = episode(policy)
    scope.infer(step())
    server.connections.get().close()
    scope.infer(step(1))
    assert [message['endpoint'] for message in server.messages] == ['reset', 'infer'] * 2


def test_roboarena_server_that_hangs_up_over_a_question_is_asked_anew_before_any_answer(
    meet: Meet,
) -> None:
    def once(connection: Any) -> Any:
        handler.answer = ROWS
        connection.close()
        return Silence()

    handler = Server(once)
    server, policy = meet(handler=handler)
    policy.connect()
    scope = episode(policy)
    with pytest.raises(ActAbandoned):
        scope.infer(step())
    scope.infer(step(1))
    said = [message['endpoint'] for message in server.messages]
    assert said == ['reset', 'infer', 'reset', 'infer']


def test_roboarena_has_no_port_of_its_own() -> None:
    with pytest.raises(EndpointRefused, match='port'):
        policy_at('roboarena+ws://127.0.0.1')


def test_roboarena_serves_at_the_root_or_where_the_url_says(meet: Meet) -> None:
    server, policy = meet()
    policy.connect()
    assert server.paths == ['/']
    other = policy_at(f'roboarena+ws://127.0.0.1:{server.port}/robot/1')
    other.connect()
    other.close()
    assert server.paths == ['/', '/robot/1']


def test_roboarena_server_that_closes_a_wrong_path_is_told_of_at_once(meet: Meet) -> None:
    server, policy = meet(1008)
    with pytest.raises(HandshakeRefused, match='1008'):
        policy.connect()
    assert server.paths == ['/']
