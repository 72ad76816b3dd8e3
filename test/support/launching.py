"""Launch files of this package in tests, with a record of what their processes did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription, RegisterEventHandler
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_pytest.actions import ReadyToTest


@dataclass
class Launched:
    """An included launch file, and the commands and exit statuses of its processes."""

    file: str
    arguments: dict[str, str]
    commands: dict[str, list[str]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)

    def description(self) -> LaunchDescription:
        """Include the file and note what its processes do; the test starts at once."""
        return LaunchDescription(
            [
                RegisterEventHandler(OnProcessStart(on_start=self._note_start)),
                RegisterEventHandler(OnProcessExit(on_exit=self._note_end)),
                IncludeLaunchDescription(
                    source(self.file), launch_arguments=self.arguments.items()
                ),
                ReadyToTest(),
            ]
        )

    def _note_start(self, event: Any, context: Any) -> None:
        self.commands[_name(event)] = event.cmd
        self.pids[_name(event)] = event.pid

    def _note_end(self, event: Any, context: Any) -> None:
        self.statuses[_name(event)] = event.returncode


def source(file: str) -> PythonLaunchDescriptionSource:
    """Find a launch file where it is installed."""
    share = get_package_share_directory('seq_harness')
    return PythonLaunchDescriptionSource(f'{share}/launch/{file}')


def _name(event: Any) -> str:
    """Name a process without the number that launch gives it."""
    return str(event.process_name).rsplit('-', 1)[0]
