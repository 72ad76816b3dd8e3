"""The shared memory of Fast DDS: how much one participant has, and whether it is still there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
import re
from xml.etree import ElementTree

DEFAULT_SEGMENT_BYTES = 512 * 1024
"""What Fast DDS takes, unless it is told otherwise."""

PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')


PORT = re.compile(r'/dev/shm/fast(?:rtps|dds)_port\d+_[es]l')
"""The lock of a port on which a process listens: it is held open as long as that."""

DELETED = ' (deleted)'

FILES_GONE = (
    'are gone, which another process deleted: nothing that is sent on this machine arrives here '
    'any more, calls of services neither'
)

KEEP_FILES = (
    'start the node anew; where this came as a login session ended, set RemoveIPC=no in '
    '/etc/systemd/logind.conf, or run the node as a system user'
)


class ProfilesUnreadable(ValueError):
    """A profiles file is named that is not there, or is no XML."""


def lost_ports(opened: Path = Path('/proc/self/fd')) -> list[str]:
    """Return the port files of this process's own Fast DDS that are deleted under its feet."""
    lost: list[str] = []
    try:
        descriptors = list(opened.iterdir())
    except OSError:
        # A process that has no descriptor left cannot look at them, and goes on.
        return lost
    for each in descriptors:
        with suppress(OSError):
            target = str(each.readlink())
            if target.endswith(DELETED) and PORT.fullmatch(target.removesuffix(DELETED)):
                lost.append(target.removesuffix(DELETED))
    return sorted(lost)


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
