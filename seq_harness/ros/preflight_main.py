"""The process of the command preflight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
import json

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from seq_harness.ros.findings import fault, Finding, Severity, table, worst
from seq_harness.ros.overrides import read_given, refuse_unbounded_files
from seq_harness.ros.preflight import check
from seq_harness.settings.parameters import SettingsError


def main(arguments: Sequence[str], *, as_json: bool, watch_s: float) -> int:
    """
    Look at the robot and the worker that ROS arguments name; print what was found.

    Returns 0 when all is well, 1 after a warning, 2 after a fault.
    """
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        findings = _findings(context, arguments, watch_s)
    finally:
        rclpy.shutdown(context=context)
    print(_json(findings) if as_json else table(findings))
    return int(worst(findings))


def _findings(context: Context, arguments: Sequence[str], watch_s: float) -> list[Finding]:
    given = ['--ros-args', *arguments]
    try:
        refuse_unbounded_files(given)
        node = Node(
            'harness',
            context=context,
            cli_args=given,
            allow_undeclared_parameters=True,
            automatically_declare_parameters_from_overrides=True,
        )
    except Exception as error:
        said = ' '.join(str(error).split())
        return [fault('parameters', said, 'correct the parameter file, or the arguments')]
    try:
        return check(node, read_given(node, given), watch_s)
    except SettingsError as error:
        return [fault('parameters', str(error), 'correct the parameter file')]
    finally:
        node.destroy_node()


def _json(findings: Sequence[Finding]) -> str:
    told = [{**asdict(finding), 'severity': finding.severity.name} for finding in findings]
    counts = {
        severity.name: sum(finding.severity is severity for finding in findings)
        for severity in Severity
    }
    return json.dumps({'worst': worst(findings).name, 'counts': counts, 'findings': told})
