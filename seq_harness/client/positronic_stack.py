"""What a positronic server wants done on the robot's side: obeyed, or refused at connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from seq_harness.contract.images import fit_image

FPS, HORIZON_S, COMPRESS, STACK = READ = (
    'action_fps',
    'action_horizon_sec',
    'compress_images',
    'local_stack',
)
"""What is read of a session's metadata."""

JPEG_QUALITY = 90
"""What positronic's client takes where nothing is said."""

LARGEST = 640
"""The same of the sides of a restricted image."""

Pixels = npt.NDArray[Any]
Encode = Callable[[Any], Any]
"""Turns an observation, or any value in it, into what goes on the wire."""


class StackRefused(ValueError):
    """A layer that this robot does not have; names it, and those that are known."""


@dataclass(frozen=True)
class LocalStack:
    """What the declared layers come to on this robot."""

    fps: float | None = None
    """Rows a second."""
    horizon_s: float | None = None
    """How much of a chunk plays."""
    encoders: tuple[Encode, ...] = ()
    """What is done to an observation before it is sent, in order."""
    played_by: tuple[str, ...] = ()
    """Who does what each layer says, for people."""

    @property
    def horizon_rows(self) -> int | None:
        """Return how many rows of a chunk play."""
        if self.horizon_s is None or self.fps is None:
            return None
        return max(1, math.ceil(round(self.horizon_s * self.fps, 6)))

    def encode(self, observation: Mapping[str, Any]) -> Any:
        """Return an observation as the server is to see it; its values are made here."""
        value: Any = dict(observation)
        for encoder in self.encoders:
            value = encoder(value)
        return value

    def then(self, inner: LocalStack) -> LocalStack:
        """Return this and, closer to the server, `inner`."""
        return LocalStack(
            fps=_agreed('rows/s', self.fps, inner.fps),
            horizon_s=min((x for x in (self.horizon_s, inner.horizon_s) if x), default=None),
            encoders=self.encoders + inner.encoders,
            played_by=self.played_by + inner.played_by,
        )


def read_stack(meta: Mapping[str, Any]) -> LocalStack:
    """
    Return what a handshake's metadata asks of the robot's side.

    Raises
    ------
    StackRefused
        A layer, its version or an argument is unknown here, or two rates disagree.

    """
    declared = meta.get(STACK)
    stack = LocalStack() if declared is None else _read(STACK, declared)
    plain = LocalStack(_positive(FPS, meta.get(FPS)), _positive(HORIZON_S, meta.get(HORIZON_S)))
    if meta.get(COMPRESS):
        plain = replace(plain, encoders=(_jpeg(),), played_by=(f'{COMPRESS}: this client',))
    return stack.then(plain)


def _read(at: str, node: Any) -> LocalStack:
    if not isinstance(node, Mapping):
        raise StackRefused(f'{at} must be a mapping, got {node!r:.80}')
    if 'seq' in node:
        found = LocalStack()
        for part in _parts(at, node['seq']):
            found = found.then(part)
        return found
    if 'par' in node:
        return _beside(at, _parts(at, node['par']))
    return _layer(at, node)


def _parts(at: str, nodes: Any) -> list[LocalStack]:
    if not isinstance(nodes, Sequence) or isinstance(nodes, str) or not nodes:
        raise StackRefused(f'{at} composes {nodes!r:.80}; a list of layers was expected')
    return [_read(f'{at}[{number}]', node) for number, node in enumerate(nodes)]


def _beside(at: str, parts: Sequence[LocalStack]) -> LocalStack:
    """Put layers beside one another: as one after another, where one at most changes anything."""
    if sum(bool(part.encoders) for part in parts) > 1:
        raise StackRefused(
            f'{at} has several layers that change observations, side by side; this robot takes '
            'them one after another: declare a seq'
        )
    found = LocalStack()
    for part in parts:
        found = found.then(part)
    return found


def _layer(at: str, node: Mapping[Any, Any]) -> LocalStack:
    name, version, args = node.get('name'), node.get('version', 1), node.get('args', {})
    if not isinstance(name, str) or name not in LAYERS:
        raise StackRefused(
            f'{at}: the server wants the layer {name!r:.80} on the robot, which has none of this '
            f'name; known are {sorted(LAYERS)}: serve it beside the model'
        )
    newest, make = LAYERS[name]
    if version != 'latest' and version not in range(1, newest + 1):
        raise StackRefused(
            f'{at}: the server wants version {version!r:.40} of {name}; known are 1 to {newest}'
        )
    if not isinstance(args, Mapping):
        raise StackRefused(f'{at}: the arguments of {name} must be a mapping, got {args!r:.80}')
    try:
        return make(**args)
    except TypeError as error:
        raise StackRefused(f'{at}: {name} with {sorted(map(str, args))}: {error}') from None


def _schedule(fps: float | None = None) -> LocalStack:
    return LocalStack(fps=_positive('fps', fps), played_by=('chunked_schedule: the player',))


def _stop_on_fault() -> LocalStack:
    """Leave it to what the robot has above the player, which sees the arm's status."""
    return LocalStack(played_by=("stop_on_fault: the robot's stop inputs and own layers",))


def _stamps(fps: float) -> LocalStack:
    return LocalStack(fps=_positive('fps', fps), played_by=('action_timestamp: the player',))


