"""A pipeline as plain data: what is unknown fails before anything moves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from seq_harness.playback.asking import Drain
from seq_harness.playback.codecs import Scale
from seq_harness.playback.handoff import ArriveAtStart
from seq_harness.playback.layers import Layers, Misplaced, PlayerLayer
from seq_harness.playback.player import ChunkPlayer
from seq_harness.playback.registry import from_json, known, PipelineRefused, REGISTRY, resolve
from seq_harness.playback.scope import stepped
from seq_harness.playback.uplink import Step
from support.uplinks import HandUplink

ROBOT = PlayerLayer(lambda uplink: ChunkPlayer(uplink, asking=Drain(), handoff=ArriveAtStart()))
PLAYER = {'layer': 'player', 'version': 1}


def layer(name: str, version: Any = 1, **args: Any) -> dict[str, Any]:
    return {'layer': name, 'version': version, 'args': args}


UNITS = layer('units', channels=['arm'], policy='deg', robot='rad')
FRAME = layer('frame_change', channels=['tool'], form='rpy', transform=[0, 0, 0, 0, 0, 0, 1])


def test_a_pipeline_is_read_from_a_parameter_and_made_from_top_to_bottom() -> None:
    data = [layer('stop_on_fault', on_recovery='hold'), PLAYER, UNITS]
    layers = resolve(from_json(json.dumps(data)), ROBOT)
    assert layers.names == ('stop_on_fault', 'player', 'units')
    session, player = layers.open_session(HandUplink())
    assert session is not player
    infer = layers.wrap_infer(stepped(lambda seen: {'arm': [180.0]}))
    assert infer(Step(0, 0, {}))['arm'].tolist() == [pytest.approx(3.14159265)]


def test_no_layers_are_the_player_alone() -> None:
    assert resolve(from_json(''), ROBOT).names == ('player',)
    assert resolve([], ROBOT, declared=[UNITS]).names == ('player', 'units')


EXAMPLES = [
    layer('frame_change', channels=['t'], form='rpy', transform=[0, 0, 0, 0, 0, 0, 1]),
    layer('gripper_map', channels=['g'], policy=[0, 1], robot=[1, 0], clip=True),
    layer('join', key='state', of=['a', 'b']),
    layer('pose_form', keys=['pose'], policy='rpy', robot='quat_wxyz'),
    layer('rename', channels={'a': 'b'}),
    layer('scale', channels=['a'], factor=-1),
    layer('select', keys=['a']),
    layer('split', channel='a', into={'b': [0], 'c': [1, 2]}),
    UNITS,
]


def test_every_known_layer_can_be_made_from_data() -> None:
    for item in EXAMPLES:
        assert resolve([PLAYER, item], ROBOT).names == ('player', item['layer'])
    above = layer('stop_on_fault', keys=['left'], available=['ok'], unavailable=['off'])
    assert resolve([above, PLAYER], ROBOT).names == ('stop_on_fault', 'player')
    assert {(item['layer'], 1) for item in [*EXAMPLES, above]} == set(REGISTRY)


REFUSED: list[tuple[Any, str]] = [
    (layer('unit'), r"layer 1 names the layer 'unit'; known: \['frame_change', .*'units'\]"),
    ({'version': 1}, 'names the layer None'),
    ({'layer': ['units'], 'version': 1}, r"names the layer \['units'\]"),
    (layer('units', 2), r'layer 1 \(units\) has the version 2; known: \[1\]'),
    (layer('units', None), 'has the version None; known'),
    (layer('units', True), 'has the version True'),
    (layer('units', '1'), "has the version '1'"),
    (layer('units', from_='deg'), r"has the arguments \['from_'\]; known: \['channels', 'keys'"),
    (layer('units', channels=['a'], policy='deg'), r"lacks the arguments \['robot'\]"),
    (layer('units', channels=['a'], policy='deg', robot='stone'), r"\(units\): .*got 'stone'"),
    (layer('units', channels=3, policy='deg', robot='rad'), r'layer 1 \(units\): '),
    (layer('split', channel='a', into=[1]), r'layer 1 \(split\): '),
    (layer('gripper_map', channels=['g'], policy=None, robot=[0, 1]), r'\(gripper_map\): '),
    ({'layer': 'units', 'version': 1, 'arg': {}}, r"has the keys \['arg'\]; known: \['layer'"),
    ({'layer': 'units', 'version': 1, 'args': [1]}, 'args must map names to values'),
    ('units', 'layer 1 must be a map'),
    (None, 'layer 1 must be a map'),
]


@pytest.mark.parametrize(('item', 'reason'), REFUSED)
def test_what_is_unknown_is_refused_by_its_place_and_with_what_is_known(
    item: Any, reason: str
) -> None:
    with pytest.raises(PipelineRefused, match=reason):
        resolve([PLAYER, item], ROBOT)


@pytest.mark.parametrize(
    ('item', 'reason'),
    [
        (layer('stop_on_fault', on_recovery='go'), r"one of \['replan', 'hold', 'resume'\], got"),
        (layer('stop_on_fault', keys='status'), 'keys must be a list of names'),
        (layer('stop_on_fault', available=[1]), 'available must be a list of names'),
    ],
)
def test_a_fault_guard_of_unknown_options_is_refused(item: Any, reason: str) -> None:
    with pytest.raises(PipelineRefused, match=reason):
        resolve([item, PLAYER], ROBOT)


def test_a_player_is_placed_once_and_takes_no_arguments() -> None:
    with pytest.raises(PipelineRefused, match='does not say where the player stands'):
        resolve([UNITS], ROBOT)
    with pytest.raises(PipelineRefused, match='it takes none'):
        resolve([{**PLAYER, 'args': {'fps': 10}}], ROBOT)
    with pytest.raises(Misplaced, match='two players'):
        resolve([PLAYER, PLAYER], ROBOT)


def test_what_the_robot_puts_below_its_player_comes_with_it() -> None:
    robot = Layers(ROBOT, Scale(['arm'], factor=2, name='absolute'))
    assert resolve([PLAYER, UNITS], robot).names == ('player', 'absolute', 'units')
    assert resolve([], robot).names == ('player', 'absolute')


def test_r73_placement_is_checked_of_data_too() -> None:
    with pytest.raises(Misplaced, match=r"'units'.*below the player"):
        resolve([UNITS, PLAYER], ROBOT)
    with pytest.raises(Misplaced, match=r"'stop_on_fault'.*above the player"):
        resolve([PLAYER, layer('stop_on_fault')], ROBOT)


def test_a_server_may_declare_layers_below_the_player_only() -> None:
    assert resolve([PLAYER], ROBOT, declared=[UNITS]).names == ('player', 'units')
    for item in (layer('stop_on_fault'), PLAYER):
        with pytest.raises(PipelineRefused, match=r'declared layer 0 is .*below the player only'):
            resolve([PLAYER], ROBOT, declared=[item])


def test_r75_two_frame_changes_are_refused_whoever_declares_them() -> None:
    with pytest.raises(Misplaced, match='more than once'):
        resolve([PLAYER, FRAME], ROBOT, declared=[FRAME])
    with pytest.raises(Misplaced, match='on the far side'):
        resolve([PLAYER, FRAME], ROBOT, frames_elsewhere=['server'])


@pytest.mark.parametrize('text', ['{', '{}', '3', '"units"'])
def test_text_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(PipelineRefused, match='must be a JSON list of layers'):
        from_json(text)


def test_what_is_known_is_listed_with_its_versions() -> None:
    assert known()['units'] == [1]
    assert known()['player'] == [1]
