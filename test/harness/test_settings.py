"""Parameters: what is allowed, and what an error says."""

from __future__ import annotations

from typing import Any

import pytest
from seq_harness.settings import declared_parameters, parse
from seq_harness.settings.parameters import SettingsError
from support.robots import settings_of


def test_an_integer_serves_for_a_double() -> None:
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
        ({'rate_hz': float('nan')}, "'rate_hz' must be"),
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
    ],
)
def test_a_wrong_parameter_is_refused_by_name_with_what_is_allowed(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_of(**change)


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
