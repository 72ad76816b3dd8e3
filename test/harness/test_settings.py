"""Parameters: what is allowed, and what an error says."""

from __future__ import annotations

from typing import Any

import pytest
from seq_harness.settings import declared_parameters, parse
from seq_harness.settings.parameters import SettingsError
from support.robots import settings_of


def test_g22_an_integer_serves_for_a_double() -> None:
    settings = settings_of(rate_hz=30)
    assert settings['rate_hz'] == 30.0
    assert isinstance(settings['rate_hz'], float)
    assert settings.channels[0].upper == (1.0, 1.0)


def test_what_is_left_out_takes_its_default() -> None:
    settings = settings_of()
    assert settings['autostart'] is True
    assert settings.inputs[0].key == 'state'
    assert settings.channels[0].columns == ('j1', 'j2')


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'rate_hz': 'fast'}, r"'rate_hz' must be a double in \[0.01, 1000\]; got 'fast' \(str\)"),
        ({'rate_hz': True}, "'rate_hz' must be a double"),
        ({'rate_hz': 0.0}, r'\[0.01, 1000\]; got 0.0'),
        ({'rate_hz': float('nan')}, "'rate_hz' must be .* a finite number is needed"),
        ({'rt_priority': 1.5}, "'rt_priority' must be an integer"),
        ({'rt_priority': 50}, r'in \[0, 49\]; got 50'),
        ({'asking': 'never'}, r"'asking' must be one of \['lead', 'drain', "),
        ({'preview': 1}, "'preview' must be a bool"),
        ({'ratehz': 5.0}, "'ratehz' is unknown"),
        ({'inputs__state__topci': 'x'}, "'inputs.state.topci' is unknown; known beside it"),
        ({'inputs__front__topic': 'x'}, 'is it listed in input_names or channel_names'),
        ({'input_names': []}, "'input_names' must list names"),
        ({'input_names': ['state', 'state']}, 'each once'),
        ({'channels__arm__lower': [0.0]}, "'channels.arm.lower' must have one value for each"),
        ({'channels__arm__lower': [2.0, 0.0]}, 'must be below upper for j1'),
        ({'channels__arm__state': 'other'}, "'channels.arm.state' must name an input of named"),
        ({'channels__arm__joints': ['j1', 'j3']}, "reads the position of \\['j1', 'j2'\\]"),
        ({'inputs__state__field': 'velocity'}, 'positions of all joints'),
        ({'max_request_age_s': 40.0}, "'max_request_age_s' must be at most 'act_timeout_s'"),
        ({'inputs__state__key': 'prompt'}, "'prompt' stands twice"),
        ({'channels__arm__max_velocity': [1.0, -1.0]}, 'max_velocity'),
        ({'inputs__state__joints': ['j1', '']}, "'inputs.state.joints' must be a string_array"),
        ({'channel_names': ['left-arm']}, "'channel_names' must list words.*'left-arm'"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_with_what_is_allowed(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_of(**change)


@pytest.mark.parametrize(
    'name',
    ['', '~', '~x', '/', 'a/', 'a//b', '//a', '1a', 'a/1b', 'a-b', 'a b', '{ns}/a', 'a' * 248],
)
@pytest.mark.parametrize(
    'parameter',
    ['inputs.state.topic', 'inputs.state.more_topics', 'channels.arm.topic', 'robot_description',
     'stop_topic', 'deadman_topic', 'channels.arm.controller_state'],
)  # fmt: skip
def test_what_is_no_topic_is_refused_when_parameters_are_read(parameter: str, name: str) -> None:
    value: Any = [name] if parameter.endswith('more_topics') else name
    type_of_channel = {'channels.arm.type': 'joint_trajectory'}
    if not name and parameter in ('robot_description', 'stop_topic', 'deadman_topic'):
        assert settings_of(**{parameter: name})[parameter] == ''
    elif not name and parameter.endswith('controller_state'):
        assert settings_of(**{parameter: name}).channels[0].controller_state == ''
    else:
        with pytest.raises(SettingsError, match=f"'{parameter}' must be a.*topic name") as raised:
            settings_of(**type_of_channel, **{parameter: value})
        assert repr(value) in str(raised.value)


@pytest.mark.parametrize('name', ['a', '/a', '~/a', 'a/b_1/c', '_a', 'a__b', 'a' * 247])
def test_what_ros_takes_for_a_topic_is_taken(name: str) -> None:
    assert settings_of(inputs__state__topic=name).inputs[0].topic == name


@pytest.mark.parametrize('kind', ['velocity', 'effort'])
def test_g42_rates_are_refused_where_nothing_stops_them_after_a_crash(kind: str) -> None:
    with pytest.raises(SettingsError, match=r"'channels.arm.controller_timeout_s' must be"):
        settings_of(channels__arm__kind=kind)
    assert settings_of(channels__arm__kind=kind, channels__arm__controller_timeout_s=0.2)
    assert settings_of(channels__arm__kind=kind, require_watchdog=True)


def test_a_missing_parameter_is_named_with_its_meaning() -> None:
    with pytest.raises(SettingsError, match="'input_names' is missing"):
        parse({})
    values = {'input_names': ['a'], 'channel_names': ['b']}
    with pytest.raises(SettingsError, match=r"'inputs.a.topic' is missing.*subscribe"):
        parse(values)


def test_every_parameter_says_what_it_means() -> None:
    listed = declared_parameters({'input_names': ['a'], 'channel_names': ['b']})
    assert all(item.description.endswith('.') for item in listed)
    assert len({item.name for item in listed}) == len(listed)
