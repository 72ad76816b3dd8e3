"""What follows a harness by its topics, where anybody may publish."""

from __future__ import annotations

import json

import pytest
from seq_harness.cli.live import line, table
from seq_harness.ros.node import LATCHED
from seq_harness.ros.watcher import Watcher
from std_msgs.msg import String
from support.waiting import PATIENCE_S

GOOD = {'ready': True, 'state': 'running', 'episode': 3, 'reason': '', 'steps': 5}
STRANGE = [
    '',
    'null',
    '[1]',
    '[' * 100_000,
    '{"ready": "yes"}',
    '{"state": 3}',
    '{"reason": null}',
    '{"rows": [1, 2]}',
    '{"policy": "none"}',
]


def test_what_is_no_report_of_an_episode_is_left_out() -> None:
    with Watcher() as watcher:
        publisher = watcher.node.create_publisher(String, '/harness/episode', LATCHED)

        publisher.publish(String(data=json.dumps(GOOD)))
        watcher.wait(lambda: watcher.figures == GOOD, PATIENCE_S, 'the report', nothing)
        for text in STRANGE:
            publisher.publish(String(data=text))
            looks = iter([False] * 5 + [True])
            watcher.wait(looks.__next__, PATIENCE_S, 'some looks', nothing)
            assert watcher.figures == GOOD
        better = {**GOOD, 'steps': 6}
        publisher.publish(String(data=json.dumps(better)))
        watcher.wait(lambda: watcher.figures == better, PATIENCE_S, 'a report', nothing)


def nothing() -> None:
    """Do nothing between two looks."""


@pytest.mark.parametrize(
    'figures',
    [
        {'steps': 1.5, 'rows': {'held': 'x', 'dropped': [3]}, 'lateness_ms': 7},
        {'steps': None, 'rows': {'dropped': None}, 'episode_s': 'long', 'reason': 3},
        {'steps': [1], 'target_distance_m': {}, 'targets_reached': 'many'},
    ],
)
def test_figures_of_another_kind_are_shown_as_dashes(figures: dict[str, object]) -> None:
    assert line(figures).startswith('step -  held -  act - ms')
    assert table(figures).startswith('ended by')
