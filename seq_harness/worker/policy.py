"""A policy as a worker sees it: any object with `infer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import inspect
from typing import Any

from seq_harness.contract.episode import Episode
from seq_harness.worker.declaration import Declaration, PolicyRefused, read_declaration

LOAD_S = 10.0
"""How long a policy that does not say is expected to load."""

OPTIONAL = ('seed', 'params', 'episode', 'plan', 'embodiment')
"""What `infer` is given by keyword where its signature names it."""


class Policy:
    """
    Call a policy's methods with what their signatures ask for.

    `served` is the object, or its class, which is then called with `arguments` when it is loaded.
    The object has `infer(inputs, ...)` and may have `load()`, `warmup()`, `observe(inputs, ...)`,
    `episode_start(...)` and `episode_end(...)`; the last three are given the episode where they
    take it. All of them are called on the policy's own thread.
    """

    def __init__(self, served: Any, arguments: Mapping[str, Any] | None = None) -> None:
        self._served = served
        self._arguments = dict(arguments or {})
        self.takes: frozenset[str] = frozenset()
        self.declaration: Declaration

    def load(self) -> Declaration:
        """
        Make the object where a class was given, load it, warm it up, and read its declaration.

        Raises
        ------
        PolicyRefused
            It cannot be served as it is.
        Exception
            Whatever its own code raises.

        """
        if inspect.isclass(self._served):
            self._served = self._served(**self._arguments)
        self._check_infer()
        for name in ('load', 'warmup'):
            if (step := self._method(name)) is not None:
                step()
        self.takes = _named(self._served.infer, OPTIONAL)
        self.declaration = read_declaration(self._served, 'params' in self.takes)
        return self.declaration

    @property
    def name(self) -> str | None:
        """Return the name that the policy gives itself, if it does."""
        said = getattr(self._served, 'name', None)
        return said if isinstance(said, str) else None

    @property
    def load_s(self) -> float:
        """How long the policy expects to load, by its attribute `load_s`."""
        said = getattr(self._served, 'load_s', None)
        return float(said) if isinstance(said, (int, float)) else LOAD_S

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return what the policy tells clients of openpi's wire, by its attribute `metadata`."""
        said = getattr(self._served, 'metadata', None)
        return said if isinstance(said, Mapping) else {}

    @property
    def observes(self) -> bool:
        """Whether the policy is handed every observation that no act carries."""
        return self._method('observe') is not None

    @property
    def keeps_state(self) -> bool:
        """Whether an episode is lost with the process: said, or inferred from what it takes."""
        said = getattr(self._served, 'keeps_state', None)
        if isinstance(said, bool):
            return said
        starts = self._method('episode_start') is not None
        own = self.declaration.own_episodes
        return own or starts or self.observes or 'episode' in self.takes or self._is_fed()

    def infer(
        self,
        inputs: Any,
        *,
        seed: int | None,
        params: Mapping[str, Any],
        episode: Episode,
        plan: Mapping[str, Any] | None,
        embodiment: str | None,
    ) -> Any:
        """Run one inference; raise whatever the policy raises."""
        if not self.takes:
            return self._served.infer(inputs)
        offered = {
            'seed': seed,
            'params': dict(params),
            'episode': episode,
            'plan': plan,
            'embodiment': embodiment,
        }
        return self._served.infer(inputs, **{name: offered[name] for name in self.takes})

    def observe(self, inputs: Any, episode: Episode) -> None:
        """Hand over one observation that no act carries."""
        if (observe := self._method('observe')) is not None:
            _call_with_episode(observe, episode, inputs)

    def start(self, episode: Episode) -> None:
        """Tell the policy that an episode begins."""
        if (start := self._method('episode_start')) is not None:
            _call_with_episode(start, episode)

    def end(self, episode: Episode) -> None:
        """Tell the policy that an episode is over."""
        if (end := self._method('episode_end')) is not None:
            _call_with_episode(end, episode)

    @property
    def device(self) -> Any:
        """Return the device that the policy says its tensors belong on."""
        return getattr(self._served, 'device', None)

    def _method(self, name: str) -> Callable[..., Any] | None:
        method = getattr(self._served, name, None)
        return method if callable(method) else None

    def _check_infer(self) -> None:
        infer = self._method('infer')
        if infer is None:
            raise PolicyRefused(
                f'a {type(self._served).__name__} has no infer: a policy is an object with '
                'infer(inputs)'
            )
        if inspect.iscoroutinefunction(infer) or inspect.isgeneratorfunction(infer):
            raise PolicyRefused(
                'infer of the policy is a coroutine or a generator: it runs on a thread of its '
                'own, so make it a plain function'
            )

    def _is_fed(self) -> bool:
        observations = self.declaration.observations
        if observations is None:
            return False
        streams = (observations.streams or {}).values()
        return observations.every is not None or any(s.every is not None for s in streams)


def _named(call: Callable[..., Any], names: tuple[str, ...]) -> frozenset[str]:
    """Return which of `names` the call takes by keyword."""
    parameters = inspect.signature(call).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return frozenset(names)
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(p.name for p in parameters if p.kind in by_keyword and p.name in names)


def _call_with_episode(call: Callable[..., Any], episode: Episode, *arguments: Any) -> None:
    if _named(call, ('episode',)):
        call(*arguments, episode=episode)
    else:
        call(*arguments)
