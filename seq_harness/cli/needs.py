"""What a command needs beside the package itself, and what to say where it is missing."""

from __future__ import annotations

ROS = 'ROS 2'

NEEDS = {
    'demo': (ROS, 'worker', 'sim', 'bags'),
    'harness': (ROS,),
    'worker': ('worker',),
    'sim-arm': (ROS, 'sim'),
    'record-bag': (ROS, 'bags'),
    'play-bag': (ROS, 'bags'),
    'probe': ('bags', 'sim'),
    'replay': ('bags',),
    'report': ('bags', 'report'),
    'preflight': (ROS,),
}
"""By command: ROS 2, and the extras of this package that it takes."""

EXTRAS = {
    'aiohttp': 'worker',
    'matplotlib': 'sim',
    'mcap': 'bags',
    'plotly': 'report',
    'rosbags': 'bags',
    'tqdm': 'bags',
    'yaml': 'bags',
}
"""What each extra installs, by the name of the module."""

OF_ROS = ('rclpy', 'ament_index_python', 'builtin_interfaces', 'rcl_interfaces', 'std_srvs')


def missing(command: str, error: ModuleNotFoundError) -> str | None:
    """Say what to install for a module that is not there; None for one that is not of ours."""
    module = (error.name or '').partition('.')[0]
    of_ros = module in OF_ROS or module.endswith('_msgs')
    if not of_ros and module not in EXTRAS:
        return None
    needs = NEEDS.get(command, (ROS,) if of_ros else (EXTRAS[module],))
    extras = list(dict.fromkeys(name for name in needs if name != ROS))
    if module in EXTRAS and EXTRAS[module] not in extras:
        # What one option takes beyond the rest of its command.
        extras.append(EXTRAS[module])
    remedies = ["source a ROS 2's setup.bash, or use scripts/env"] if ROS in needs else []
    if extras:
        remedies.append(f"pip install 'seq_harness[{','.join(extras)}]'")
    return (
        f'seq-harness {command}: the module {module!r} is not installed here; for all that the '
        f'command needs: {"; ".join(remedies)}'
    )
