"""The wire of roboarena's policy servers: openpi's encoding, a greeting that asks, a reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError
from seq_harness.client.cancel import Cancel
from seq_harness.client.endpoint import Endpoint
from seq_harness.client.key_map import Entry, KeyMap, Path
from seq_harness.client.key_presets import PRESET_COLUMNS
from seq_harness.client.key_reading import read_entries, read_keeps_state, read_key_map
from seq_harness.client.openpi import answer_to, greeted, infer_ms_of, told
from seq_harness.client.plain_link import Answered, Talk
from seq_harness.client.plain_policy import (
    plain_endpoint,
    plain_policy,
    PlainPolicy,
    refuse_options,
)
from seq_harness.client.plain_websocket import PlainWebsocket, Waiting
from seq_harness.contract.camera import Camera
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.contract.msgpack import MsgpackError
from seq_harness.contract.numpy_msgpack import pack, unpack
from seq_harness.playback.uplink import PolicyError

ENDPOINT, INFER, RESET = 'endpoint', 'infer', 'reset'
SESSION_ID = 'session_id'
STATUS, RESET_DONE = 'status', 'reset successful'

LARGEST = 8192
"""Pixels of the longest side of a frame."""

STATE_KEYS: Mapping[str, tuple[str, int]] = {
    'observation/joint_position': ('joints', 7),
    'observation/gripper_position': ('gripper', 1),
    'observation/cartesian_position': ('cartesian', 6),
}
"""Server's key to the own key that it is made of, and how many numbers it holds."""


class GreetingRefused(ValueError):
    """A server asks for what cannot be given; names both sides."""


class Greeting(BaseModel):
    """What a server asks for; unknown fields are ignored, and missing ones have defaults."""

    image_resolution: tuple[int, int] | None = (224, 224)
    """Height and width of every frame; None takes them as they are."""
    needs_wrist_camera: bool = True
    n_external_cameras: int = Field(default=1, ge=0, le=2)
    needs_stereo_camera: bool = False
    needs_session_id: bool = False
    action_space: Literal[
        'joint_position', 'joint_velocity', 'cartesian_position', 'cartesian_velocity'
    ] = 'joint_position'

    @property
    def camera(self) -> Camera | None:
        """Return the size that a frame is fitted to."""
        if self.image_resolution is None:
            return None
        height, width = self.image_resolution
        return Camera(width=width, height=height, resize='pad', filter='bilinear')

    def frames(self, first: int) -> dict[Path, str]:
        """Return the keys of the frames that are asked for, each with its own key."""
        views = {'wrist_image': 'wrist'} if self.needs_wrist_camera else {}
        views |= {
            f'exterior_image_{first + i}': f'exterior_{1 + i}'
            for i in range(self.n_external_cameras)
        }
        keys: dict[Path, str] = {}
        for name, own in views.items():
            keys[(f'observation/{name}_left',)] = own
            if self.needs_stereo_camera:
                keys[(f'observation/{name}_right',)] = f'{own}_right'
        return keys


class RoboarenaTalk:
    """A connection after its greeting: an episode begins with a reset, and every question says."""

    def __init__(self, socket: PlainWebsocket, asked: Greeting, keys: KeyMap) -> None:
        self._socket = socket
        self._asked = asked
        self.keys = keys
        self._session: dict[str, str] = {}  # written by `begin`
        self.greeting = repr(asked)

    @property
    def is_open(self) -> bool:
        """Tell whether it was still open when it was last heard of; answers pings."""
        return self._socket.is_open

    def begin(self, episode_id: str, within_s: float, cancel: Cancel) -> None:
        """Have the policy forget the episode before; its acknowledgement is a text (Talk)."""
        self._session = {SESSION_ID: episode_id} if self._asked.needs_session_id else {}
        came = self._socket.exchange(pack({ENDPOINT: RESET, **self._session}), within_s, cancel)
        if came.is_text:
            done = came.text.strip() == RESET_DONE
        else:
            done = _status(came.data) == RESET_DONE
        if not done:
            self._socket.close()
            shown = told(came) if came.is_text else repr(came.data[:80])
            raise PolicyError(f'the reset was to be answered {RESET_DONE!r}, and was: {shown}')

    def ask(
        self, observation: Mapping[str, Any], within_s: float, cancel: Cancel, waiting: Waiting
    ) -> Answered:
        """Ask about an observation (Talk)."""
        request = {**self.keys.request(observation), ENDPOINT: INFER, **self._session}
        answer = answer_to(self._socket, pack(request), within_s, cancel, waiting)
        return Answered(self.keys.answer(answer), infer_ms_of(answer))

    def abort(self) -> None:
        """End the connection at once; whoever waits on it is told."""
        self._socket.abort()

    def close(self) -> None:
        """Say goodbye and end the connection."""
        self._socket.close()


