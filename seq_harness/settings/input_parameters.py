"""The parameters of one input of an observation."""

from __future__ import annotations

from seq_harness.settings.input_types import INPUT_TYPES
from seq_harness.settings.parameter import Kind, Parameter

INPUT = (
    Parameter('topic', Kind.STRING, None, 'The topic to subscribe to.', is_topic=True),
    Parameter(
        'more_topics', Kind.STRING_ARRAY, (), 'For named numbers: more topics of the same type, '
        'whose values are merged by name.', is_topic=True,
    ),
    Parameter('type', Kind.STRING, None, 'What the topic carries.', choices=INPUT_TYPES),
    Parameter('key', Kind.STRING, '', 'The observation key; empty takes the name of the input.'),
    Parameter(
        'joints', Kind.STRING_ARRAY, (), 'For named numbers: those to read, by name, in the order '
        'the policy wants; float64_multi_array has as many, in its own order, and joy has axis_0 '
        'and so on, and button_0 and so on. Empty takes all names of a pose, twist or wrench. For '
        'diagnostic_array: the name of a status, whose level is read as ok, warn, error or stale, '
        'and, if wanted, one of its keys, whose value is read instead.',
    ),
    Parameter(
        'field', Kind.STRING, 'position', 'For joint_state: which field of the message.',
        choices=('position', 'velocity', 'effort'),
    ),
    Parameter(
        'available', Kind.STRING_ARRAY, (), 'For string, bool and integers: the words that say '
        'that the arm is available, such as true or 3. Makes the input a status: nothing plays '
        'while it says another, is absent or too old, and the policy does not read it.',
    ),
    Parameter(
        'max_age_s', Kind.DOUBLE, 0.5, 'An input older than this is stale, in seconds.',
        0.001, 86400.0,
    ),
    Parameter(
        'on_stale', Kind.STRING, 'stop', 'What a stale input does: end the episode, hold the arm '
        'for hold_s and then end it, or nothing, so that the policy reads the old value.',
        choices=('stop', 'hold', 'continue'),
    ),
    Parameter(
        'hold_s', Kind.DOUBLE, 1.0, 'For on_stale hold: how long the arm is held before the '
        'episode ends, in seconds.', 0.0, 3600.0,
    ),
    Parameter(
        'frozen_after_s', Kind.DOUBLE, 0.0, 'For cameras: frames that stay the same to the byte '
        'for this long are those of a frozen camera and no longer count as new, in seconds; 0 '
        'lets them count, as a simulated camera needs.', 0.0, 3600.0,
    ),
    Parameter(
        'expected_hz', Kind.DOUBLE, 0.0, 'How many messages a second are sent; fewer that arrive '
        'are reported. 0 for unknown.', 0.0, 10000.0,
    ),
    Parameter(
        'stamp', Kind.STRING, 'header', 'What an age counts from: the header stamp where it is '
        'plausible and advances, or the arrival, for a driver that stamps all messages alike.',
        choices=('header', 'arrival'),
    ),
    Parameter(
        'reliability', Kind.STRING, 'auto', 'QoS of the subscription: auto takes what the '
        'publishers offer, and best effort until they are there, which matches every publisher.',
        choices=('auto', 'best_effort', 'reliable'),
    ),
    Parameter(
        'durability', Kind.STRING, 'auto', 'QoS of the subscription: auto takes what the '
        'publishers offer, and volatile until they are there, which matches every publisher.',
        choices=('auto', 'volatile', 'transient_local'),
    ),
)  # fmt: skip
