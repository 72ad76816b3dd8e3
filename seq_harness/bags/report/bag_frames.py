"""What the cameras of a recording showed at some instants, as small pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import io

import numpy as np
from PIL import Image
from seq_harness.bags.reading import Bag
from seq_harness.bags.records import BagError, Record
from seq_harness.bags.report.data import Frame
from seq_harness.messages.images import decode_compressed, decode_image, ImageRefused

IMAGES = {
    'sensor_msgs/msg/Image': decode_image,
    'sensor_msgs/msg/CompressedImage': decode_compressed,
}

MOST_FRAMES = 60
"""Of a camera."""

HEIGHT, QUALITY = 160, 75


def frames_of(
    bag: Bag, wanted: Mapping[str, float], start_ns: int, notes: list[str]
) -> list[Frame]:
    """
    Return the newest frame of every camera at some instants, which are given by name.

    What cannot be read is told in `notes`.
    """
    frames: list[Frame] = []
    for topic in bag.topics:
        if topic.type not in IMAGES or not topic.count:
            continue
        try:
            for name, record in _newest(bag, topic.name, _few(wanted), start_ns):
                at_s = (record.log_ns - start_ns) / 1e9
                frames.append(Frame(at_s, topic.name, name, _small(bag, record)))
        except (BagError, ImageRefused) as error:
            notes.append(f'Frames of {topic.name} are missing: {error}.')
    return frames


def _few(wanted: Mapping[str, float]) -> list[tuple[str, float]]:
    ordered = sorted(wanted.items(), key=lambda item: item[1])
    if len(ordered) <= MOST_FRAMES:
        return ordered
    places = np.linspace(0, len(ordered) - 1, MOST_FRAMES).round().astype(int)
    return [ordered[place] for place in places]


def _newest(
    bag: Bag, topic: str, wanted: list[tuple[str, float]], start_ns: int
) -> Iterator[tuple[str, Record]]:
    """Yield the last message up to each instant, once."""
    last: Record | None = None
    shown: Record | None = None
    left = iter(wanted)
    following = next(left, None)
    for record in bag.records([topic]):
        while following is not None and record.log_ns > start_ns + following[1] * 1e9:
            if last is not None and last is not shown:
                yield following[0], last
                shown = last
            following = next(left, None)
        if following is None:
            return
        last = record
    if following is not None and last is not None and last is not shown:
        yield following[0], last


def _small(bag: Bag, record: Record) -> bytes:
    pixels = IMAGES[record.type](bag.decode(record))
    image = Image.fromarray(np.asarray(pixels)).convert('RGB')
    if image.height > HEIGHT:
        image = image.resize((max(1, image.width * HEIGHT // image.height), HEIGHT))
    out = io.BytesIO()
    image.save(out, 'JPEG', quality=QUALITY)
    return out.getvalue()
