"""Start the harness node."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


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
                'log_level', default_value='info', description='debug, info, warn, error or fatal'
            ),
            OpaqueFunction(function=_harness),
        ]
    )


def _harness(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Make the node with the parameters that were given."""
    given = {
        name: LaunchConfiguration(name).perform(context)
        for name in ('params_file', 'worker_url', 'use_sim_time')
    }
    parameters: list[object] = [given['params_file']] if given['params_file'] else []
    if given['worker_url']:
        parameters.append({'worker_url': ParameterValue(given['worker_url'], value_type=str)})
    if given['use_sim_time']:
        parameters.append({'use_sim_time': given['use_sim_time'] == 'true'})
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
