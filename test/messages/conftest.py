"""Messages of both libraries that hold them: rclpy's and rosbags'."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from rosbags.interfaces import Nodetype
from rosbags.typesys import get_typestore, Stores

Make: TypeAlias = Callable[..., Any]

STORE = get_typestore(Stores.ROS2_JAZZY)


@pytest.fixture(params=['rclpy', 'rosbags'])
def of(request: pytest.FixtureRequest) -> Callable[[str], Make]:
    """Give, for each library, what turns a type's name into a maker of its messages."""
    return {'rclpy': _rclpy, 'rosbags': _rosbags}[request.param]


def _rclpy(kind: str) -> Make:
    package, _, name = kind.split('/')
    message_type = getattr(pytest.importorskip(f'{package}.msg'), name)

    def make(**given: Any) -> Any:
        return message_type(
            **{k: array('B', v) if isinstance(v, bytes) else v for k, v in given.items()}
        )

    return make


def _rosbags(kind: str) -> Make:
    """Make rosbags' messages, which ask for every field and for arrays of the exact dtype."""

    def make(**given: Any) -> Any:
        described = STORE.fielddefs[kind][1]
        return STORE.types[kind](**{k: _value(d, given.get(k)) for k, d in described})

    return make


def _value(described: Any, given: Any) -> Any:
    node, detail = described
    if node is Nodetype.NAME:
        return _rosbags(detail)() if given is None else given
    if node is Nodetype.BASE:
        return {None: '' if detail[0] == 'string' else 0}.get(given, given)
    inner, inner_detail = detail[0]
    if inner is not Nodetype.BASE or inner_detail[0] == 'string':
        return given or []
    return np.array([] if given is None else list(given), inner_detail[0])
