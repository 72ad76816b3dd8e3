"""What a policy declares: episodes, parameters, time-outs, and one way of saying its inputs."""

from typing import Any

from pydantic import BaseModel, ValidationError
import pytest
from seq_harness.contract import (
    cast_params,
    DeploymentPolicy,
    Episode,
    InferParam,
    PolicySpec,
    SeqFlags,
    Timeouts,
)
from seq_harness.contract.episode import count_answered

ACTION = {
    'robot': 'arm',
    'action_space': 'joint_absolute',
    'action_dim': 2,
    'control_frequency_hz': 10,
}
FORMS: list[tuple[type[PolicySpec | DeploymentPolicy], dict[str, Any]]] = [
    (PolicySpec, {'name': 'p', 'gpu': 'any', 'image': {}}),
    (DeploymentPolicy, {'handler_ref': 'module:Policy'}),
]
each_form = pytest.mark.parametrize(('form', 'base'), FORMS, ids=['spec', 'deployment'])


@each_form
@pytest.mark.parametrize(
    ('given', 'episodes', 'streaming'),
    [
        ({}, None, False),
        ({'episodes': 'shared'}, 'shared', False),
        ({'episodes': 'own'}, 'own', True),
        ({'streaming': True}, 'own', True),
        ({'streaming': True, 'episodes': 'own'}, 'own', True),
        ({'streaming': False, 'episodes': 'own'}, 'own', True),
    ],
)
def test_streaming_is_an_older_word_for_own_episodes(
    form: Any, base: Any, given: Any, episodes: str | None, streaming: bool
) -> None:
    declared = form.model_validate({**base, **given})
    assert (declared.episodes, declared.streaming) == (episodes, streaming)
    assert 'streaming' not in declared.model_dump()
    assert form.model_validate(declared.model_dump(mode='json')) == declared


@each_form
def test_streaming_beside_shared_episodes_is_refused(form: Any, base: Any) -> None:
    with pytest.raises(ValidationError, match='streaming'):
        form.model_validate({**base, 'streaming': True, 'episodes': 'shared'})


@each_form
@pytest.mark.parametrize('own', ['observations', 'actions', 'tensors'])
@pytest.mark.parametrize(
    'arm',
    [{'action': ACTION}, {'observation': {}}, {'embodiments': {'left': {'action': ACTION}}}],
    ids=['action', 'observation', 'embodiments'],
)
def test_own_inputs_and_the_arm_contract_exclude_each_other(
    form: Any, base: Any, own: str, arm: Any
) -> None:
    form.model_validate({**base, own: {}, 'embodiments': {}})
    form.model_validate({**base, **arm})
    with pytest.raises(ValidationError, match=own):
        form.model_validate({**base, own: {}, **arm})


@each_form
@pytest.mark.parametrize(
    'given', [{'io': 'x' * 4001}, {'family': 'Not this'}, {'episodes': 'both'}, {'unknown': 1}]
)
def test_what_a_declaration_does_not_allow_is_refused(form: Any, base: Any, given: Any) -> None:
    with pytest.raises(ValidationError):
        form.model_validate({**base, **given})


@pytest.mark.parametrize(
    ('model', 'given'),
    [
        (Timeouts, {'request': 0, 'startup': 60}),
        (Timeouts, {'request': 3601, 'startup': 60}),
        (Timeouts, {'request': 1, 'startup': 59}),
        (Timeouts, {'request': 1, 'startup': 60, 'episode_idle': 9}),
        (Timeouts, {'request': 1, 'startup': 60, 'episode_idle': 86401}),
        (InferParam, {'type': 'list'}),
        (InferParam, {'type': 'str', 'min': 1}),
        (InferParam, {'type': 'bool', 'max': 1}),
        (InferParam, {'type': 'int', 'min': 2, 'max': 1}),
        (InferParam, {'type': 'int', 'default': 5, 'max': 4}),
        (InferParam, {'type': 'int', 'default': 1, 'min': 2}),
        (InferParam, {'type': 'int', 'default': 3, 'choices': [1, 2]}),
        (InferParam, {'type': 'int', 'choices': []}),
        (InferParam, {'type': 'int', 'choices': list(range(65))}),
        (DeploymentPolicy, {'handler_ref': 'x', 'params': {'a b': {'type': 'int'}}}),
        (DeploymentPolicy, {'handler_ref': 'x', 'params': {'_a': {'type': 'int'}}}),
        (
            DeploymentPolicy,
            {'handler_ref': 'x', 'params': {f'p{i}': {'type': 'int'} for i in range(33)}},
        ),
    ],
    ids=lambda value: f'{value!r:.60}' if isinstance(value, dict) else None,
)
def test_limits_of_time_outs_and_parameters_hold(
    model: type[BaseModel], given: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(given)


DECLARED = {
    'steps': InferParam(type='int', default=10, min=1, max=20),
    'scale': InferParam(type='float', min=0),
    'fast': InferParam(type='bool'),
    'mode': InferParam(type='str', choices=['a', 'b']),
}


def test_parameters_are_cast_and_defaults_filled() -> None:
    assert cast_params(DECLARED, None) == {'steps': 10}
    values = cast_params(DECLARED, {'steps': 2.0, 'scale': 1, 'fast': True, 'mode': 'b'})
    assert values == {'steps': 2, 'scale': 1.0, 'fast': True, 'mode': 'b'}
    assert [type(value) for value in values.values()] == [int, float, bool, str]


@pytest.mark.parametrize(
    'given',
    [
        {'steps': 0},
        {'steps': 21},
        {'steps': 1.5},
        {'steps': True},
        {'steps': '3'},
        {'steps': None},
        {'scale': float('nan')},
        {'scale': 10**400},
        {'fast': 1},
        {'mode': 'c'},
        {'other': 1},
    ],
)
def test_a_parameter_that_is_not_allowed_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        cast_params(DECLARED, given)


def test_an_episode_lets_a_policy_keep_state_and_nothing_else() -> None:
    episode = Episode('e-1')
    episode.state['seen'] = 3
    count_answered(episode)
    assert (episode.id, episode.steps, episode.state) == ('e-1', 1, {'seen': 3})
    for name in ('id', 'steps', 'seen'):
        with pytest.raises(AttributeError):
            setattr(episode, name, 1)


def test_the_bits_of_the_calls_are_those_of_the_wire() -> None:
    assert {flag.name: flag.value for flag in SeqFlags} == {
        'WARMUP': 1,
        'LOAD': 2,
        'PLAN': 4,
        'SHUTDOWN': 8,
        'INFER': 16,
        'ON_EPISODE': 1024,
        'SETUP': 4096,
        'SCORE': 16384,
        'RESET': 32768,
        'CHECK': 65536,
        'OBSERVE': 131072,
        'STEP': 262144,
        'SAMPLE': 524288,
    }
