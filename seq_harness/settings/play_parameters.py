"""The parameters of playing: when to ask, how to join, what may go out."""

from __future__ import annotations

from seq_harness.settings.parameter import Kind, Parameter

AUTOMATIC = -1.0
"""Lets a parameter follow from others."""

ON_BREACH = ('refuse', 'clamp', 'ramp')

PLAY = (
    Parameter(
        'asking', Kind.STRING, 'lead', 'When to ask for the next chunk: a lead before the plan '
        'ends, when it has drained, when at most a share of it is held, every so many rows, or as '
        'real-time chunking does, with the rows that will still be executed.',
        choices=('lead', 'drain', 'threshold', 'every', 'rtc'),
    ),
    Parameter(
        'lead_s', Kind.DOUBLE, 0.0, 'The lead of an ask, in seconds; 0 measures it from the '
        'answers.', 0.0, 60.0,
    ),
    Parameter(
        'lead_margin_s', Kind.DOUBLE, 0.1, 'What is added to the expected delay of an answer to '
        'make the measured lead, in seconds.', 0.0, 60.0,
    ),
    Parameter(
        'lead_cap_s', Kind.DOUBLE, 2.0, 'The longest lead, and the lead until a delay is known, '
        'in seconds. A chunk that continues the plan bounds it further.', 0.01, 60.0,
    ),
    Parameter(
        'delay_estimate', Kind.STRING, 'max', 'What the delays of the last answers let expect of '
        'the next one.', choices=('max', 'mean', 'median', 'min', 'percentile'),
    ),
    Parameter(
        'delay_window', Kind.INTEGER, 20, 'How many answers the estimate goes by; the first of an '
        'episode never counts.', 1, 10000,
    ),
    Parameter(
        'delay_percentile', Kind.DOUBLE, 90.0, 'For the estimate percentile: which one.',
        0.0, 100.0,
    ),
    Parameter(
        'ask_threshold', Kind.DOUBLE, 0.5, 'For asking threshold: the share of a chunk that is '
        'held when the next is asked for.', 0.0, 1.0,
    ),
    Parameter(
        'ask_rows', Kind.INTEGER, 8, 'For asking every: rows from one ask to the next; for rtc: '
        'rows of a chunk that are over before one.', 1, 100000,
    ),
    Parameter(
        'handoff', Kind.STRING, 'continue', 'How a chunk takes over: continue the old plan row '
        'for row, start at its own first row on arrival, at its observation, after the old plan '
        '(append), or replace it with a seam: none, a crossfade, a velocity seam, an ensemble of '
        'all chunks, or an aggregate of two.',
        choices=(
            'continue', 'arrival', 'observation', 'append', 'replace', 'crossfade',
            'velocity_seam', 'ensemble', 'aggregate',
        ),
    ),
    Parameter(
        'anchor', Kind.STRING, '', 'Where a chunk that replaces the plan with a seam is placed; '
        'empty continues the old plan row for row.',
        choices=('', 'continue', 'arrival', 'observation'),
    ),
    Parameter(
        'seam_rows', Kind.INTEGER, 4, 'For hand-off continue: over how many rows the velocity of '
        'the old plan is led into the new; 0 cuts. A preview always cuts.', 0, 1000,
    ),
    Parameter(
        'blend_rows', Kind.INTEGER, 4, 'How many rows a crossfade, a velocity seam, or rtc after '
        'a late answer, blends.', 1, 1000,
    ),
    Parameter(
        'ensemble_decay', Kind.DOUBLE, 0.01, 'For hand-off ensemble: how much less each newer '
        'chunk weighs, as the m of exp(-m i).', 0.0, 100.0,
    ),
    Parameter(
        'aggregate', Kind.STRING, 'weighted', 'For hand-off aggregate: the share of the new '
        'chunk, 0.7, 1, 0.5 or 0.3.', choices=('weighted', 'latest', 'average', 'conservative'),
    ),
    Parameter(
        'horizon_rows', Kind.INTEGER, 0, 'The most rows of a chunk to play; 0 plays what the '
        'policy declares.', 0, 100000,
    ),
    Parameter(
        'horizon_s', Kind.DOUBLE, 0.0, 'The longest part of a chunk to play, in seconds; 0 for no '
        'bound.', 0.0, 3600.0,
    ),
    Parameter(
        'output_hz', Kind.DOUBLE, 0.0, 'Commands a second; 0 sends the rows themselves.',
        0.0, 1000.0,
    ),
    Parameter(
        'interpolation', Kind.STRING, 'linear', 'What leads from row to row at output_hz.',
        choices=('hold', 'linear', 'cubic'),
    ),
    Parameter(
        'row_means', Kind.STRING, 'reached_at', 'What a row says: be there at its instant, or go '
        'there from its instant on.', choices=('reached_at', 'target_from'),
    ),
    Parameter(
        'guard_limits', Kind.STRING, 'refuse', 'What becomes of a row outside its limits.',
        choices=('refuse', 'clamp'),
    ),
    Parameter(
        'guard_step', Kind.STRING, 'refuse', 'What becomes of a row that is too far from the one '
        'before: its chunk is refused, or it is approached as fast as max_velocity allows.',
        choices=ON_BREACH,
    ),
    Parameter(
        'guard_start', Kind.STRING, 'refuse', 'What becomes of a first row too far from the '
        'measured state: its chunk is refused, it is clamped to max_start_distance, or it is '
        'ramped at max_velocity.', choices=ON_BREACH,
    ),
    Parameter(
        'tracking_error_s', Kind.DOUBLE, 0.5, 'How long a channel may be further than its '
        'max_tracking_error from its command before the episode ends, in seconds.', 0.0, 60.0,
    ),
    Parameter(
        'max_ask_age_s', Kind.DOUBLE, 0.0, 'An older observation is not asked about, in seconds; '
        '0 for no bound.', 0.0, 60.0,
    ),
    Parameter(
        'max_answer_age_s', Kind.DOUBLE, 0.0, 'A chunk whose observation is older when it arrives '
        'is dropped, in seconds; 0 for no bound.', 0.0, 3600.0,
    ),
    Parameter(
        'max_starved_s', Kind.DOUBLE, AUTOMATIC, 'An episode without rows for this long ends, in '
        'seconds; -1 takes 10, or 5 more than reconnect_s if that is longer; 0 for no bound. The '
        'time of an act younger than act_timeout_s, of making the connection again, and of a '
        'pause does not count.', AUTOMATIC, 3600.0,
    ),
    Parameter(
        'decelerate_s', Kind.DOUBLE, 0.3, 'For starvation decelerate: how long coming to rest '
        'takes, in seconds.', 0.01, 60.0,
    ),
    Parameter(
        'max_ahead_s', Kind.DOUBLE, 0.5, 'For whole-chunk channels: how far ahead a plan may '
        'reach, and so how long a controller may play on without the harness, in seconds.',
        0.01, 60.0,
    ),
)  # fmt: skip

