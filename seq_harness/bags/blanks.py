"""Messages of rosbags' own classes, made empty and serialised."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from seq_harness.bags.records import BagError

# What rosbags does not bring, as its package defines it.
_OTHERS = {
    'control_msgs/msg/JointJog': (
        'std_msgs/Header header\nstring[] joint_names\nfloat64[] displacements\n'
        'float64[] velocities\nfloat64 duration\n'
    ),
    'control_msgs/msg/GripperCommand': 'float64 position\nfloat64 max_effort\n',
}


def _store() -> Any:
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in _OTHERS.items():
        store.register(get_types_from_msg(text, name))
    return store


_STORE = _store()


def message_class(kind: str) -> Any:
    """Return the class of a type such as `std_msgs/msg/Float64`."""
    return _STORE.types[kind]


def blank(kind: str) -> Any:
    """Return a message of zeros, empty texts and empty arrays."""
    _, fields = _STORE.fielddefs[kind]
    return _STORE.types[kind](**{name: _empty(field) for name, field in fields})


def serialised(message: Any) -> bytes:
    """Return a message's bytes as they cross the wire: CDR, with its header."""
    return bytes(_STORE.serialize_cdr(message, message.__msgtype__))


def deserialised(data: bytes, kind: str) -> Any:
    """
    Return the message of a type that `data` holds, CDR with its header.

    Serialisers of ROS leave bytes behind a message, as they reckon its size before they write;
    after a trajectory of many points those are many.

    Raises
    ------
    BagError
        The bytes are not of that type.

    """
    found = _STORE.get_msgdef(kind)
    read = found.deserialize_cdr_le if data[1:2] == b'\1' else found.deserialize_cdr_be
    try:
        message, _ = read(data[4:], 0, found.cls, _STORE)
    except (IndexError, struct.error, ValueError) as error:
        raise BagError(f'{len(data)} bytes are no {kind}: {error}') from error
    return message


def definition(kind: str) -> str:
    """Return the text that defines a type and those it holds, as an MCAP wants it."""
    text: str = _STORE.generate_msgdef(kind, ros_version=2)[0]
    return text


def _empty(field: Any) -> Any:
    node, detail = field
    if node is Nodetype.NAME:
        return blank(detail)
    if node is Nodetype.BASE:
        name = detail[0]
        return '' if name == 'string' else np.dtype(name).type(0).item()
    (element, inner), count = detail
    if element is Nodetype.BASE and inner[0] != 'string':
        return np.zeros(count if node is Nodetype.ARRAY else 0, inner[0])
    return [_empty((element, inner)) for _ in range(count if node is Nodetype.ARRAY else 0)]
