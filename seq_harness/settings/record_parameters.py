"""The parameters of what is recorded of a run."""

from __future__ import annotations

from seq_harness.settings.parameter import Kind, Parameter

RECORD = (
    Parameter(
        'record', Kind.STRING, '', 'A file for an exact record of the run, an MCAP; where it is '
        'there already, one with a number beside it. Empty for none.',
    ),
    Parameter(
        'record_images', Kind.STRING, 'acts', 'What is recorded of images: nothing but that they '
        'came, the frames that acts sent, or every frame that a round saw as well.',
        choices=('none', 'acts', 'all'),
    ),
)  # fmt: skip
