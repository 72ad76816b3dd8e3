"""Start a robot's controllers through its controller manager, and the harness beside them."""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the controller manager itself is started by the robot's driver."""
    share = FindPackageShare('seq_harness')
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'robot',
                default_value='franka_forward',
                description='one of the files in config/robots, without its ending',
            ),
            DeclareLaunchArgument(
                'controllers',
                default_value='joint_state_broadcaster forward_position_controller',
                description='controllers to load and activate, with a space between two',
            ),
            DeclareLaunchArgument(
                'controller_manager',
                default_value='controller_manager',
                description='the node that loads them',
            ),
            DeclareLaunchArgument(
                'worker_url',
                default_value='ws://127.0.0.1:8765',
                description='where the worker listens',
            ),
            DeclareLaunchArgument(
                'namespace', default_value='', description='namespace of the nodes and topics'
            ),
            OpaqueFunction(function=_spawners),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(
                    PathJoinSubstitution([share, 'launch', 'harness.launch.py'])
                ),
                launch_arguments={
                    'params_file': [
                        PathJoinSubstitution(
                            [share, 'config', 'robots', LaunchConfiguration('robot')]
                        ),
                        '.yaml',
                    ],
                    'worker_url': LaunchConfiguration('worker_url'),
                    'namespace': LaunchConfiguration('namespace'),
                }.items(),
            ),
        ]
    )


def _spawners(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Load and activate each controller; one that is active already is left as it is."""
    manager = LaunchConfiguration('controller_manager').perform(context)
    return [
        Node(
            package='controller_manager',
            executable='spawner',
            namespace=LaunchConfiguration('namespace'),
            arguments=[name, '--controller-manager', manager],
            output='screen',
        )
        for name in LaunchConfiguration('controllers').perform(context).split()
    ]