def _horizon(horizon_sec: float) -> LocalStack:
    return LocalStack(
        horizon_s=_positive('horizon_sec', horizon_sec), played_by=('action_horizon: the player',)
    )


def _nothing(name: str, **_: Any) -> LocalStack:
    return LocalStack(played_by=(f'{name}: nothing to do while playing',))


def _restricted(width: int = LARGEST, height: int = LARGEST) -> LocalStack:
    sides = (_side('width', width), _side('height', height))
    encoder = partial(_each_image, partial(_each_frame, partial(_within, *sides)))
    return LocalStack(encoders=(encoder,), played_by=('restrict_image_size: this client',))


def _encoded(quality: int = JPEG_QUALITY, paths: Any = None) -> LocalStack:
    said = ('encode_images: this client',)
    if paths is None:
        return LocalStack(encoders=(_jpeg(quality),), played_by=said)
    if not isinstance(paths, Sequence) or isinstance(paths, str):
        raise StackRefused(f'paths of encode_images must be a list, got {paths!r:.80}')
    encoders = tuple(partial(_at, _path(path), partial(_as_jpeg, quality)) for path in paths)
    return LocalStack(encoders=encoders, played_by=said)


LAYERS: Mapping[str, tuple[int, Callable[..., LocalStack]]] = {
    'action_horizon': (1, _horizon),
    'action_timestamp': (1, _stamps),
    'binarize_grip_training': (1, partial(_nothing, 'binarize_grip_training')),
    'chunked_schedule': (3, _schedule),
    'encode_images': (1, _encoded),
    'metadata': (1, partial(_nothing, 'metadata')),
    'restrict_image_size': (1, _restricted),
    'stop_on_fault': (2, _stop_on_fault),
}
"""The layers that are obeyed: the newest version of each, and what it comes to."""


def _jpeg(quality: int = JPEG_QUALITY) -> Encode:
    if isinstance(quality, bool) or not isinstance(quality, int) or not 0 <= quality <= 100:
        raise StackRefused(f'a JPEG quality from 0 to 100 was expected, got {quality!r:.40}')
    return partial(_each_image, partial(_as_jpeg, quality))


def _each_image(change: Callable[[Pixels], Any], value: Any) -> Any:
    """Change every uint8 array [..., h, w, 3], however deep it lies."""
    if isinstance(value, Mapping):
        return {key: _each_image(change, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each_image(change, item) for item in value]
    return change(value) if _is_image(value) else value


def _is_image(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and value.ndim >= 3
        and value.shape[-1] == 3
        and min(value.shape[-3:-1]) > 0
    )


def _each_frame(change: Callable[[Pixels], Pixels], images: Pixels) -> Pixels:
    if images.ndim == 3 or not images.size:
        return change(images)
    frames = images.reshape((-1, *images.shape[-3:]))
    changed = np.stack([change(frame) for frame in frames])
    return changed.reshape((*images.shape[:-3], *changed.shape[1:]))


def _within(width: int, height: int, frame: Pixels) -> Pixels:
    """Scale a frame down until it fits, keeping its ratio; a smaller one stays as it is."""
    scale = min(1.0, width / frame.shape[1], height / frame.shape[0])
    inner = (max(1, int(frame.shape[1] * scale)), max(1, int(frame.shape[0] * scale)))
    return fit_image(frame, *inner, mode='stretch', filter='bilinear')


def _as_jpeg(quality: int, images: Any) -> dict[bytes, Any]:
    """Return images in positronic's envelope."""
    if not _is_image(images):
        raise StackRefused('encode_images names a value that is no uint8 array [..., h, w, 3]')
    frames = [_jpeg_of(frame, quality) for frame in images.reshape((-1, *images.shape[-3:]))]
    form: dict[bytes, Any] = {b'ndim': images.ndim}
    if images.ndim > 4 or not frames:
        form = {b'shape': list(images.shape)}
    return {b'__jpeg__': True, b'frames': frames, **form}


def _jpeg_of(frame: Pixels, quality: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(frame)).save(file, 'JPEG', quality=quality)
    return file.getvalue()


def _path(path: Any) -> list[Any]:
    steps = list(path) if isinstance(path, (list, tuple)) else [path]
    if not all(isinstance(step, (str, int)) for step in steps):
        raise StackRefused(f'a path of encode_images holds names and numbers, got {path!r:.80}')
    return steps


def _at(path: Sequence[Any], change: Encode, value: Any) -> Any:
    """Change what lies at a path, copying what holds it."""
    if not path:
        return change(value)
    try:
        inner = value[path[0]]
    except (LookupError, TypeError):
        raise StackRefused(
            f'encode_images names {path[0]!r}, which the observation lacks'
        ) from None
    changed = dict(value) if isinstance(value, Mapping) else list(value)
    changed[path[0]] = _at(path[1:], change, inner)
    return changed


def _positive(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise StackRefused(f'{name} must be a number above 0, got {value!r:.40}')
    return float(value)


def _side(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise StackRefused(f'{name} must be a number of pixels, got {value!r:.40}')
    return value


def _agreed(unit: str, one: float | None, other: float | None) -> float | None:
    if one is not None and other is not None and one != other:
        raise StackRefused(
            f'the server declares {one:g} and {other:g} {unit}; one rate was expected'
        )
    return other if one is None else one
