"""Start a robot's controllers through its controller manager, and the harness beside them."""

from pathlib import PurePosixPath

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare
import yaml

COMMANDS = ('commands', 'joint_trajectory')
"""How the topics of forward and of trajectory controllers end, behind the controller's name."""


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the controller manager itself is started by the robot's driver."""
    share = FindPackageShare('seq_harness')
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'robot',
                default_value='franka_effort_jtc',
                description='one of the files in config/robots, without its ending',
            ),
            DeclareLaunchArgument(
                'params_file',
                default_value=[
                    PathJoinSubstitution(
                        [share, 'config', 'robots', LaunchConfiguration('robot')]
                    ),
                    '.yaml',
                ],
                description='your own file of parameters in place of that of `robot`',
            ),
            DeclareLaunchArgument(
                'controllers',
                default_value='',
                description='controllers to load and activate, with a space between two; empty '
                'takes those that the topics of the channels name, and a joint_state_broadcaster',
            ),
            DeclareLaunchArgument(
                'controller_manager',
                default_value='controller_manager',
                description='the node that loads them, in the namespace of the controllers',
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
                    'params_file': LaunchConfiguration('params_file'),
                    'worker_url': LaunchConfiguration('worker_url'),
                    'namespace': LaunchConfiguration('namespace'),
                }.items(),
            ),
        ]
    )


def _spawners(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Load and activate each controller; one that is active already is left as it is."""
    manager = LaunchConfiguration('controller_manager').perform(context)
    given = LaunchConfiguration('controllers').perform(context).split()
    file = LaunchConfiguration('params_file').perform(context)
    return [
        Node(
            package='controller_manager',
            executable='spawner',
            namespace=LaunchConfiguration('namespace'),
            arguments=[path.name, '--controller-manager', _beside(path, manager)],
            output='screen',
        )
        for path in map(PurePosixPath, given or _named_in(file))
    ]


def _beside(controller: PurePosixPath, manager: str) -> str:
    """Return the manager in the namespace of a controller, unless it names its own."""
    return manager if '/' in manager else str(controller.with_name(manager))


def _named_in(file: str) -> list[str]:
    """List the controllers that the channels of a parameter file name, each with its state's."""
    with open(file, encoding='utf-8') as text:
        nodes = yaml.safe_load(text)
    topics = [
        PurePosixPath(channel['topic'])
        for node in nodes.values()
        for channel in node['ros__parameters'].get('channels', {}).values()
    ]
    controllers = [topic.parent for topic in topics if topic.name in COMMANDS]
    broadcasters = [path.with_name('joint_state_broadcaster') for path in controllers]
    return list(dict.fromkeys(map(str, [*broadcasters, *controllers])))