PLAY_CHANNEL = (
    Parameter(
        'kind', Kind.STRING, 'position', 'What the values of the channel are.',
        choices=('position', 'angle', 'velocity', 'effort', 'delta', 'binary', 'pose'),
    ),
    Parameter(
        'delta_of', Kind.STRING, '', 'For kind delta, and required there: a change since the '
        'previous row, or since the observation, which is then sent as a position.',
        choices=('', 'previous', 'observation'),
    ),
    Parameter(
        'starvation', Kind.STRING, '', 'What the channel does without rows; empty holds a '
        'position and sends zero to a rate.',
        choices=('', 'hold', 'finish_and_hold', 'zero', 'decelerate', 'stop'),
    ),
    Parameter(
        'horizon', Kind.STRING, 'row', 'What the controller is sent: a row at a time, or the plan '
        'of a chunk, which takes a joint_trajectory.', choices=('row', 'chunk'),
    ),
    Parameter(
        'max_tracking_error', Kind.DOUBLE, 0.0, 'How far a measured joint may be from its '
        'command, in rad or m; 0 for no bound.', 0.0,
    ),
    Parameter(
        'controller_timeout_s', Kind.DOUBLE, 0.0, 'For velocities and efforts, and required '
        'there without require_watchdog: after how long without a command the controller stops by '
        'itself, in seconds.',
        0.0, 60.0,
    ),
)  # fmt: skip
