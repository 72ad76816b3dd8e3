"""Declare the harness's parameters on a node, and read them into settings."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from seq_harness.settings import declared_parameters, parse, Settings
from seq_harness.settings.parameters import Kind, Parameter

# What rclpy and its time source declare of themselves.
_OF_THE_NODE = ('use_sim_time', 'start_type_description_service')
_OF_THE_MIDDLEWARE = 'qos_overrides.'

_TYPES = {
    Kind.BOOL: RosParameter.Type.BOOL,
    Kind.INTEGER: RosParameter.Type.INTEGER,
    Kind.DOUBLE: RosParameter.Type.DOUBLE,
    Kind.STRING: RosParameter.Type.STRING,
    Kind.STRING_ARRAY: RosParameter.Type.STRING_ARRAY,
    Kind.DOUBLE_ARRAY: RosParameter.Type.DOUBLE_ARRAY,
}

_LARGEST = 1.7976931348623157e308


def read_settings(node: Node) -> Settings:
    """
    Read the parameters that `node` was given, and declare each with its type and range.

    The node must have been made with `automatically_declare_parameters_from_overrides` and
    `allow_undeclared_parameters`, so that a misspelt name is seen.

    Raises
    ------
    SettingsError
        Names the parameter and what is allowed.

    """
    names = node.list_parameters([], 0).names
    values = {
        name: _plain(node.get_parameter(name).value)
        for name in names
        if name not in _OF_THE_NODE and not name.startswith(_OF_THE_MIDDLEWARE)
    }
    settings = parse(values)
    for parameter in declared_parameters(values):
        _declare(node, parameter, values)
    return settings


def declare(node: Node, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """
    Declare parameters on a node that lists none by itself, and return their values by name.

    Raises
    ------
    SettingsError
        Names the parameter and what is allowed.

    """
    values: dict[str, Any] = {}
    for parameter in parameters:
        descriptor = ParameterDescriptor(dynamic_typing=True)
        given = node.declare_parameter(parameter.name, parameter.default, descriptor)
        values[parameter.name] = parameter.read(_plain(given.value))
        _declare(node, parameter, values)
    return values


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (array, tuple, np.ndarray)) else value


def _declare(node: Node, parameter: Parameter, values: dict[str, Any]) -> None:
    if node.has_parameter(parameter.name):
        node.undeclare_parameter(parameter.name)
    value = parameter.read(values.get(parameter.name, parameter.default))
    node.declare_parameter(
        parameter.name,
        RosParameter(parameter.name, _TYPES[parameter.kind], value).value,
        _descriptor(parameter),
        ignore_override=True,
    )


def _descriptor(parameter: Parameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        name=parameter.name,
        type=_TYPES[parameter.kind].value,
        description=parameter.description,
        additional_constraints='' if parameter.kind is Kind.BOOL else parameter.allowed,
        read_only=True,
    )
    low, high = parameter.minimum, parameter.maximum
    if low is None and high is None:
        return descriptor
    if parameter.kind is Kind.INTEGER:
        bounds = IntegerRange(from_value=int(low or 0), to_value=int(high or 0), step=0)
        descriptor.integer_range = [bounds]
    elif parameter.kind is Kind.DOUBLE:
        descriptor.floating_point_range = [
            FloatingPointRange(
                from_value=-_LARGEST if low is None else float(low),
                to_value=_LARGEST if high is None else float(high),
                step=0.0,
            )
        ]
    return descriptor
