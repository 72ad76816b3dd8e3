"""Layers around the player, and where each of them may stand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, runtime_checkable, TypeAlias

from seq_harness.playback.chunk import ChunkRefused
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.scope import channels_of, Infer, map_rows, require_infer
from seq_harness.playback.session import (
    Commands,
    NotASession,
    Observation,
    require_session,
    Session,
)
from seq_harness.playback.uplink import Step, Uplink

PREFIX = 'prefix'
"""The key of a plan that holds rows which will still be executed, as commands by channel."""


class Misplaced(ValueError):
    """A layer stands where it would not work; names it and where it belongs."""


class SessionLayer(ABC):
    """Wraps a session: it may skip, delay or cancel; it stands above the player (R69)."""

    name: str

    def wrap_session(self, inner: Session) -> Session:
        """
        Return the session that this layer makes of `inner`.

        Raises
        ------
        NotASession
            `inner` answers chunks: a session layer below the player would be skipped (R71).

        """
        try:
            require_session(inner)
        except NotASession as error:
            raise NotASession(
                f'layer {self.name!r} wraps a session and belongs above the player: {error}'
            ) from error
        return self._over(inner)

    @abstractmethod
    def _over(self, inner: Session) -> Session: ...


class ChunkLayer(ABC):
    """Wraps `INFER` for one episode, off the control thread; it stands below the player (R69)."""

    name: str
    changes_frame: bool = False
    """Whether poses come out in another frame; at most one layer may do that (R75)."""
    reversible: bool = True
    """Whether rows can be turned back into what the policy would have answered."""

    def wrap_infer(self, infer: Infer) -> Infer:
        """
        Return the callable that this layer makes of `infer`.

        Raises
        ------
        NotInfer
            `infer` answers commands: a chunk layer above the player is refused (R70).

        """
        require_infer(infer)
        return self._under(infer)

    def encode(self, observation: Observation) -> Observation:
        """
        Return the observation as the policy reads it.

        It serves acts and streamed steps alike, so it must decode nothing by itself.
        """
        return observation

    @abstractmethod
    def _under(self, infer: Infer) -> Infer: ...


class Codec(ChunkLayer):
    """A chunk layer that converts observations on their way down, and rows on their way up."""

    requires: Sequence[str] = ()
    """The channels that a chunk with rows must have."""

    def decode_row(self, commands: Commands) -> Commands:
        """Return what the robot is commanded, of what the policy answered."""
        return commands

    def encode_row(self, commands: Commands) -> Commands:
        """Return what the policy would have answered, of what the robot is commanded."""
        return commands

    def _under(self, infer: Infer) -> Infer:
        def converted(step: Step, plan: Mapping[str, Any] | None = None) -> Any:
            seen = replace(step, observation=self.encode(step.observation))
            answer = infer(seen, self._encode_plan(plan))
            self._require_channels(answer)
            return map_rows(answer, self.decode_row)

        return converted

    def _require_channels(self, answer: Any) -> None:
        """Refuse a chunk that a codec would let through unconverted."""
        came = channels_of(answer)
        missing = [name for name in self.requires if name not in came]
        if came and missing:
            raise ChunkRefused(
                f'layer {self.name!r} converts the channels {missing}, which the chunk lacks; '
                f'it has {sorted(came)}'
            )

    def _encode_plan(self, plan: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if plan is None or PREFIX not in plan:
            return plan
        return {**plan, PREFIX: [self.encode_row(row) for row in plan[PREFIX]]}


@dataclass(frozen=True)
class PlayerLayer:
    """The place of the player, the one layer that turns chunks into commands (R70)."""

    make: Callable[[Uplink], ChunkPlayer]
    name: str = 'player'


@runtime_checkable
class Stoppable(Protocol):
    """A session that knows what must be sent so that nothing moves on."""

    def stop_commands(self, t: int) -> Commands:
        """Return a zero for every rate, and a hold for every plan sent ahead, at `t`."""


class PassedOn:
    """A session that hands everything to the one inside it; layers change what they must."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner

    def __call__(self, observation: Observation, t: int) -> tuple[Commands, int]:
        return self._inner(observation, t)

    def cancel(self) -> None:
        self._inner.cancel()

    def close(self) -> None:
        self._inner.close()

    def stop_commands(self, t: int) -> Commands:
        """Return what ends a motion that is under way; nothing where all channels hold."""
        return self._inner.stop_commands(t) if isinstance(self._inner, Stoppable) else {}


Layer: TypeAlias = 'SessionLayer | ChunkLayer | PlayerLayer'


