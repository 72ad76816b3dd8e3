"""Descriptions of a robot in which preflight looks for hardware layers."""

from __future__ import annotations

import pytest
from seq_harness.ros.preflight_hardware import layers_by_topics


@pytest.mark.parametrize(
    'text',
    ['', '\0', '\ud800', '<a>' * 100_000, '<a/><b/>', '<ros2_control/>' * 2],
    ids=lambda text: ascii(text[:20]),
)
def test_what_is_no_description_names_no_hardware_layer(text: str) -> None:
    assert layers_by_topics(text) == {}
