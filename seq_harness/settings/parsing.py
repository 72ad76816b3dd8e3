"""What the parameters of a harness build, checked against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seq_harness.settings.input_types import CAMERAS, DIAGNOSTICS, NAMES, WORDS
from seq_harness.settings.joint_parameters import checked_joint, JOINT, JointSettings
from seq_harness.settings.output_types import (
    OUTPUT_KINDS,
    POSE_COLUMNS,
    POSE_WIDTHS,
    RATES,
    WIDTHS,
)
from seq_harness.settings.parameters import (
    CHANNEL,
    GENERAL,
    INPUT,
    JOINT_TRAJECTORY,
    Parameter,
    SettingsError,
)
from seq_harness.settings.play_parameters import AUTOMATIC


@dataclass(frozen=True)
class InputSettings:
    """One input of an observation."""

    name: str
    topic: str
    more_topics: tuple[str, ...]
    type: str
    key: str
    joints: tuple[str, ...]
    field: str
    available: tuple[str, ...]
    max_age_s: float
    on_stale: str
    hold_s: float
    frozen_after_s: float
    expected_hz: float
    stamp: str
    reliability: str
    durability: str

    @property
    def topics(self) -> tuple[str, ...]:
        """Return every topic that feeds the input."""
        return (self.topic, *self.more_topics)

    @property
    def is_status(self) -> bool:
        """Return whether it says that the arm is available, rather than what a policy reads."""
        return bool(self.available)


@dataclass(frozen=True)
class ChannelSettings:
    """One command output and its limits."""

    name: str
    topic: str
    type: str
    joints: tuple[str, ...]
    columns: tuple[str, ...]
    state: str
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    max_velocity: tuple[float, ...]
    max_start_distance: float
    time_from_start_s: float
    frame: str
    max_effort: float
    goal_change: float
    controller_state: str
    kind: str
    delta_of: str
    starvation: str
    horizon: str
    max_tracking_error: float
    controller_timeout_s: float


@dataclass(frozen=True)
class Settings:
    """All parameters of one harness, checked against each other."""

    general: Mapping[str, Any]
    inputs: tuple[InputSettings, ...]
    channels: tuple[ChannelSettings, ...]
    joints: tuple[JointSettings, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return a general parameter by its name."""
        return self.general[name]


def declared_parameters(values: Mapping[str, Any]) -> list[Parameter]:
    """
    List every parameter that belongs to the names in `values`, under its full name.

    Raises
    ------
    SettingsError
        `input_names` or `channel_names` is missing, empty or repeats a name.

    """
    listed = list(GENERAL)
    for group, names_of, members in (
        ('inputs', 'input_names', INPUT),
        ('channels', 'channel_names', CHANNEL),
        ('joints', 'mapped_joints', JOINT),
    ):
        for name in _names(values, names_of):
            listed.extend(_named(f'{group}.{name}', member) for member in members)
    return listed


