"""Layers from a parameter: known and placed, or refused before anything moves."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from seq_harness.contract import Actions, Observations, WorkerDeclaration
from seq_harness.pipeline import DeclarationRefused, Pipeline
from seq_harness.playback.codec_parts import CodecRefused
from seq_harness.playback.layers import Misplaced
from seq_harness.playback.registry import PipelineRefused
from support.robots import Bench, settings_of

PLAYER = {'layer': 'player', 'version': 1}


def layer(name: str, **args: Any) -> dict[str, Any]:
    return {'layer': name, 'version': 1, 'args': args}


def declared(**streams: Any) -> WorkerDeclaration:
    observations = Observations.model_validate({'streams': streams}) if streams else None
    return WorkerDeclaration(instance='one', actions=Actions(hz=10), observations=observations)


def pipeline(*layers: dict[str, Any], declaration: WorkerDeclaration | None = None) -> Pipeline:
    settings = settings_of(layers=json.dumps(layers))
    return Pipeline(settings, declaration or declared())


DEGREES = layer('units', channels=['arm'], keys=['state'], policy='deg', robot='rad')


def test_without_layers_the_player_stands_alone() -> None:
    assert Pipeline(settings_of(), declared()).layers.names == ('player',)


def test_a_policy_in_degrees_moves_a_robot_in_radians() -> None:
    bench = Bench(layers=json.dumps([PLAYER, DEGREES]))
    seen: list[Any] = []

    def infer(step: Any, plan: Any = None) -> Any:
        seen.append(step.observation['state'])
        return np.array([[9.0, 18.0]])

    bench.scope.infer = infer  # type: ignore[method-assign]
    bench.state((0.1, 0.2))
    bench.harness.start()
    bench.harness.round()
    bench.answers[-1].give(bench.works[-1]())
    bench.clock.now += 1
    bench.harness.round()
    assert seen[0].tolist() == pytest.approx(np.rad2deg([0.1, 0.2]), rel=1e-5)
    assert bench.sent[0][1] == pytest.approx(np.deg2rad([9.0, 18.0]))


def test_what_the_policy_reads_is_checked_behind_the_layers() -> None:
    rename = layer('rename', keys={'state': 'proprio'})
    reads = declared(proprio={})
    assert sorted(pipeline(PLAYER, rename, declaration=reads).blank('go')) == ['prompt', 'proprio']
    with pytest.raises(DeclarationRefused, match=r"reads the keys \['proprio'\]"):
        pipeline(PLAYER, declaration=reads)


def test_a_declared_camera_is_fitted_behind_a_new_name() -> None:
    camera = {'width': 8, 'height': 6, 'codec': 'raw'}
    settings = settings_of(
        input_names=['state', 'front'],
        inputs__front__topic='image',
        inputs__front__type='image',
        layers=json.dumps([PLAYER, layer('rename', keys={'front': 'image_0'})]),
    )
    made = Pipeline(settings, declared(image_0={'camera': camera}))
    assert made.blank('go')['image_0'].shape == (6, 8, 3)


@pytest.mark.parametrize(
    ('layers', 'error', 'reason'),
    [
        ([PLAYER, layer('unit')], PipelineRefused, 'known:'),
        ([DEGREES, PLAYER], Misplaced, 'put it below the player'),
        ([PLAYER, layer('stop_on_fault')], Misplaced, 'put it above the player'),
        ([DEGREES], PipelineRefused, 'where the player stands'),
        ([PLAYER, layer('rename', keys={'wrist': 'x'})], CodecRefused, r"\['wrist'\]"),
    ],
)
def test_wrong_layers_fail_before_anything_moves(
    layers: list[dict[str, Any]], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=f"^(parameter 'layers': |layer 'rename').*{reason}"):
        pipeline(*layers)


def test_r50_a_manual_command_passes_the_guard_of_the_settings() -> None:
    bench = Bench()
    bench.state((0.0, 0.0))
    observation = bench.pipeline.spec.observe(bench.inputs.snapshot(), bench.clock.now, '')
    hand = bench.pipeline.by_hand()
    commands = {'arm': np.array([0.1, 0.1])}
    assert hand.check(commands, observation, bench.clock.now) == commands
    with pytest.raises(ValueError, match='beyond'):
        hand.check({'arm': np.array([0.9, 0.9])}, observation, bench.clock.now + 1)
