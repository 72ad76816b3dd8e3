"""What a positronic server of an older protocol does, and what none should do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
import io
import queue
import threading
import time
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from PIL import Image
import pytest
from seq_harness.client import positronic_session
from seq_harness.client.endpoint import EndpointRefused
from seq_harness.client.positronic import PositronicPolicy
from seq_harness.client.positronic_stack import StackRefused
from seq_harness.client.transport import HandshakeRefused
from seq_harness.playback.uplink import PolicyError, Step, WorkerLost
from servers.scripted import packed
from support.waiting import wait_for
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import serve, ServerConnection

WITHIN_S = 10.0
SCHEDULE = {'seq': [{'name': 'stop_on_fault'}, {'name': 'chunked_schedule'}]}
META = {'action_fps': 20.0, 'local_stack': SCHEDULE, 'type': 'scripted'}
JOINTS = np.arange(6, dtype=np.float32)
IMAGE = np.full((48, 64, 3), 100, np.uint8)

Speak = Callable[[ServerConnection], None]


class Server:
    """Speaks as a test tells it; keeps what came, unpacked."""

    def __init__(self, speak: Speak, statuses: list[int]) -> None:
        self.came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.requests: list[Request] = []
        self._speak = speak
        self._statuses = statuses

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        return connection.respond(self._statuses.pop(0), 'no\n') if self._statuses else None

    def converse(self, connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            self._speak(connection)

    def take(self, connection: ServerConnection) -> Any:
        """Return the next message, and keep it for the test."""
        message = msgpack.unpackb(connection.recv(WITHIN_S), strict_map_key=False)
        self.came.put(message)
        return message

    def next(self) -> Any:
        """Return a message that came, in its turn."""
        return self.came.get(timeout=WITHIN_S)


class Meeting:
    """Scripted servers, and the robots that meet them; all end with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.told: list[str] = []
        self.server: Server

    def meet(self, speak: Speak, statuses: tuple[int, ...] = (), **options: Any) -> Any:
        """Return a policy of a server that speaks so."""
        self.server = Server(speak, list(statuses))
        listening = self._stack.enter_context(
            serve(self.server.converse, '127.0.0.1', 0, process_request=self.server.admit)
        )
        serving = threading.Thread(target=listening.serve_forever)
        serving.start()
        self._stack.callback(serving.join, WITHIN_S)
        self._stack.callback(listening.shutdown)
        policy = PositronicPolicy(
            f'positronic+ws://127.0.0.1:{listening.socket.getsockname()[1]}',
            on_state=self.told.append,
            **{'connect_timeout_s': WITHIN_S, 'reconnect_s': 2.0, **options},
        )
        self._stack.callback(policy.close)
        return policy

    def serves(
        self, *results: Any, meta: Mapping[str, Any] = META, protocol: int = 2, **options: Any
    ) -> Any:
        """Return a policy whose server answers so, and then keeps silent."""

        def speak(connection: ServerConnection) -> None:
            connection.send(packed(ready(meta, protocol)))
            for result in results:
                self.server.take(connection)
                connection.send(packed({'result': result, 'timing': {'served_ms': 1.5}}))
            if self.server.take(connection).get('end_session'):
                connection.send(packed({'session_id': 'abc', 'end_session': True}))
            connection.recv(WITHIN_S)

        return self.meet(speak, **options)


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    with ExitStack() as stack:
        yield Meeting(stack)


def ready(meta: Mapping[str, Any], protocol: int = 2) -> dict[str, Any]:
    said = {'status': 'ready', 'meta': dict(meta)}
    return said if protocol == 1 else {**said, 'protocol_version': protocol, 'session_id': 'abc'}


def step(**more: Any) -> Step:
    return Step(0, time.monotonic_ns(), {'state': JOINTS, **more})


def asked(policy: Any, **more: Any) -> Any:
    policy.connect()
    return policy.open_episode(time.monotonic_ns).infer(step(**more))


def command(number: int, **fields: Any) -> dict[str, Any]:
    told = {b'__cmd__': {'type': 'joint_pos', 'positions': JOINTS, **fields}}
    return {'robot_command': told, 'target_grip': 0.5, 'timestamp': number / 20}