class RoboarenaDialect:
    """What sets roboarena's wire apart (Dialect)."""

    def __init__(self, endpoint: Endpoint, server: Mapping[str, Any]) -> None:
        """
        Take note of a server; `server` holds the parameters `server_*`.

        Raises
        ------
        KeyMapRefused
            They make no key map.

        """
        self._endpoint = endpoint
        self._map = read_key_map(server)
        self._left_out = {
            path
            for path, entry in read_entries(server.get('server_keys', '')).items()
            if entry is None
        }
        self._action_space = server.get('server_action_space', 'joint_position')
        self._first_camera = int(server.get('server_first_camera', 1))
        self.address = str(endpoint)
        self.keeps_state = read_keeps_state(server)

    def open(self, within_s: float, cancel: Cancel, waiting: Waiting) -> RoboarenaTalk:
        """Connect, and see whether what the greeting asks for can be given (Dialect)."""
        socket, metadata = greeted(self._endpoint, within_s, cancel, waiting)
        try:
            asked = read_greeting(metadata)
            return RoboarenaTalk(socket, asked, self._keys_for(asked))
        except BaseException:
            socket.close()
            raise

    def declare(self, talk: Talk) -> WorkerDeclaration:
        """Say what the greeting asks for, in the robot's own keys (Dialect)."""
        if not isinstance(talk, RoboarenaTalk):
            raise TypeError(f'a conversation of this wire was expected, got {type(talk).__name__}')
        return talk.keys.declaration()

    def _keys_for(self, asked: Greeting) -> KeyMap:
        """Make exactly the keys that are asked for, of the sizes that are asked for."""
        if asked.action_space != self._action_space:
            raise GreetingRefused(
                f'{self._endpoint} answers rows of {asked.action_space!r}; this robot takes '
                f'{self._action_space!r}: set server_action_space and the channels for it, or '
                'serve another policy'
            )
        wanted: dict[Path, Entry] = {}
        for path, own in asked.frames(self._first_camera).items():
            entry = self._map.entries.get(path) or Entry.of(own)
            wanted[path] = entry.model_copy(update={'camera': asked.camera, 'layout': 'hwc'})
        for name, (own, length) in STATE_KEYS.items():
            known = self._map.entries.get((name,))
            wanted[(name,)] = known or Entry.of(own, length)
        wanted[('prompt',)] = self._map.entries.get(('prompt',)) or Entry.of('prompt')
        sent = {path: entry for path, entry in wanted.items() if path not in self._left_out}
        is_cartesian = asked.action_space.startswith('cartesian')
        columns = self._map.columns or PRESET_COLUMNS['libero' if is_cartesian else 'droid']
        return KeyMap(sent, columns, self._map.rows_key, self._map.width)


def roboarena_policy(
    url: str, *, server: Mapping[str, Any] | None = None, **options: Any
) -> PlainPolicy:
    """
    Make the policy at `roboarena+ws://host:port`; `server` holds the parameters `server_*`.

    Raises
    ------
    UnknownScheme, EndpointRefused, KeyMapRefused, ValueError
        The URL, the key map or an option is not one of this wire's.

    """
    refuse_options('roboarena', options, 'via_gateway', 'model', 'embodiment', 'seed', 'params')
    return plain_policy(RoboarenaDialect(plain_endpoint(url, options), server or {}), options)


def read_greeting(metadata: Mapping[Any, Any]) -> Greeting:
    """
    Read what a server asks for.

    Raises
    ------
    GreetingRefused
        A known field holds what no client could give.

    """
    try:
        greeting = Greeting.model_validate(dict(metadata))
    except ValidationError as error:
        first = error.errors()[0]
        where = '.'.join(map(str, first['loc']))
        raise GreetingRefused(
            f'the server announces {where} as {first["input"]!r:.100}: {first["msg"]}'
        ) from None
    if any(not 1 <= side <= LARGEST for side in greeting.image_resolution or ()):
        raise GreetingRefused(
            f'the server asks for frames of {greeting.image_resolution}: sides of 1 to {LARGEST} '
            'were expected, height first'
        )
    return greeting


def _status(data: bytes) -> Any:
    try:
        answer = unpack(data)
    except MsgpackError:
        return None
    return answer.get(STATUS) if isinstance(answer, Mapping) else None