class Layers:
    """
    Layers from top to bottom; their places are checked whenever some are put together (R73).

    `upper | lower` puts one part on top of another.
    """

    def __init__(self, *parts: Layer | Layers, frames_elsewhere: Sequence[str] = ()) -> None:
        """
        Put parts together, the top one first.

        `frames_elsewhere` names what changes frames on the far side of the wire (R75).

        Raises
        ------
        Misplaced
            Names the layer and where it belongs.

        """
        self._layers: tuple[Layer, ...] = tuple(_flat(parts))
        said = [part._frames_elsewhere for part in parts if isinstance(part, Layers)]
        self._frames_elsewhere: tuple[str, ...] = (*chain(*said), *frames_elsewhere)
        _check_places(self._layers)
        _check_frames(self._layers, self._frames_elsewhere)

    def __or__(self, lower: Layer | Layers) -> Layers:
        return Layers(self, lower)

    def __ror__(self, upper: Layer) -> Layers:
        return Layers(upper, self)

    @property
    def names(self) -> tuple[str, ...]:
        """Name the layers, from top to bottom."""
        return tuple(layer.name for layer in self._layers)

    @property
    def irreversible(self) -> tuple[str, ...]:
        """Name the layers through which a plan cannot be sent back to the policy."""
        return tuple(layer.name for layer in self._below if not layer.reversible)

    def require_player(self) -> None:
        """
        Refuse a pipeline that answers chunks, before anything is opened for it (R9).

        Raises
        ------
        NotASession
            Says what to put where.

        """
        self._player()

    def wrap_infer(self, infer: Infer) -> Infer:
        """Put the chunk layers around `infer`, for one episode."""
        for layer in reversed(self._below):
            infer = layer.wrap_infer(infer)
        return infer

    def encode(self, observation: Observation) -> Observation:
        """Return the observation as the policy reads it; decodes nothing."""
        for layer in self._below:
            observation = layer.encode(observation)
        return observation

    def open_session(self, uplink: Uplink) -> tuple[Session, ChunkPlayer]:
        """
        Make the player on `uplink`, and the session that the layers above make of it.

        Raises
        ------
        NotASession
            No layer turns chunks into commands; says what to put where (R9).

        """
        player = self._player().make(uplink)
        session: Session = player
        for layer in reversed(self._layers):
            if isinstance(layer, SessionLayer):
                session = layer.wrap_session(session)
        return session, player

    @property
    def _below(self) -> list[ChunkLayer]:
        return [layer for layer in self._layers if isinstance(layer, ChunkLayer)]

    def _player(self) -> PlayerLayer:
        for layer in self._layers:
            if isinstance(layer, PlayerLayer):
                return layer
        raise NotASession(
            f'the pipeline {list(self.names)} answers chunks, not commands: '
            'put a player above its chunk layers'
        )


def _flat(parts: Iterable[Layer | Layers]) -> Iterable[Layer]:
    for part in parts:
        if isinstance(part, Layers):
            yield from part._layers
        elif isinstance(part, (SessionLayer, ChunkLayer, PlayerLayer)):
            yield part
        else:
            raise Misplaced(
                f'a session layer, a chunk layer or a player was expected, '
                f'got {type(part).__name__}'
            )


def _check_places(layers: Sequence[Layer]) -> None:
    players = [number for number, layer in enumerate(layers) if isinstance(layer, PlayerLayer)]
    if len(players) > 1:
        names = [layers[number].name for number in players]
        raise Misplaced(
            f'two players ({names}) would anchor every waypoint twice (R72): leave one out'
        )
    for number, layer in enumerate(layers):
        if isinstance(layer, ChunkLayer) and players and number < players[0]:
            raise Misplaced(
                f'layer {layer.name!r} converts chunks and stands above the player, where there '
                'are none: put it below the player'
            )
        if isinstance(layer, SessionLayer) and _chunks_above(layers[:number]):
            raise Misplaced(
                f'layer {layer.name!r} wraps a session and stands below the player, where it '
                'would be skipped: put it above the player'
            )


def _chunks_above(layers: Sequence[Layer]) -> bool:
    return any(not isinstance(layer, SessionLayer) for layer in layers)


def _check_frames(layers: Sequence[Layer], elsewhere: Sequence[str]) -> None:
    here = [item.name for item in layers if isinstance(item, ChunkLayer) and item.changes_frame]
    if len(here) + len(elsewhere) > 1:
        far = [f'{name} (on the far side of the wire)' for name in elsewhere]
        raise Misplaced(
            f'frames are changed more than once, by {[*here, *far]}: a pose must change its '
            'frame in one place; leave all but one out'
        )
