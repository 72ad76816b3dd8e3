"""Start the harness node, and the watchdog beside it where it needs one."""

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
import yaml

RESPAWN_S = 0.5
"""How soon a watchdog that ended is started again."""


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; those left empty keep what the parameter file or the node says."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'params_file', default_value='', description='YAML file with the parameters'
            ),
            DeclareLaunchArgument(
                'worker_url',
                default_value='',
                description='where the worker listens, e.g. ws://127.0.0.1:8765',
            ),
            DeclareLaunchArgument(
                'namespace', default_value='', description='namespace of the node and its topics'
            ),
            DeclareLaunchArgument(
                'use_sim_time',
                default_value='',
                choices=['', 'true', 'false'],
                description='whether /clock is the time',
            ),
            DeclareLaunchArgument(
                'watchdog',
                default_value='',
                choices=['', 'true', 'false'],
                description='whether a watchdog stands beside the node; empty for one where the '
                'parameter file says require_watchdog: true',
            ),
            DeclareLaunchArgument(
                'record', default_value='', description='a file for an exact record of the run'
            ),
            DeclareLaunchArgument(
                'log_level', default_value='info', description='debug, info, warn, error or fatal'
            ),
            OpaqueFunction(function=_harness),
            OpaqueFunction(function=_watchdog),
        ]
    )


def _harness(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node with the parameters that were given."""
    given = {
        name: LaunchConfiguration(name).perform(context)
        for name in ('params_file', 'worker_url', 'use_sim_time', 'record')
    }
    parameters: list[object] = [given['params_file']] if given['params_file'] else []
    for name in ('worker_url', 'record'):
        if given[name]:
            parameters.append({name: ParameterValue(given[name], value_type=str)})
    if given['use_sim_time']:
        parameters.append({'use_sim_time': given['use_sim_time'] == 'true'})
    if LaunchConfiguration('watchdog').perform(context) == 'true':
        parameters.append({'require_watchdog': True})
    return [
        Node(
            package='seq_harness',
            executable='harness',
            name='harness',
            namespace=LaunchConfiguration('namespace'),
            parameters=parameters,
            ros_arguments=['--log-level', LaunchConfiguration('log_level')],
            output='screen',
        )
    ]


def _watchdog(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start a watchdog that is wanted, again and again; it finds the harness by its name."""
    wanted = LaunchConfiguration('watchdog').perform(context)
    file = LaunchConfiguration('params_file').perform(context)
    if wanted == 'false' or not (wanted or _requires_watchdog(file)):
        return []
    return [
        Node(
            package='seq_harness',
            executable='watchdog',
            name='watchdog',
            namespace=LaunchConfiguration('namespace'),
            parameters=[file] if file else [],
            ros_arguments=['--log-level', LaunchConfiguration('log_level')],
            output='screen',
            respawn=True,
            respawn_delay=RESPAWN_S,
        )
    ]


def _requires_watchdog(file: str) -> bool:
    """Read whether a parameter file wants one; what is wrong with the file, the node says."""
    try:
        found = [yaml.safe_load(Path(file).read_text(encoding='utf-8'))] if file else []
    except (OSError, ValueError, yaml.YAMLError):
        return False
    while found:
        item = found.pop()
        if isinstance(item, dict):
            if item.get('require_watchdog') is True:
                return True
            found.extend(item.values())
    return False
