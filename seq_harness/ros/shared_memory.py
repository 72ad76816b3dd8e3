"""How much shared memory Fast DDS gives to what one participant sends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

DEFAULT_SEGMENT_BYTES = 512 * 1024
"""What Fast DDS takes, unless it is told otherwise."""

PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')


class ProfilesUnreadable(ValueError):
    """A profiles file is named that is not there, or is no XML."""


def segment_bytes(environment: Mapping[str, str]) -> int:
    """
    Return the size of a segment as an environment sets it: the largest that its profiles name.

    Raises
    ------
    ProfilesUnreadable
        The profiles file cannot be read, so that Fast DDS goes by its defaults.

    """
    file = next((environment[name] for name in PROFILES if environment.get(name)), None)
    if file is None:
        return DEFAULT_SEGMENT_BYTES
    try:
        root = ElementTree.fromstring(Path(file).read_bytes())
    except (OSError, ElementTree.ParseError) as error:
        raise ProfilesUnreadable(f'{file} is no profiles file of Fast DDS: {error}') from error
    sizes = [item.text or '' for item in root.iter() if item.tag.endswith('segment_size')]
    return max(
        (int(size) for size in map(str.strip, sizes) if size.isdecimal()),
        default=DEFAULT_SEGMENT_BYTES,
    )
