"""A policy of LeRobot's, loaded from its files; torch and lerobot are imported here alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.worker.declaration import PolicyRefused

CONFIG, WEIGHTS = 'config.json', 'model.safetensors'
BEFORE, AFTER = 'policy_preprocessor.json', 'policy_postprocessor.json'
FILES = (CONFIG, WEIGHTS, BEFORE, AFTER)
"""What a folder of LeRobot 0.4 or newer holds; weights in any other form are not read."""

PATTERNS = ('*.json', '*.safetensors')
"""What is fetched of a repository."""

ACTION, TASK, IMAGES = 'action', 'task', 'observation.images'

DEVICE_STEP = 'device_processor'

WITHOUT_TASK = frozenset({'act', 'diffusion', 'sac', 'tdmpc', 'vqbet'})
"""The policies of LeRobot that read no text."""

REMEMBERING = frozenset({'diffusion', 'vqbet'})
"""Those that read the last `n_obs_steps` observations, out of queues of their own."""

WITHOUT_CHUNKS = frozenset({'sac', 'tdmpc'})
"""Those that answer one row at a time."""

SCHEDULES = ('ZEROS', 'ONES', 'LINEAR', 'EXP')
"""LeRobot's schedules of real-time chunking."""

Row = NDArray[np.float32]


@dataclass(frozen=True)
class Guidance:
    """How strongly a chunk is held to the rows that it goes on from."""

    schedule: str
    """How the weight falls from row to row: one of `SCHEDULES`."""
    max_weight: float
    """The most that a step of the inference is turned towards them."""
    execution_horizon: int
    """The row from which on they weigh nothing; at least the delay."""


@dataclass(frozen=True)
class Prefix:
    """What real-time chunking goes on from."""

    rows: Row
    """The rows that will still be executed [n, D], from the new chunk's first on."""
    delay_rows: int
    """How many of them are over once the chunk arrives."""
    guidance: Guidance


