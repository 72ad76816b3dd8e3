"""What the policy reads of a snapshot: keys, joint vectors, fitted and encoded frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import io
import threading
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image
from seq_harness.contract.camera import Camera, JPEG_QUALITY
from seq_harness.contract.images import fit_picture
from seq_harness.inputs import Sample, Snapshot
from seq_harness.messages.compressed_image import jpeg_as_it_came
from seq_harness.messages.converters import Converter, converter, Form
from seq_harness.messages.refusals import ImageRefused
from seq_harness.settings import InputSettings
from seq_harness.settings.input_types import COMPRESSED_IMAGE

Pixels: TypeAlias = npt.NDArray[Any]

COLOURS = 3
"""Of a frame [H, W, 3]: red, green and blue."""


class ObservationRefused(ValueError):
    """An input does not give what the policy declares; names both sides."""


@dataclass(frozen=True)
class Reader:
    """One key of the observation: which input it comes from, and how it is read."""

    key: str
    input: str
    read: Callable[[Any], Any]
    blank: Callable[[], Any]
    """Makes a value of the right type and size without any input, for the warm-up."""


class SampledObservation(Mapping[str, Any]):
    """
    The observation of one round; each value is made on its first read, by whichever thread.

    It holds references to messages that nobody changes, so nothing is copied until then (R8).
    """

    def __init__(
        self, readers: Mapping[str, Reader], snapshot: Snapshot, t_ns: int, text: Mapping[str, str]
    ) -> None:
        self._readers = readers
        self.snapshot = snapshot
        """The samples it is made of."""
        self.t_ns = t_ns
        """The instant of the round, on the playback clock."""
        self._made: dict[str, Any] = dict(text)
        self._keys = (*readers, *text)
        self._making = threading.Lock()

    def __getitem__(self, key: str) -> Any:
        with self._making:
            if key not in self._made:
                reader = self._readers[key]
                self._made[key] = _read(reader, self.snapshot[reader.input])
            return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class ObservationSpec:
    """Build observations from snapshots, as the settings and the policy's declaration say."""

    def __init__(
        self,
        inputs: Sequence[InputSettings],
        cameras: Mapping[str, Camera],
        instruction_key: str,
    ) -> None:
        """`cameras` are the declared ones, by observation key."""
        self._readers = {
            item.key: _reader(item, cameras.get(item.key)) for item in inputs if not item.is_status
        }
        self._instruction_key = instruction_key

    @property
    def keys(self) -> set[str]:
        """Return the keys that an observation has."""
        return {*self._readers, *self._text('')}

    def observe(self, snapshot: Snapshot, t_ns: int, instruction: str) -> SampledObservation:
        """Return the observation of the round at `t_ns`; decodes nothing."""
        return SampledObservation(self._readers, snapshot, t_ns, self._text(instruction))

    def blank(self, instruction: str) -> dict[str, Any]:
        """Return an observation of the right keys, types and sizes that nobody saw."""
        values = {key: reader.blank() for key, reader in self._readers.items()}
        return {**values, **self._text(instruction)}

    def _text(self, instruction: str) -> dict[str, str]:
        return {self._instruction_key: instruction} if self._instruction_key else {}


def joint_values_of(sample: Sample, joints: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the values of `joints` of named numbers, in that order, in rad or m."""
    return np.array([sample.value[name] for name in joints])


def _read(reader: Reader, sample: Sample) -> Any:
    """Read a sample; one that does not decode no longer counts as the newest (G12)."""
    try:
        return reader.read(sample.value)
    except ImageRefused as error:
        sample.retract(sample)
        raise ObservationRefused(f'the input {reader.input!r} does not decode: {error}') from error
    except (ObservationRefused, OSError, ValueError, TypeError) as error:
        raise ObservationRefused(f'the input {reader.input!r}: {error}') from error


def _reader(item: InputSettings, camera: Camera | None) -> Reader:
    found = converter(item.type)
    if found.form is Form.NUMBERS:
        return Reader(
            item.key,
            item.name,
            lambda values: _frozen(np.array([values[name] for name in item.joints], np.float32)),
            lambda: np.zeros(len(item.joints), np.float32),
        )
    if found.form is Form.WORD:
        return Reader(item.key, item.name, str, str)
    return Reader(
        item.key,
        item.name,
        lambda message: _frame(found, message, camera, item),
        lambda: frame_of(_black(camera), camera, item.topic),
    )


def _frame(
    found: Converter, message: Any, camera: Camera | None, item: InputSettings
) -> Pixels | bytes:
    """Fit a message's frame; a JPEG that fits as it came is not made anew."""
    if camera is not None and camera.codec == 'jpeg' and item.type == COMPRESSED_IMAGE:
        # A policy that declares no quality takes what the camera has.
        jpeg = jpeg_as_it_came(message, camera.width, camera.height, camera.quality or 1)
        if jpeg is not None:
            return jpeg
    return frame_of(found.read(message, (), ''), camera, item.topic)


def _black(camera: Camera | None) -> Pixels:
    height, width = (camera.height, camera.width) if camera else (480, 640)
    return np.zeros((height, width, 3), np.uint8)


def frame_of(pixels: Pixels, camera: Camera | None, topic: str) -> Pixels | bytes:
    """
    Fit and encode a decoded frame as the policy declares it.

    A frame is resized only when the declaration gives both `resize` and `filter`.

    Raises
    ------
    ObservationRefused
        The frame has another size and the declaration does not say how to fit it, or it holds no
        colours.

    """
    if camera is None:
        return _frozen(pixels)
    if pixels.dtype != np.uint8 or pixels.shape[2:] != (COLOURS,):
        raise ObservationRefused(
            f'{topic} gives frames of {pixels.dtype} {list(pixels.shape)}, such as depth; the '
            'policy reads colours of 8 bits: set its topic to that of a colour camera'
        )
    if pixels.shape[:2] != (camera.height, camera.width):
        if camera.resize is None or camera.filter is None:
            raise ObservationRefused(
                f'{topic} gives frames of {pixels.shape[1]}x{pixels.shape[0]}; the policy reads '
                f'{camera.width}x{camera.height} and does not say how to fit them (resize and '
                'filter): make the camera publish that size, or declare both'
            )
        picture = fit_picture(
            Image.fromarray(pixels),
            camera.width,
            camera.height,
            mode=camera.resize,
            filter=camera.filter,
        )
        encodes = camera.codec in ('jpeg', 'png')
        return _encoded(picture, camera) if encodes else _frozen(np.asarray(picture))
    if camera.codec in ('jpeg', 'png'):
        return _encoded(Image.fromarray(pixels), camera)
    return _frozen(pixels)


def _encoded(image: Image.Image, camera: Camera) -> bytes:
    out = io.BytesIO()
    if camera.codec == 'jpeg':
        image.save(out, 'JPEG', quality=camera.quality or JPEG_QUALITY)
    else:
        image.save(out, 'PNG', compress_level=1)
    return out.getvalue()


def _frozen(array: Pixels) -> Pixels:
    view: Pixels = array.view()
    view.flags.writeable = False
    return view
