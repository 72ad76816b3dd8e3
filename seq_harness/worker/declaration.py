"""What a policy object declares of itself, read from its attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from seq_harness.contract.arm import ActionContract, Embodiment, ObservationContract
from seq_harness.contract.limits import MAX_IO_LENGTH
from seq_harness.contract.obs_schedule import check_reach, of, Schedule
from seq_harness.contract.own_io import Actions, check_own_io, Observations, Tensors
from seq_harness.contract.params import InferParam

M = TypeVar('M', bound=BaseModel)

OWN_EPISODES = 'own'
"""The policy holds one episode's state on itself, so it serves one episode at a time."""


class PolicyRefused(ValueError):
    """A policy that cannot be served as it is; says what to change."""


@dataclass(frozen=True)
class Declaration:
    """What a policy declares; every part is optional."""

    io: str | None
    observations: Observations | None
    actions: Actions | None
    tensors: Tensors | None
    action: ActionContract | None
    observation: ObservationContract | None
    embodiment: str | None
    embodiments: dict[str, Embodiment] | None
    columns: list[str] | None
    params: dict[str, InferParam]
    own_episodes: bool

    @property
    def hz(self) -> float | None:
        """Return the rows a second that the policy declares, if it does."""
        if self.actions is not None and self.actions.hz is not None:
            return self.actions.hz
        return self.action.control_frequency_hz if self.action is not None else None

    def schedule(self, most_frames: int) -> Schedule | None:
        """
        Return when the policy reads what, in steps.

        Raises
        ------
        PolicyRefused
            A count in seconds has no `hz` to convert it, or a window reaches back further than
            `most_frames` observations.

        """
        try:
            schedule = of(self.observations, self.hz)
            check_reach(schedule, most_frames)
        except ValueError as error:
            raise PolicyRefused(f'observations of the policy: {error}') from error
        return schedule


def read_declaration(policy: Any, takes_params: bool) -> Declaration:
    """
    Read what `policy` declares in its attributes.

    `params` is read only where `infer` takes it, for many a policy keeps its weights under that
    name.

    Raises
    ------
    PolicyRefused
        A declaration is not what its name promises, or two of them contradict each other.

    """
    declaration = Declaration(
        io=_text(policy, 'io', MAX_IO_LENGTH),
        observations=_model(policy, 'observations', Observations),
        actions=_model(policy, 'actions', Actions),
        tensors=_model(policy, 'tensors', Tensors),
        action=_model(policy, 'action', ActionContract),
        observation=_model(policy, 'observation', ObservationContract),
        embodiment=_text(policy, 'embodiment', 256),
        embodiments=_named_models(policy, 'embodiments', Embodiment),
        columns=_columns(policy),
        params=(_named_models(policy, 'params', InferParam) or {}) if takes_params else {},
        own_episodes=_own_episodes(policy),
    )
    try:
        check_own_io(declaration)
    except ValueError as error:
        raise PolicyRefused(str(error)) from error
    _check_bodies(declaration)
    return declaration


def _check_bodies(declaration: Declaration) -> None:
    """Refuse to declare the same of one body and of several, and a rate that is none."""
    several = declaration.embodiments or {}
    alone = [n for n in ('action', 'observation', 'embodiment') if getattr(declaration, n)]
    if several and alone:
        raise PolicyRefused(
            f'{", ".join(alone)} and embodiments were both declared: say it of each of the bodies '
            f'{sorted(several)}, or of the policy'
        )
    actions = [body.action for body in several.values()]
    for action in actions if declaration.action is None else [declaration.action]:
        if action.action_dim < 1 or not 0 < action.control_frequency_hz < float('inf'):
            raise PolicyRefused(
                f'the action of {action.robot!r} has action_dim={action.action_dim} and '
                f'control_frequency_hz={action.control_frequency_hz}: both must be above 0'
            )


def _attribute(policy: Any, name: str) -> Any:
    value = getattr(policy, name, None)
    return None if callable(value) and not isinstance(value, BaseModel) else value


def _model(policy: Any, name: str, model: type[M]) -> M | None:
    value = _attribute(policy, name)
    if value is None or isinstance(value, model):
        return value
    if not isinstance(value, Mapping):
        raise PolicyRefused(
            f'{name} of the policy is a {type(value).__name__}; {model.__name__} was expected'
        )
    return _validated(name, value, model)


def _named_models(policy: Any, attribute: str, model: type[M]) -> dict[str, M] | None:
    value = _attribute(policy, attribute)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise PolicyRefused(
            f'{attribute} of the policy is a {type(value).__name__}; a mapping of names to '
            f'{model.__name__} was expected'
        )
    return {
        str(name): item
        if isinstance(item, model)
        else _validated(f'{attribute}[{name!r}]', item, model)
        for name, item in value.items()
    }


def _validated(name: str, value: Any, model: type[M]) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise PolicyRefused(f'{name} of the policy is no {model.__name__}: {error}') from error


def _text(policy: Any, name: str, longest: int) -> str | None:
    value = _attribute(policy, name)
    if value is None or (isinstance(value, str) and len(value) <= longest):
        return value
    raise PolicyRefused(f'{name} of the policy must be text of at most {longest} characters')


def _columns(policy: Any) -> list[str] | None:
    value = _attribute(policy, 'columns')
    if value is None:
        return None
    named = isinstance(value, Sequence) and not isinstance(value, str)
    if not named or not all(isinstance(name, str) for name in value):
        raise PolicyRefused('columns of the policy must be a list of names')
    return list(value)


def _own_episodes(policy: Any) -> bool:
    episodes = _attribute(policy, 'episodes')
    streaming = getattr(policy, 'streaming', False) is True
    if isinstance(episodes, str) and episodes not in (OWN_EPISODES, 'shared'):
        raise PolicyRefused(f"episodes of the policy is {episodes!r}; 'own' or 'shared' was due")
    if streaming and episodes == 'shared':
        raise PolicyRefused("streaming=True means episodes='own', and the policy says 'shared'")
    return streaming or episodes == OWN_EPISODES
