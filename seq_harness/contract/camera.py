"""What a policy declares of one camera."""

from typing import Literal

from pydantic import Field, model_validator
from seq_harness.contract.model import WireModel
from typing_extensions import Self

Fit = Literal['pad', 'stretch']
Filter = Literal['nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos']
Codec = Literal['raw', 'png', 'jpeg']
Layout = Literal['hwc_uint8', 'chw_float']

JPEG_QUALITY = 95
"""The quality of a JPEG frame whose camera does not say."""


class Camera(WireModel):
    """
    The frame a policy reads of one view.

    The robot fits a frame when `resize` and `filter` are both given. A worker never resizes: it
    refuses a frame of another size.
    """

    width: int = Field(gt=0, le=8192)
    height: int = Field(gt=0, le=8192)
    depth: bool | None = None
    """The view also sends a depth frame."""
    resize: Fit | None = None
    filter: Filter | None = None
    codec: Codec | None = None
    """How the robot sends it; unset is as it came. For own inputs only."""
    quality: int | None = Field(default=None, ge=1, le=100)
    layout: Layout | None = None
    """What the policy's code receives: uint8 [h, w, c], or float [c, h, w] in 0..1."""

    @model_validator(mode='after')
    def _quality_is_of_a_jpeg(self) -> Self:
        if self.quality is not None and self.codec != 'jpeg':
            raise ValueError(
                f'quality is for a JPEG frame, and codec is {self.codec!r}: '
                "set codec='jpeg' or leave quality out"
            )
        return self
