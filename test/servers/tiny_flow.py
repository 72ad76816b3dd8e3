"""A policy of LeRobot's kind that flows to a row of its state, with real-time chunking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.pretrained import PreTrainedPolicy
from lerobot.policies.rtc.configuration_rtc import RTCConfig
from lerobot.policies.rtc.modeling_rtc import RTCProcessor
from seq_harness.worker.policies.lerobot import LeRobot
import torch

STEPS = 10


@PreTrainedConfig.register_subclass('tiny_flow')
@dataclass
class TinyFlowConfig(PreTrainedConfig):  # type: ignore[misc]
    chunk_size: int = 12
    n_action_steps: int = 12
    rtc_config: RTCConfig | None = None

    observation_delta_indices = None
    action_delta_indices = None
    reward_delta_indices = None

    def get_optimizer_preset(self) -> Any:
        raise NotImplementedError

    def get_scheduler_preset(self) -> None:
        return None

    def validate_features(self) -> None:
        return None


class TinyFlowPolicy(PreTrainedPolicy):  # type: ignore[misc]
    config_class = TinyFlowConfig
    name = 'tiny_flow'

    def __init__(self, config: TinyFlowConfig, **_: Any) -> None:
        super().__init__(config)
        self.gain = torch.nn.Parameter(torch.ones(1))
        self.rtc = None if config.rtc_config is None else RTCProcessor(config.rtc_config)

    def predict_action_chunk(
        self,
        batch: dict[str, Any],
        inference_delay: int | None = None,
        prev_chunk_left_over: Any = None,
        execution_horizon: int | None = None,
    ) -> Any:
        """Go from noise to the state, the same in every row."""
        assert [type(task) for task in batch['task']] == [str]
        goal = self.gain * batch['observation.state'][:, None, :]
        x = torch.randn(1, self.config.chunk_size, goal.shape[-1])
        for step in range(STEPS):
            time = 1.0 - step / STEPS
            x = (
                x
                - self._velocity(
                    x, goal, time, inference_delay, prev_chunk_left_over, execution_horizon
                )
                / STEPS
            )
        return x

    def _velocity(
        self, x: Any, goal: Any, time: float, delay: Any, left: Any, horizon: Any
    ) -> Any:
        def field(x: Any) -> Any:
            return (x - goal) / time

        if self.rtc is None:
            return field(x)
        return self.rtc.denoise_step(x, left, delay, time, field, horizon)

    def get_optim_params(self) -> dict[str, Any]:
        raise NotImplementedError

    def reset(self) -> None:
        return None

    def forward(self, batch: dict[str, Any]) -> Any:
        raise NotImplementedError

    def select_action(self, batch: dict[str, Any], **_: Any) -> Any:
        raise NotImplementedError


class Flow(LeRobot):
    """Serve one; importing this module is what makes LeRobot know its kind."""
