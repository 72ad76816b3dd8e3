"""What layouts and the security policy name, against what the node of the demo has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from seq_harness.bags.params import read_file
from seq_harness.cli.children import Children
from support.composing import Arm, Caller, composition
from support.sources import ROOT

CONFIG = ROOT / 'config'
DEMO = read_file(CONFIG / 'demo.yaml')
COMMANDS = str(DEMO['channels.arm.topic'])


@dataclass
class Seen:
    """What a node that plays has, by full names, and what it says of itself."""

    publishes: set[str]
    subscribes: set[str]
    serves: set[str]
    arm: Arm

    @property
    def topics(self) -> set[str]:
        """Return all topics of the demo: those of the node, and those that it reads."""
        inputs = {f'/{DEMO[f"inputs.{name}.topic"]}' for name in DEMO['input_names']}
        return self.publishes | inputs


def names(listed: list[tuple[str, list[str]]]) -> set[str]:
    return {name for name, _ in listed}


@pytest.fixture(scope='module')
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with Children(tmp_path_factory.mktemp('logs')) as children, composition(children) as made:
        arm = made.arm()
        made.harness(channels__arm__topic=COMMANDS)
        caller = Caller(made.context)
        made.spin()
        for transition in (1, 3):
            assert caller.change('/harness', transition)
        assert caller.trigger('/harness/start').success
        caller.until(lambda: 'harness: setpoints' in arm.statuses, 'diagnostics')
        wanted = 'lateness_ms.p99'
        caller.until(lambda: wanted in keys_of(arm, 'harness: setpoints'), 'figures')
        of_node = ('harness', '/')
        yield Seen(
            names(caller.node.get_publisher_names_and_types_by_node(*of_node)),
            names(caller.node.get_subscriber_names_and_types_by_node(*of_node)),
            names(caller.node.get_service_names_and_types_by_node(*of_node)),
            arm,
        )
        caller.close()


def keys_of(arm: Arm, status: str) -> set[str]:
    return {pair.key for pair in arm.statuses[status].values}


def test_every_topic_of_the_foxglove_layout_is_there(seen: Seen) -> None:
    panels: dict[str, Any] = json.loads((CONFIG / 'foxglove.json').read_text())['configById']
    text = json.dumps(panels)
    named = set(re.findall(r'"(/[a-z_/]+)', text))
    assert '/diagnostics' in named
    assert named <= seen.topics
    statuses = {panel['selectedName'] for panel in panels.values() if 'selectedName' in panel}
    assert statuses
    assert statuses <= set(seen.arm.statuses)


def test_every_curve_of_the_plotjuggler_layout_is_there(seen: Seen) -> None:
    root = ElementTree.parse(CONFIG / 'plotjuggler.xml').getroot()
    curves = [curve.get('name', '') for curve in root.iter('curve')]
    assert curves
    for curve in curves:
        if curve.startswith('/diagnostics/'):
            status, _, key = curve.removeprefix('/diagnostics/').partition('/')
            assert key in keys_of(seen.arm, status), curve
        else:
            assert any(curve.startswith(f'{topic}/') for topic in seen.topics), curve


def allowed(kind: str, how: str) -> set[str]:
    """Return the full names that the security policy allows."""
    root = ElementTree.parse(CONFIG / 'sros2_policy.xml').getroot()
    texts = [item.text or '' for group in root.iter(kind) if group.get(how) == 'ALLOW'
             for item in group]  # fmt: skip
    return {text.replace('~', '/harness') if text[0] == '~' else f'/{text}' for text in texts}


def test_the_security_policy_allows_all_that_the_node_creates(seen: Seen) -> None:
    assert seen.publishes <= allowed('topics', 'publish')
    assert seen.subscribes <= allowed('topics', 'subscribe')
    assert seen.serves <= allowed('services', 'reply')


def test_and_no_command_besides_those_of_the_demo() -> None:
    assert {name for name in allowed('topics', 'publish') if name.endswith('commands')} == {
        f'/{COMMANDS}',
        f'/harness/preview/{COMMANDS}',
    }
    assert allowed('services', 'request') == set()