def parse(values: Mapping[str, Any]) -> Settings:
    """
    Build the settings from parameter values by full name.

    Raises
    ------
    SettingsError
        A name is unknown, a required one is missing, or a value is not allowed.

    """
    known = {parameter.name: parameter for parameter in declared_parameters(values)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise SettingsError(_unknown(unknown[0], known))
    read: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in values and parameter.default is None:
            raise SettingsError(
                f'parameter {name!r} is missing; it must be {parameter.allowed}: '
                f'{parameter.description}'
            )
        read[name] = parameter.read(values.get(name, parameter.default))
    return _checked(read)


def _names(values: Mapping[str, Any], parameter: str) -> Sequence[str]:
    spec = next(item for item in GENERAL if item.name == parameter)
    if parameter not in values:
        if spec.default is not None:
            return ()
        raise SettingsError(f'parameter {parameter!r} is missing: {spec.description}')
    names: tuple[str, ...] = spec.read(values[parameter])
    if (not names and spec.default is None) or len(set(names)) != len(names):
        raise SettingsError(f'parameter {parameter!r} must list names, each once; got {names!r}')
    odd = [name for name in names if not (name.isascii() and name.isidentifier())]
    if odd and parameter == 'channel_names':
        raise SettingsError(
            f'parameter {parameter!r} must list words of letters, digits and _, as each makes a '
            f'topic ~/manual/<name>; got {odd[0]!r}'
        )
    return names


def _named(prefix: str, parameter: Parameter) -> Parameter:
    return replace(parameter, name=f'{prefix}.{parameter.name}')


def _unknown(name: str, known: Mapping[str, Parameter]) -> str:
    group = name.rpartition('.')[0]
    near = [other for other in known if other.rpartition('.')[0] == group]
    if not near:
        return (
            f'parameter {name!r} is unknown: is it listed in input_names or channel_names, or in '
            'mapped_joints?'
        )
    return f'parameter {name!r} is unknown; known beside it: {sorted(near)}'


def _group(read: Mapping[str, Any], prefix: str, members: Sequence[Parameter]) -> dict[str, Any]:
    return {member.name: read[f'{prefix}.{member.name}'] for member in members}


def _checked(read: Mapping[str, Any]) -> Settings:
    general = {parameter.name: read[parameter.name] for parameter in GENERAL}
    inputs = tuple(_input(read, name) for name in general['input_names'])
    states = {
        item.name: item for item in inputs if item.joints and item.type not in (*CAMERAS, *WORDS)
    }
    channels = tuple(_channel(read, name, states) for name in general['channel_names'])
    _check_crash(channels, general['require_watchdog'])
    if AUTOMATIC < general['max_starved_s'] < 0:
        raise SettingsError(
            "parameter 'max_starved_s' must be -1 (automatic), 0 (no bound) or more; got "
            f'{general["max_starved_s"]:g}'
        )
    _check_pose_forms(channels, general['layers'])
    if general['max_request_age_s'] > general['act_timeout_s']:
        raise SettingsError(
            "parameter 'max_request_age_s' must be at most 'act_timeout_s' "
            f'({general["act_timeout_s"]:g} s); got {general["max_request_age_s"]:g}'
        )
    _refuse_twice('key', [item.key for item in inputs] + [general['instruction_key']])
    _refuse_twice('topic', [item.topic for item in channels])
    joints = tuple(
        checked_joint(JointSettings(name=name, **_group(read, f'joints.{name}', JOINT)))
        for name in general['mapped_joints']
    )
    _refuse_unused([item.name for item in joints], [*inputs, *channels])
    return Settings(general, inputs, channels, joints)


def _input(read: Mapping[str, Any], name: str) -> InputSettings:
    group = _group(read, f'inputs.{name}', INPUT)
    group['key'] = group['key'] or name
    group['joints'] = group['joints'] or NAMES.get(group['type'], ())
    item = InputSettings(name=name, **group)
    if item.type in NAMES and not item.joints:
        raise SettingsError(f"parameter 'inputs.{name}.joints' must name the joints to read")
    for member, wanted, there in (
        (
            'joints',
            'the name of a status, and perhaps one of its keys',
            item.type != DIAGNOSTICS or 1 <= len(item.joints) <= 2,
        ),
        ('available', 'a text, bool or integer', item.type in WORDS or not item.available),
        ('available', 'given for a bool or integer', item.is_status or item.type not in WORDS[1:]),
        ('frozen_after_s', 'of a camera', item.type in CAMERAS or not item.frozen_after_s),
        ('more_topics', 'of named numbers', bool(item.joints) or not item.more_topics),
    ):
        if not there:
            raise SettingsError(
                f"parameter 'inputs.{name}.{member}' must be {wanted}; the type is {item.type!r}"
            )
    return item


def _channel(
    read: Mapping[str, Any], name: str, states: Mapping[str, InputSettings]
) -> ChannelSettings:
    group = _group(read, f'channels.{name}', CHANNEL)
    joints = group['joints']
    _refuse_twice(f'channels.{name}.joints', list(joints))
    if not joints:
        raise SettingsError(f"parameter 'channels.{name}.joints' must name the joints")
    group['columns'] = group['columns'] or joints
    _check_widths(name, group)
    for joint, low, high in zip(joints, group['lower'], group['upper'], strict=False):
        if low >= high:
            raise SettingsError(
                f"parameter 'channels.{name}.lower' must be below upper for {joint}; "
                f'got [{low:g}, {high:g}]'
            )
    channel = ChannelSettings(name=name, **group)
    _check_kind(channel)
    if channel.state or channel.kind not in RATES:
        _check_state(channel, states)
    return channel


def _check_widths(name: str, group: Mapping[str, Any]) -> None:
    count = len(group['joints'])
    wanted = WIDTHS.get(group['type'], 7 if group['kind'] == 'pose' else count)
    if count != wanted:
        raise SettingsError(
            f"parameter 'channels.{name}.joints' must name {wanted} for type {group['type']!r} "
            f'and kind {group["kind"]!r}; got {count}'
        )
    widths = POSE_WIDTHS if group['kind'] == 'pose' else {}
    if group['kind'] == 'pose' and len(group['columns']) in POSE_COLUMNS:
        widths = {**widths, 'columns': len(group['columns'])}
    for member in ('columns', 'lower', 'upper', 'max_velocity'):
        if len(group[member]) != widths.get(member, count):
            raise SettingsError(
                f"parameter 'channels.{name}.{member}' must have one value for each of the "
                f'{widths.get(member, count)} joints; got {len(group[member])}'
            )


def _check_state(channel: ChannelSettings, states: Mapping[str, InputSettings]) -> None:
    name, joints = channel.name, channel.joints
    state = states.get(channel.state)
    if state is None:
        raise SettingsError(
            f"parameter 'channels.{name}.state' must name an input of named numbers; got "
            f'{channel.state!r}, known: {sorted(states)}'
        )
    unread = [joint for joint in joints if joint not in state.joints]
    if unread or state.field != 'position':
        raise SettingsError(
            f"parameter 'channels.{name}.state' must name an input of the positions of all joints "
            f'of the channel; {state.name!r} reads the {state.field} of {list(state.joints)}'
        )
    if state.on_stale == 'continue':
        raise SettingsError(
            f"parameter 'inputs.{state.name}.on_stale' must be stop or hold: the rows of "
            f'channels.{name} are bounded from what it measures'
        )


def _check_kind(channel: ChannelSettings) -> None:
    prefix = f'channels.{channel.name}'
    if channel.kind not in OUTPUT_KINDS[channel.type]:
        raise SettingsError(
            f"parameter '{prefix}.kind' must be one of {list(OUTPUT_KINDS[channel.type])} for "
            f'type {channel.type!r}; got {channel.kind!r}'
        )
    if channel.controller_state and channel.type != JOINT_TRAJECTORY:
        raise SettingsError(
            f"parameter '{prefix}.controller_state' must be empty but for a {JOINT_TRAJECTORY}; "
            f'the type of the channel is {channel.type!r}'
        )
    if (channel.kind == 'delta') != bool(channel.delta_of):
        raise SettingsError(
            f"parameter '{prefix}.delta_of' must say of what a delta is one, previous or "
            f'observation, and belongs to kind delta alone; got kind {channel.kind!r} and '
            f'{channel.delta_of!r}'
        )
    if channel.horizon == 'chunk' and channel.type != JOINT_TRAJECTORY:
        raise SettingsError(
            f"parameter '{prefix}.horizon' may be chunk for a {JOINT_TRAJECTORY} alone; the type "
            f'of the channel is {channel.type!r}'
        )


def _check_crash(channels: Sequence[ChannelSettings], watched: bool) -> None:
    for channel in channels:
        if channel.kind in RATES and not channel.controller_timeout_s and not watched:
            raise SettingsError(
                f"parameter 'channels.{channel.name}.controller_timeout_s' must be above 0 for a "
                f'{channel.kind}, or require_watchdog be true: what a crash leaves is stopped by '
                'a controller that times out, by a watchdog process, or by nobody'
            )


def _check_pose_forms(channels: Sequence[ChannelSettings], layers: str) -> None:
    for channel in channels:
        other = channel.kind == 'pose' and len(channel.columns) != len(channel.joints)
        if other and 'pose_form' not in layers:
            raise SettingsError(
                f"parameter 'channels.{channel.name}.columns' must name {len(channel.joints)} "
                f'columns for a pose; got {len(channel.columns)}, which a layer pose_form in '
                "parameter 'layers' must turn into a quaternion"
            )


def _refuse_unused(
    mapped: Sequence[str], users: Sequence[InputSettings | ChannelSettings]
) -> None:
    used = {joint for item in users for joint in item.joints}
    unused = [name for name in mapped if name not in used]
    if unused:
        raise SettingsError(
            f"parameter 'mapped_joints' names {unused[0]!r}, which no input and no channel has; "
            f'they have {sorted(used)}'
        )


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise SettingsError(f'{what} {twice[0]!r} stands twice; each must be its own')