class Model:
    """One loaded policy with what LeRobot runs before and after it."""

    def __init__(self, source: str, revision: str | None, device: str | None) -> None:
        """
        Load a folder, or what a repository of this name on the hub holds.

        Raises
        ------
        TransportError
            torch or lerobot cannot be imported (`dependency_missing`).
        PolicyRefused
            What is there is no policy that can be served.

        """
        folder = _folder(source, revision)
        steps = _step_names(folder)
        self._torch = _imported('torch')
        self._populate = _imported('lerobot.policies.utils').populate_queues
        configs = _imported('lerobot.configs.policies')
        factory = _imported('lerobot.policies.factory')
        _register_plugins()
        self.config: Any = configs.PreTrainedConfig.from_pretrained(folder)
        if device is not None:
            self.config.device = device
        self._check_config()
        self.rtc = self._enable_rtc()
        self._policy: Any = _weights(factory.get_policy_class(self.config.type), folder, self)
        self._before, self._after = factory.make_pre_post_processors(
            self.config,
            pretrained_path=str(folder),
            preprocessor_overrides={
                name: {'device': self.config.device} for name in steps if name == DEVICE_STEP
            },
        )

    @property
    def steps(self) -> int:
        """How many observations in a row an answer is made of."""
        return int(self.config.n_obs_steps)

    @property
    def reads_task(self) -> bool:
        """Whether the policy is told what to do in words."""
        return self.config.type not in WITHOUT_TASK

    @property
    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return the kind and the shape of each feature that is read, by LeRobot's key."""
        features = self.config.input_features or {}
        return {key: (f.type.value, tuple(f.shape)) for key, f in features.items()}

    @property
    def width(self) -> int:
        """Return how many columns a row has."""
        return int(self.config.action_feature.shape[0])

    def chunk(
        self,
        window: Sequence[Mapping[str, Any]],
        task: str | None,
        seed: int | None = None,
        prefix: Prefix | None = None,
    ) -> Row:
        """
        Return the rows [n, D] in the robot's units that the policy answers.

        `window` holds observations, the newest last, as float32 arrays by LeRobot's keys, images
        [3, h, w] in 0..1.
        """
        if seed is not None:
            self._torch.manual_seed(seed)
        if self.config.type in REMEMBERING:
            self._policy.reset()
        with self._torch.no_grad():
            for features in window:
                batch = self._moved(self._before(self._batch(features, task, prefix)))
                # The step that made the policy's units of its training actions made them here.
                still = batch.pop(ACTION, None)
                if self.config.type in REMEMBERING:
                    batch = self._remembered(batch)
            guided = self._guided(still, prefix) if prefix is not None else {}
            rows = self._after(self._policy.predict_action_chunk(batch, **guided)[0])
        return np.asarray(rows.cpu().numpy(), np.float32)

    def _batch(
        self, features: Mapping[str, Any], task: str | None, prefix: Prefix | None
    ) -> dict[str, Any]:
        batch: dict[str, Any] = {key: self._torch.from_numpy(x) for key, x in features.items()}
        if task is not None:
            batch[TASK] = task
        if prefix is not None:
            batch[ACTION] = self._torch.from_numpy(prefix.rows[None])
        return batch

    def _moved(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Move to the policy's device what no step of its own moved there."""
        device, kind = self.config.device, self._torch.Tensor
        return {key: x.to(device) if isinstance(x, kind) else x for key, x in batch.items()}

    def _remembered(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Put a step into the policy's queues, as its `select_action` would."""
        if self.config.image_features:
            views = [batch[key] for key in self.config.image_features]
            batch = {**batch, IMAGES: self._torch.stack(views, dim=-4)}
        self._populate(self._policy._queues, batch)
        return batch

    def _guided(self, still: Any, prefix: Prefix) -> dict[str, Any]:
        self._guide(prefix.guidance)
        most = getattr(self.config, 'chunk_size', still.shape[1])
        return {
            'prev_chunk_left_over': still[:, :most],
            'inference_delay': prefix.delay_rows,
            'execution_horizon': max(prefix.guidance.execution_horizon, prefix.delay_rows),
        }

    @property
    def guidance(self) -> Guidance:
        """Return what the policy's own configuration says of real-time chunking."""
        of = self.config.rtc_config
        schedule = str(of.prefix_attention_schedule.value)
        return Guidance(schedule, float(of.max_guidance_weight), int(of.execution_horizon))

    def _guide(self, guidance: Guidance) -> None:
        """Let the next inference go by these settings; LeRobot reads them at each of its steps."""
        of = self.config.rtc_config
        of.prefix_attention_schedule = type(of.prefix_attention_schedule)(guidance.schedule)
        of.max_guidance_weight = guidance.max_weight

    def _check_config(self) -> None:
        config = self.config
        if getattr(config, 'use_peft', False):
            raise PolicyRefused('the policy is an adapter: merge it into its base policy first')
        if config.type in WITHOUT_CHUNKS:
            raise PolicyRefused(f'a policy of type {config.type} answers no chunks')
        if config.n_obs_steps != 1 and config.type not in REMEMBERING:
            raise PolicyRefused(
                f'the policy reads {config.n_obs_steps} observations at a time, which is known of '
                f'{", ".join(sorted(REMEMBERING))} alone; this one is of type {config.type}'
            )
        if config.action_feature is None or len(config.action_feature.shape) != 1:
            raise PolicyRefused(
                f'the policy answers {config.output_features}; one vector {ACTION!r} is served'
            )
        if hasattr(config, 'pretrained_backbone_weights'):
            # The weights are in the file; these would be fetched, as a pickle, and overwritten.
            config.pretrained_backbone_weights = None

    def _enable_rtc(self) -> bool:
        """Let the policy take a prefix, where it can; without one it answers as ever."""
        if not hasattr(self.config, 'rtc_config') or self.config.type == 'pi0_fast':
            return False
        rtc = _imported('lerobot.policies.rtc.configuration_rtc')
        self.config.rtc_config = self.config.rtc_config or rtc.RTCConfig()
        self.config.rtc_config.enabled = True
        return True


def _weights(kind: Any, folder: Path, model: Model) -> Any:
    """Load the policy; weights that do not fit are refused, where LeRobot would only warn."""
    try:
        return kind.from_pretrained(folder, config=model.config, strict=True)
    except RuntimeError as error:
        told = ' '.join(str(error).split())[:500]
        raise PolicyRefused(
            f'{folder / WEIGHTS} is not of the policy in {CONFIG}: {told}'
        ) from error


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TransportError(
            ErrorCode.DEPENDENCY_MISSING,
            f"LeRobot's policies need torch and lerobot 0.4 or newer, and {module} cannot be "
            f"imported ({error}): install them in the worker's environment, 'pip install lerobot'",
        ) from error


def _register_plugins() -> None:
    """Let installed packages add their policies, as LeRobot's own commands do."""
    register = getattr(
        _imported('lerobot.utils.import_utils'), 'register_third_party_plugins', None
    )
    if register is not None:
        register()


def _folder(source: str, revision: str | None) -> Path:
    """Return the folder that holds the policy, fetched from the hub if it is none."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return _checked(folder)
    if folder.is_absolute() or source.startswith('.'):
        raise PolicyRefused(f'there is no folder {source}')
    hub = _imported('huggingface_hub')
    try:
        fetched = hub.snapshot_download(source, revision=revision, allow_patterns=list(PATTERNS))
    except (OSError, ValueError) as error:
        raise PolicyRefused(
            f'{source} is no folder, and cannot be had from the hub: {error}'
        ) from error
    return _checked(Path(fetched))


def _checked(folder: Path) -> Path:
    there = sorted(path.name for path in folder.iterdir())
    missing = [name for name in FILES if name not in there]
    if not missing:
        return folder
    told = f'{folder} holds {_short(there)}; {", ".join(missing)} were expected'
    if CONFIG in there and WEIGHTS in there:
        raise PolicyRefused(
            f'{told}: what LeRobot saved before 0.4 is converted by '
            f'python -m lerobot.processor.migrate_policy_normalization --pretrained-path {folder}'
        )
    raise PolicyRefused(f'{told}, as LeRobot saves a policy')


def _step_names(folder: Path) -> list[str]:
    """
    Return the names of the steps before the policy.

    A step that names a class to import is refused: a file of settings could run any code so.
    """
    before, _ = ([*_read_steps(folder / name)] for name in (BEFORE, AFTER))
    return before


def _read_steps(path: Path) -> Iterator[str]:
    try:
        steps = json.loads(path.read_text(encoding='utf-8'))['steps']
        named = [step.get('registry_name') for step in steps]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PolicyRefused(f'{path} is no list of steps: {error!r}') from error
    for name in named:
        if not isinstance(name, str):
            raise PolicyRefused(
                f'{path} names a class to import; steps that LeRobot registers were expected'
            )
        yield name


def _short(names: Iterable[str]) -> str:
    return ', '.join(names)[:300] or 'nothing'