@pytest.mark.parametrize('protocol', [1, 2, 3])
def test_each_protocol_is_asked_in_its_own_way(meeting: Meeting, protocol: int) -> None:
    policy = meeting.serves([command(0)], protocol=protocol)
    asked(policy)
    came = meeting.server.next()
    assert set(came) == ({'state'} if protocol == 1 else {'session_id', 'observation'})
    assert meeting.server.requests[0].path == '/api/v1/session'


def test_the_end_of_an_episode_is_told_where_the_protocol_has_a_word_for_it(
    meeting: Meeting,
) -> None:
    policy = meeting.serves([command(0)])
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    scope.infer(step())
    meeting.server.next()
    scope.close()
    assert meeting.server.next() == {'session_id': 'abc', 'end_session': True}


def test_typed_commands_and_grips_become_rows_and_the_end_marker_none(meeting: Meeting) -> None:
    policy = meeting.serves([command(0), command(1), {'timestamp': 0.1}])
    outputs = asked(policy)
    np.testing.assert_allclose(outputs['actions'], [[*JOINTS, 0.5]] * 2)
    assert any('joint_pos, 7 columns' in told for told in meeting.told)


def test_two_arms_stand_in_the_order_of_their_names(meeting: Meeting) -> None:
    action = {
        f'{name}.{arm}': value
        for arm, joint in (('right', 2.0), ('left', 1.0))
        for name, value in (
            ('robot_command', {'type': 'joint_pos', 'positions': [joint]}),
            ('target_grip', joint / 10),
        )
    }
    np.testing.assert_allclose(asked(meeting.serves(action))['actions'], [[1, 0.1, 2, 0.2]])


