"""A camera that looks straight down on the table: pixels, and the picture of arm and target."""

from __future__ import annotations

from collections.abc import Sequence
import functools

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from seq_harness.sim.kinematics import forward, Point

WIDTH, HEIGHT = 640, 480
FOCAL_PX = 960.0
EYE: Point = (0.35, 0.0, 1.2)
"""Where the camera hangs; its picture is 0.8 by 0.6 m of the table, forward is up."""

TARGET_COLOUR = (0, 255, 0)
"""A pure green, which neither the photograph nor the arm comes near."""
TARGET_RADIUS_M = 0.02

_LINK_COLOURS = ((70, 74, 82), (112, 118, 128), (176, 182, 190))
_JOINT_COLOUR = (40, 42, 48)
_LINK_WIDTH_M = (0.07, 0.055, 0.04)
_JAW_M = 0.05


def project(point: Point) -> tuple[float, float]:
    """
    Return where the picture shows a point in the world, in metres: u right, v down, in pixels.

    The first pixel's middle is at (0.5, 0.5).
    """
    x, y, z = point
    scale = FOCAL_PX / (EYE[2] - z)
    return WIDTH / 2 - (y - EYE[1]) * scale, HEIGHT / 2 - (x - EYE[0]) * scale


def table_point(u: float, v: float) -> tuple[float, float]:
    """Return the point (x, y) of the table, in metres, that is shown at (u, v); see `project`."""
    scale = FOCAL_PX / EYE[2]
    return EYE[0] - (v - HEIGHT / 2) / scale, EYE[1] - (u - WIDTH / 2) / scale


class PhotographMissing(RuntimeError):
    """The photograph on the table cannot be read; says what to install."""


class Camera:
    """Takes pictures of the arm over the photograph that lies on its table."""

    def __init__(self) -> None:
        """
        Load the photograph once.

        Raises
        ------
        PhotographMissing
            When matplotlib, whose sample photograph it is, is not installed with its data.

        """
        self._table = _photograph()

    def picture(self, joints: Sequence[float], target: tuple[float, float]) -> NDArray[np.uint8]:
        """
        Return the table with the arm at `joints`, rad [6], and the target at (x, y) in metres.

        RGB uint8 [480, 640, 3]. The target is drawn last: the arm never hides it.
        """
        image = self._table.copy()
        draw = ImageDraw.Draw(image)
        _draw_arm(draw, joints)
        _draw_disc(draw, (*target, 0.0), TARGET_RADIUS_M, TARGET_COLOUR)
        return np.frombuffer(image.tobytes(), np.uint8).reshape(HEIGHT, WIDTH, 3)


@functools.cache
def _photograph() -> Image.Image:
    """Load matplotlib's sample photograph and cut it to the camera's shape."""
    try:
        from matplotlib.cbook import get_sample_data

        path = str(get_sample_data('grace_hopper.jpg', asfileobj=False))
        photograph = Image.open(path).convert('RGB')
    except (ImportError, OSError) as e:
        raise PhotographMissing(
            f'the camera shows a sample photograph of matplotlib, which cannot be read ({e}); '
            'install matplotlib with its sample data'
        ) from e
    rows = photograph.width * HEIGHT // WIDTH
    top = (photograph.height - rows) // 2
    cut = photograph.crop((0, top, photograph.width, top + rows))
    return cut.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)


def _draw_arm(draw: ImageDraw.ImageDraw, joints: Sequence[float]) -> None:
    pose = forward(joints)
    chain = (pose.shoulder, pose.elbow, pose.wrist, pose.tip)
    for begin, end, colour, width in zip(
        chain, chain[1:], _LINK_COLOURS, _LINK_WIDTH_M, strict=False
    ):
        pixels = [project(begin), project(end)]
        draw.line(pixels, fill=colour, width=round(width * _scale(end)))
    for joint in chain[:3]:
        _draw_disc(draw, joint, _LINK_WIDTH_M[0] / 2, _JOINT_COLOUR)
    halves = [
        tuple(t + side * _JAW_M * j for t, j in zip(pose.tip, pose.jaw, strict=True))
        for side in (-1, 1)
    ]
    jaws = [project((x, y, z)) for x, y, z in halves]
    draw.line(jaws, fill=_LINK_COLOURS[2], width=round(_LINK_WIDTH_M[2] / 2 * _scale(pose.tip)))


def _draw_disc(
    draw: ImageDraw.ImageDraw, centre: Point, radius_m: float, colour: tuple[int, int, int]
) -> None:
    u, v = project(centre)
    radius = radius_m * _scale(centre)
    draw.ellipse((u - radius, v - radius, u + radius, v + radius), fill=colour)


def _scale(point: Point) -> float:
    """Return how many pixels a metre takes at the height of `point`."""
    return FOCAL_PX / (EYE[2] - point[2])
