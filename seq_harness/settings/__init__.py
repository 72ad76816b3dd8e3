"""The parameters of a harness: all that may be set, and what that builds."""

from seq_harness.settings.joint_parameters import JointSettings
from seq_harness.settings.parameter import Kind, Parameter, SettingsError
from seq_harness.settings.parsing import (
    ChannelSettings,
    declared_parameters,
    InputSettings,
    parse,
    Settings,
)

__all__ = [
    'ChannelSettings',
    'InputSettings',
    'JointSettings',
    'Kind',
    'Parameter',
    'Settings',
    'SettingsError',
    'declared_parameters',
    'parse',
]
