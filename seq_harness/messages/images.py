"""Images of ROS messages as arrays: what other rooms call."""

from seq_harness.messages.compressed_image import check_compressed, decode_compressed
from seq_harness.messages.raw_image import check_image, decode_image
from seq_harness.messages.refusals import ImageRefused

__all__ = [
    'ImageRefused',
    'check_compressed',
    'check_image',
    'decode_compressed',
    'decode_image',
]
