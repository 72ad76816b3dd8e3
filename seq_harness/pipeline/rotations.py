"""Columns that look like rotation vectors, of which each number by itself means nothing."""

from __future__ import annotations

import re

from seq_harness.settings import Settings

LOOKS = re.compile(
    r'(?:^|[^a-z])(?:d?r[xyz]|(?:rot_?vec|rotation_?vec(?:tor)?|axis_?angle|aa)_?[xyz0-3])$',
    re.IGNORECASE,
)
"""Names such as `rx`, `tool.rz`, `rotvec_x` or `axis_angle_2`."""

KINDS = ('position', 'angle', 'pose')
"""The kinds whose values are blended and interpolated."""

LEAST = 2
"""One such column may be an axis that turns."""


def rotation_vectors(settings: Settings) -> list[str]:
    """Say which channels interpolate rotation vectors as if they were numbers (G59)."""
    if 'pose_form' in settings['layers']:
        return []
    found = []
    for item in settings.channels:
        named = [column for column in item.columns if LOOKS.search(column)]
        if item.kind in KINDS and len(named) >= LEAST:
            found.append(
                f'the columns {named} of channels.{item.name} look like a rotation vector: taken '
                'one by one, two vectors near half a turn are blended the long way round; give '
                'the channel the kind pose and x, y, z, qx, qy, qz, qw as joints, and '
                'parameter layers a pose_form whose policy is rotvec and whose robot is quat_xyzw'
            )
    return found