@pytest.mark.parametrize('seed', range(8))
def test_a_pose_becomes_a_unit_quaternion(meeting: Meeting, seed: int) -> None:
    quaternion = np.random.default_rng(seed).normal(size=4)
    quaternion[seed % 4] += 3.0
    quaternion /= np.linalg.norm(quaternion)
    pose = np.concatenate([[0.1, 0.2, 0.3], matrix_of(quaternion).reshape(-1)])
    told = {'type': 'cartesian_pos', 'pose': pose.tolist()}
    row = asked(meeting.serves([{'robot_command': told}]))['actions'][0]
    np.testing.assert_allclose(row[:3], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(row[3:] * np.sign(row[3:] @ quaternion), quaternion, atol=1e-6)


def matrix_of(quaternion: Any) -> Any:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize(
    ('result', 'told'),
    [
        ([{'robot_command': {'type': 'reset'}}], "'reset'; no channel plays it"),
        ([{'robot_command': {'type': 'cartesian_pos', 'pose': [1.0] * 12}}], 'no rotation'),
        ([{'robot_command': {'type': 'cartesian_pos', 'pose': [1.0] * 7}}], 'has 7 values'),
        ([{'move': 1}], r"this one has \['move'\]"),
        ([command(0), {'action': [1.0]}], 'one kind of command a chunk'),
        ([command(0), {**command(1), 'target_grip': None}], r'they have \[6, 7\] values'),
        ([command(0), command(3)], r'stamped 0\.15 s'),
        ({'left': [[1.0]]}, r"this one has \['left'\]"),
    ],
)
def test_what_is_not_told_into_rows_is_refused_by_name(
    meeting: Meeting, result: Any, told: str
) -> None:
    with pytest.raises(PolicyError, match=told):
        asked(meeting.serves(result))


def test_stamps_without_a_declared_rate_are_refused(meeting: Meeting) -> None:
    policy = meeting.serves([command(0), command(1)], meta={'local_stack': SCHEDULE})
    with pytest.raises(PolicyError, match='declares no rate'):
        asked(policy)


def test_commands_of_another_kind_than_before_are_refused(meeting: Meeting) -> None:
    policy = meeting.serves([command(0)], [command(0, type='joint_delta', velocities=JOINTS)])
    policy.connect()
    scope = policy.open_episode(time.monotonic_ns)
    scope.infer(step())
    with pytest.raises(PolicyError, match='joint_delta after joint_pos'):
        scope.infer(step())


def test_the_declared_horizon_and_layers_are_obeyed(meeting: Meeting) -> None:
    layers = [
        {'name': 'chunked_schedule', 'version': 3, 'args': {'fps': 20}},
        {
            'par': [
                {'name': 'restrict_image_size', 'args': {'width': 32, 'height': 32}},
                {'name': 'metadata', 'version': 'latest', 'args': {'values': {'a': 1}}},
            ]
        },
        {'name': 'action_horizon', 'args': {'horizon_sec': 0.51}},
    ]
    policy = meeting.serves([command(0)], meta={'local_stack': {'seq': layers}})
    declared = policy.connect().actions
    assert (declared.hz, declared.open_loop_horizon) == (20.0, 11)
    policy.open_episode(time.monotonic_ns).infer(step(front=IMAGE))
    assert meeting.server.next()['observation']['front'][b'shape'] == [24, 32, 3]
    assert 'the server wants chunked_schedule: the player' in meeting.told


def test_images_are_compressed_where_the_server_wants_it(meeting: Meeting) -> None:
    policy = meeting.serves([command(0)], meta={**META, 'compress_images': True})
    asked(policy, front=IMAGE)
    front = meeting.server.next()['observation']['front']
    assert (front[b'__jpeg__'], front[b'ndim']) == (True, 3)
    seen = np.asarray(Image.open(io.BytesIO(front[b'frames'][0])))
    assert np.abs(seen.astype(int) - IMAGE).max() < 4


def test_the_keys_of_the_server_hold_what_the_user_says(meeting: Meeting) -> None:
    keys = '{"robot_state.q": ["state"], "task": "prompt"}'
    policy = meeting.serves([command(0)], server={'server_keys': keys, 'server_columns': ['a']})
    assert policy.connect().columns == ['a']
    policy.open_episode(time.monotonic_ns).infer(step(prompt='fold', more=1))
    assert set(meeting.server.next()['observation']) == {'robot_state.q', 'task'}


@pytest.mark.parametrize(
    ('node', 'told'),
    [
        ({'name': 'temporal_stack', 'args': {'keys': ['a']}}, "wants the layer 'temporal_stack'"),
        ({'name': 'chunked_schedule', 'version': 4}, 'version 4 of chunked_schedule; known are 1'),
        ({'name': 'chunked_schedule', 'args': {'overlap': 2}}, 'overlap'),
        ({'name': 'chunked_schedule', 'args': {'fps': 10}}, '10 and 20 rows/s'),
        ({'name': 'chunked_schedule', 'args': {'fps': -1}}, 'above 0'),
        ({'seq': []}, 'a list of layers was expected'),
        ('chunked_schedule', 'must be a mapping'),
    ],
)
def test_a_layer_that_this_robot_lacks_is_refused_at_connect(
    meeting: Meeting, node: Any, told: str
) -> None:
    policy = meeting.serves(meta={**META, 'local_stack': node})
    with pytest.raises(StackRefused, match=told):
        policy.connect()


def test_loading_is_told_as_the_server_tells_it(meeting: Meeting) -> None:
    def speak(connection: ServerConnection) -> None:
        for message in ('Loading checkpoint 20000', None):
            connection.send(packed({'status': 'loading', 'message': message}))
        connection.send(packed(ready(META)))
        connection.recv(WITHIN_S)

    policy = meeting.meet(speak)
    policy.connect()
    assert any('loading (Loading checkpoint 20000)' in told for told in meeting.told)


def test_a_server_that_falls_silent_while_preparing_is_tried_again(
    meeting: Meeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positronic_session, 'STATUS_S', 0.2)
    spoken: list[ServerConnection] = []

    def speak(connection: ServerConnection) -> None:
        spoken.append(connection)
        connection.send(packed({'status': 'waiting'}))
        if len(spoken) > 1:
            connection.send(packed(ready(META)))
        connection.recv(WITHIN_S)

    policy = meeting.meet(speak)
    policy.connect()
    assert any('said nothing of its session in time' in told for told in meeting.told)


@pytest.mark.parametrize('status', [503, 429])
def test_a_cold_server_is_tried_again(meeting: Meeting, status: int) -> None:
    policy = meeting.serves([command(0)], statuses=(status,))
    assert asked(policy) is not None
    assert len(meeting.server.requests) >= 2


@pytest.mark.parametrize('status', [401, 404])
def test_a_final_refusal_is_told_at_once(meeting: Meeting, status: int) -> None:
    policy = meeting.serves([command(0)], statuses=(status, status))
    with pytest.raises(HandshakeRefused, match=str(status)):
        policy.connect()
    assert len(meeting.server.requests) == 1


def test_no_attempt_begins_past_the_deadline(meeting: Meeting) -> None:
    policy = meeting.serves(statuses=(503,) * 9, connect_timeout_s=1.5)
    began_s = time.monotonic()
    with pytest.raises(WorkerLost, match=r'within 1\.5 s.*503'):
        policy.connect()
    assert time.monotonic() - began_s < 2.5
    assert len(meeting.server.requests) == 2


def test_a_protocol_that_is_not_known_is_named(meeting: Meeting) -> None:
    with pytest.raises(HandshakeRefused, match=r'protocol 4; \[1, 2, 3\] are spoken'):
        meeting.serves(protocol=4).connect()


@pytest.mark.parametrize(
    ('first', 'told'),
    [
        ({'status': 'error', 'error': 'no such model'}, 'refused the session: no such model'),
        ({'action_space': 'joints'}, 'no positronic server'),
        ('Traceback: boom', 'a text came: Traceback: boom'),
    ],
)
def test_what_is_no_session_is_refused_by_name(meeting: Meeting, first: Any, told: str) -> None:
    def speak(connection: ServerConnection) -> None:
        connection.send(first if isinstance(first, str) else packed(first))
        connection.close(1008, 'no')

    with pytest.raises(HandshakeRefused, match=told):
        meeting.meet(speak).connect()


@pytest.mark.parametrize(
    ('answer', 'told'),
    [
        ({'error': 'Shape mismatch'}, 'Shape mismatch'),
        ('Traceback: boom', 'a text came: Traceback: boom'),
        ({'timing': {}}, "holds no 'result'"),
        (b'\xc1', 'could not be read'),
    ],
)
def test_a_failed_inference_is_named_and_its_session_ended(
    meeting: Meeting, answer: Any, told: str
) -> None:
    closed = threading.Event()

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        connection.recv(WITHIN_S)
        connection.send(answer if isinstance(answer, (str, bytes)) else packed(answer))
        try:
            connection.recv(WITHIN_S)
        finally:
            closed.set()

    with pytest.raises(PolicyError, match=told):
        asked(meeting.meet(speak))
    assert closed.wait(WITHIN_S)


def test_pings_are_answered_while_nothing_is_asked_and_during_an_inference(
    meeting: Meeting,
) -> None:
    answered = threading.Event()

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        if connection.ping().wait(WITHIN_S):
            answered.set()
        connection.recv(WITHIN_S)
        assert connection.ping().wait(WITHIN_S)
        connection.send(packed({'result': [command(0)]}))
        connection.recv(WITHIN_S)

    policy = meeting.meet(speak)
    policy.connect()
    assert answered.wait(WITHIN_S)
    assert policy.open_episode(time.monotonic_ns).infer(step()) is not None


def test_pings_are_answered_while_an_episode_pauses(meeting: Meeting) -> None:
    answered = threading.Event()

    def speak(connection: ServerConnection) -> None:
        connection.send(packed(ready(META)))
        connection.recv(WITHIN_S)
        connection.send(packed({'result': [command(0)]}))
        if connection.ping().wait(WITHIN_S):
            answered.set()
        connection.recv(WITHIN_S)

    assert asked(meeting.meet(speak)) is not None
    assert answered.wait(WITHIN_S)


def test_the_model_of_an_older_server_is_named_in_the_path(meeting: Meeting) -> None:
    policy = meeting.serves([command(0)], model='a/b c', params={'codec.fps': 10, 'tag': '5'})
    policy.connect()
    path = '/api/v1/session/a/b%20c?codec.fps=10&tag=%225%22'
    wait_for(lambda: bool(meeting.server.requests), WITHIN_S, 'the handshake')
    assert meeting.server.requests[0].path == path


@pytest.mark.parametrize(
    ('options', 'told'),
    [
        ({'seed': 3}, 'no place for seed'),
        ({'embodiment': 'left'}, 'no place for embodiment'),
        ({'via_gateway': True}, 'no place for via_gateway'),
    ],
)
def test_what_has_no_place_on_the_wire_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        PositronicPolicy('positronic+ws://127.0.0.1:1', **options)


def test_a_token_does_not_travel_in_clear() -> None:
    with pytest.raises(EndpointRefused, match='in clear'):
        PositronicPolicy('positronic+ws://gpu.example:8000', 'secret')
