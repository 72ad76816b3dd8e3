"""Save small policies with LeRobot, and ask one as LeRobot's own commands do."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from lerobot.configs.policies import PreTrainedConfig
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.diffusion.configuration_diffusion import DiffusionConfig
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
from lerobot.policies.pretrained import PreTrainedPolicy
from lerobot.policies.utils import prepare_observation_for_inference
from lerobot.processor import (
    AddBatchDimensionProcessorStep,
    NormalizerProcessorStep,
    PolicyProcessorPipeline,
    UnnormalizerProcessorStep,
)
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action
import numpy as np
from servers.tiny_flow import TinyFlowConfig
import torch

JOINTS = 3
SIZE = (96, 128)
STATE, FRONT, ACTION = 'observation.state', 'observation.images.front', 'action'
INPUTS = {
    FRONT: PolicyFeature(FeatureType.VISUAL, (3, *SIZE)),
    STATE: PolicyFeature(FeatureType.STATE, (JOINTS,)),
}
OUTPUTS = {ACTION: PolicyFeature(FeatureType.ACTION, (JOINTS,))}
STATISTICS = {
    FRONT: {'mean': torch.full((3, 1, 1), 0.5), 'std': torch.full((3, 1, 1), 0.25)},
    STATE: {'mean': torch.tensor([1.0, 2.0, 3.0]), 'std': torch.tensor([0.5, 1.0, 2.0])},
    ACTION: {'mean': torch.tensor([1.0, 2.0, 3.0]), 'std': torch.tensor([0.5, 1.0, 2.0])},
}
RANGES = {key: {**s, 'min': s['mean'] - 2, 'max': s['mean'] + 2} for key, s in STATISTICS.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=[*CONFIGS, 'answer'])
    parser.add_argument('folder', type=Path)
    parser.add_argument('--observations', type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.what == 'answer':
        print(json.dumps(answer(options.folder, np.load(options.observations))))
    else:
        save(CONFIGS[options.what](), options.folder)


def act() -> Any:
    return ACTConfig(
        input_features=INPUTS,
        output_features=OUTPUTS,
        device='cpu',
        chunk_size=12,
        n_action_steps=8,
        dim_model=32,
        n_heads=2,
        dim_feedforward=32,
        n_encoder_layers=1,
        n_vae_encoder_layers=1,
        pretrained_backbone_weights=None,
    )


def diffusion() -> Any:
    return DiffusionConfig(
        input_features=INPUTS,
        output_features=OUTPUTS,
        device='cpu',
        n_obs_steps=2,
        horizon=8,
        n_action_steps=4,
        down_dims=(16, 32),
        n_groups=4,
        num_train_timesteps=4,
        spatial_softmax_num_keypoints=4,
        crop_shape=None,
        diffusion_step_embed_dim=16,
    )


def flow() -> Any:
    inputs = {STATE: INPUTS[STATE]}
    return TinyFlowConfig(input_features=inputs, output_features=OUTPUTS, device='cpu')


CONFIGS = {'act': act, 'diffusion': diffusion, 'flow': flow}


def save(config: Any, folder: Path) -> None:
    """Save a policy of random weights and its processors, as a training run does."""
    get_policy_class(config.type)(config).save_pretrained(folder)
    made = _own(config) if isinstance(config, TinyFlowConfig) else None
    for processor in made or make_pre_post_processors(config, dataset_stats=RANGES):
        processor.save_pretrained(folder)


def _own(config: Any) -> tuple[Any, Any]:
    features = {**config.input_features, **config.output_features}
    modes = {'STATE': 'MEAN_STD', 'ACTION': 'MEAN_STD'}
    normalizer = NormalizerProcessorStep(features, modes, STATISTICS)
    unnormalizer = UnnormalizerProcessorStep(config.output_features, modes, STATISTICS)
    return (
        PolicyProcessorPipeline(
            steps=[AddBatchDimensionProcessorStep(), normalizer], name='policy_preprocessor'
        ),
        PolicyProcessorPipeline(
            steps=[unnormalizer],
            name='policy_postprocessor',
            to_transition=policy_action_to_transition,
            to_output=transition_to_policy_action,
        ),
    )


def answer(folder: Path, observations: Any) -> list[list[float]]:
    """Return the rows that `select_action` gives for the last observation, one after another."""
    config = PreTrainedConfig.from_pretrained(folder)
    policy: PreTrainedPolicy = get_policy_class(config.type).from_pretrained(folder, config=config)
    before, after = make_pre_post_processors(config, pretrained_path=str(folder))
    rows: list[list[float]] = []
    count = len(observations['state'])
    for number in [*range(count), *[count - 1] * (config.n_action_steps - 1)]:
        if number == count - 1 and not rows:
            policy_queue(policy).clear()
            torch.manual_seed(7)
        observation = {
            FRONT: observations['front'][number],
            STATE: observations['state'][number],
        }
        batch = before(prepare_observation_for_inference(observation, torch.device('cpu')))
        row = after(policy.select_action(batch))
        if number == count - 1:
            rows.append(row[0].tolist())
    return rows


def policy_queue(policy: Any) -> Any:
    """Return what is left of the policy's chunk."""
    return policy._action_queue if hasattr(policy, '_action_queue') else policy._queues[ACTION]


if __name__ == '__main__':
    main()
