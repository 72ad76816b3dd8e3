"""Start the demo: the simulated arm, a worker that reaches for its target, and the harness."""

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the three; when one of them ends, so does the demo."""
    share = FindPackageShare('seq_harness')
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'params_file',
                default_value=PathJoinSubstitution([share, 'config', 'demo.yaml']),
                description='YAML file with the parameters of the harness',
            ),
            DeclareLaunchArgument(
                'port', default_value='8765', description='TCP port of the worker, on loopback'
            ),
            DeclareLaunchArgument(
                'policy',
                default_value='seq_harness.worker.policies.reach:Reach',
                description='the policy that the worker serves, as MODULE:CLASS',
            ),
            DeclareLaunchArgument(
                'namespace', default_value='', description='namespace of the nodes and topics'
            ),
            DeclareLaunchArgument(
                'log_level', default_value='info', description='debug, info, warn, error or fatal'
            ),
            Node(
                package='seq_harness',
                executable='sim_arm',
                name='sim_arm',
                namespace=LaunchConfiguration('namespace'),
                ros_arguments=['--log-level', LaunchConfiguration('log_level')],
                output='screen',
                on_exit=Shutdown(reason='the simulated arm ended'),
            ),
            # A worker is no ROS node: it takes no --ros-args.
            ExecuteProcess(
                cmd=[
                    ExecutableInPackage(package='seq_harness', executable='worker'),
                    LaunchConfiguration('policy'),
                    '--port',
                    LaunchConfiguration('port'),
                ],
                name='worker',
                output='screen',
                on_exit=Shutdown(reason='the worker ended'),
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(
                    PathJoinSubstitution([share, 'launch', 'harness.launch.py'])
                ),
                launch_arguments={
                    'params_file': LaunchConfiguration('params_file'),
                    'worker_url': ['ws://127.0.0.1:', LaunchConfiguration('port')],
                    'namespace': LaunchConfiguration('namespace'),
                    'log_level': LaunchConfiguration('log_level'),
                }.items(),
            ),
        ]
    )
