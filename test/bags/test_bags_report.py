"""What a report says of a run, and the page that it becomes."""

from __future__ import annotations

from dataclasses import replace
import time

import numpy as np
import pytest
from seq_harness.bags.report.clipping import clipped
from seq_harness.bags.report.data import (
    Channel,
    Event,
    EventKind,
    Frame,
    Lines,
    Prediction,
    ReportData,
)
from seq_harness.bags.report.figures import as_plain, figures
from seq_harness.bags.report.moments import moments
from seq_harness.bags.report.page import page
from seq_harness.bags.report.thinning import thinned
from support.reports import act, join, parsed, run, with_step

EVIL = '</script><script>alert("gone")</script><img src=http://a.example/x onerror=alert(1)>'


def test_the_largest_jump_comes_first_with_the_chunk_that_took_over_there() -> None:
    data = with_step(run(events=[join(2.0), join(3.0)]), at_s=2.0, size=0.2)
    first = moments(data)[0]
    assert (first.joint, round(first.at_s, 2)) == ('shoulder', 2.0)
    # One step of 0.2 rad in a period of 20 ms.
    assert first.jump == pytest.approx(10.0, rel=0.01)
    assert first.unit == 'rad/s'
    assert first.causes == ('the chunk of act 7 takes over',)


def test_a_jump_that_a_seam_leads_over_names_the_join_before_it() -> None:
    data = with_step(run(events=[join(1.96)]), at_s=2.0, size=0.2)
    assert moments(data)[0].causes == ('the chunk of act 7 takes over, 2 setpoints before',)


def test_a_jump_inside_a_chunk_has_no_cause_but_its_rows() -> None:
    data = with_step(run(events=[join(1.0)]), at_s=2.0, size=0.2)
    assert moments(data)[0].causes == ()


def test_a_jump_after_a_pause_or_by_a_late_setpoint_says_so() -> None:
    data = with_step(run(), at_s=2.0, size=0.2)
    (channel,) = data.channels
    t_s = channel.commanded.t_s.copy()
    t_s[100:] += 0.3
    paused = replace(
        channel, commanded=Lines(channel.commanded.names, t_s, channel.commanded.values)
    )
    causes = moments(replace(data, channels=[paused]))[0].causes
    assert causes == ('0.320 s after the setpoint before', 'sent 300.0 ms late')


def test_a_guard_event_at_a_jump_is_told() -> None:
    guard = Event(2.0, EventKind.GUARD, 'no row of act 6 was played')
    data = with_step(run(events=[guard]), at_s=2.0, size=0.2)
    assert moments(data)[0].causes == ('no row of act 6 was played',)


def test_joints_of_very_different_ranges_are_compared_by_their_range() -> None:
    wide = with_step(run(), at_s=1.0, size=0.2, joint=0)
    both = with_step(wide, at_s=3.0, size=0.05, joint=1)
    assert [each.joint for each in moments(both)[:2]] == ['gripper', 'shoulder']


def test_velocities_jump_by_themselves() -> None:
    values = np.array([[0.0], [0.0], [0.5], [0.5]])
    speed = Channel('base', 'rad/s', Lines(('wheel',), np.arange(4) / 10, values), is_rate=True)
    (only,) = moments(run(channels=[speed]))
    assert (only.jump, only.unit, round(only.at_s, 1)) == (0.5, 'rad/s', 0.2)


def test_a_channel_that_stands_still_or_is_empty_has_no_moments() -> None:
    still = Channel('arm', 'rad', Lines(('j',), np.arange(9) / 10, np.ones((9, 1))))
    empty = Channel('none', 'rad', Lines(('j',), np.zeros(0), np.zeros((0, 1))))
    assert moments(run(channels=[still, empty])) == ()


def test_figures_have_units_and_the_instants_of_their_extremes() -> None:
    (channel,) = run().channels
    late = channel.commanded.t_s.copy()
    late[60] += 0.015
    names, values = channel.commanded.names, channel.commanded.values
    data = run(
        channels=[replace(channel, commanded=Lines(names, late, values))],
        acts=[act(1.0), act(2.0, outcome='WorkerLost: gone')],
        events=[join(1.2)],
    )
    found = {each.name: each for each in figures(data)}
    assert found['arm: setpoints'].value == 200
    assert found['arm: median period'].value == pytest.approx(20.0)
    worst = found['arm: lateness, largest']
    assert worst.value == pytest.approx(15.0)
    assert worst.unit == 'ms'
    assert worst.at_s == pytest.approx(1.215)
    assert found['act: inference, median'].value == 80.0
    assert found['acts without an answer'].value == 1
    assert found['join events'].value == 1


def test_what_was_measured_is_compared_to_the_command_of_its_instant() -> None:
    data = with_step(run(), at_s=2.0, size=0.25)
    found = {each.name: each for each in figures(data)}
    off = found['arm: largest |commanded - measured| of shoulder']
    assert off.value == pytest.approx(0.25, abs=0.02)
    assert (off.at_s or 0.0) >= 2.0


def test_a_thinned_line_keeps_every_spike() -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, (100_000, 2))
    values[31_415, 1], values[92_653, 0] = 50.0, -60.0
    values[500, 0] = np.nan
    drawn = thinned(Lines(('a', 'b'), np.arange(100_000) / 100, values), 4_000)
    assert len(drawn) <= 4_100
    assert np.nanmax(drawn.values[:, 1]) == 50.0
    assert np.nanmin(drawn.values[:, 0]) == -60.0
    assert (np.diff(drawn.t_s) > 0).all()


def test_a_line_within_its_bound_is_drawn_as_it_is() -> None:
    (channel,) = run().channels
    assert thinned(channel.commanded, 1_000) is channel.commanded


def test_a_part_of_a_run_keeps_its_times_and_says_so() -> None:
    data = with_step(run(events=[join(1.0), join(3.0)], acts=[act(1.0)]), at_s=3.0, size=0.2)
    part = clipped(data, 2.0, 9.0)
    (channel,) = part.channels
    assert channel.commanded.t_s[0] == 2.0
    assert len(channel.late_ms) == len(channel.commanded)
    assert [event.at_s for event in part.events] == [3.0]
    assert part.acts == []
    assert 'from 2 s to 4 s' in part.missing[0]


def test_a_page_holds_all_that_it_shows_and_fetches_nothing() -> None:
    frame = Frame(1.0, 'front', 'act 1', b'\xff\xd8\xff')
    seen = parsed(page([run(frames=[frame], acts=[act(1.0)])]))
    assert not [tag for tag, _ in seen.tags if tag in ('link', 'iframe', 'object', 'base')]
    assert all(value.startswith('data:image/jpeg;base64,') for value in seen.values('src'))
    assert len(seen.values('src')) == 1
    assert not seen.values('href', 'srcset', 'action', 'background')
    (policy,) = seen.values('content')
    assert "default-src 'none'" in policy
    assert 'http' not in policy


def test_text_from_outside_is_text_wherever_it_stands() -> None:
    channel = Channel(EVIL, 'rad', Lines((EVIL,), np.arange(9) / 9, np.eye(9)[:, :1]))
    data = run(
        title=EVIL,
        source=EVIL,
        reason=EVIL,
        channels=[channel],
        acts=[act(1.0, outcome=EVIL)],
        events=[Event(0.1, EventKind.GUARD, EVIL), join(0.2, EVIL)],
        frames=[Frame(0.5, EVIL, EVIL, b'', media=EVIL)],
        figures={EVIL: EVIL},
        facts={EVIL: EVIL},
        missing=[EVIL],
    )
    html = page([data, data])
    plain = parsed(page([run(frames=[Frame(0.5, 'a', 'b', b'')])]))
    seen = parsed(html)
    scripts = [tag for tag, _ in plain.tags].count('script')
    assert [tag for tag, _ in seen.tags].count('script') == scripts
    assert not seen.values('onerror')
    assert all(value.startswith('data:') for value in seen.values('src'))
    assert EVIL in seen.text
    # What plotly writes it reads as markup, so that must be escaped once more.
    for trace in seen.data['figure']['data']:
        for text in (trace.get('name', ''), *trace.get('text', [])):
            assert '<' not in text
    assert not [a for a in seen.data['figure']['layout'].values() if _titled_with_a_tag(a)]


def _titled_with_a_tag(axis: object) -> bool:
    title = axis.get('title', {}) if isinstance(axis, dict) else {}
    text = str(title.get('text', '')).replace('<br>', '')
    return '<' in text or '>' in text


def test_the_page_begins_with_the_end_of_the_run_and_its_jumps() -> None:
    text = parsed(page([with_step(run(reason='guard: limits'), 2.0, 0.2)])).text
    places = [
        text.index(each) for each in ('guard: limits', 'jumped most', 'Over time', 'Figures')
    ]
    assert places == sorted(places)


def test_a_row_a_joint_shows_command_measurement_chunks_and_joins() -> None:
    (channel,) = run().channels
    rows = Prediction('arm', np.array([1.0, 1.1]), np.zeros((2, 2)), 'act 1')
    seen = parsed(page([run(predictions=[rows], events=[join(1.0)])]))
    for name in ('commanded', 'measured', 'chunks as predicted (odd)', 'first of a new chunk'):
        axes = {trace['yaxis'] for trace in seen.traces(name)}
        assert len(axes) == len(channel.commanded.names), name


def test_lines_over_the_same_instants_share_them() -> None:
    seen = parsed(page([run()]))
    xs = [trace['x']['array'] for trace in seen.traces('commanded')]
    assert len(xs) == 2
    assert len(set(xs)) == 1


def test_a_wild_chunk_does_not_flatten_what_was_commanded() -> None:
    wild = Prediction('arm', np.array([1.0, 1.1]), np.full((2, 2), 1e6), 'act 1')
    seen = parsed(page([run(predictions=[wild])]))
    (trace, *_) = seen.traces('commanded')
    low, high = seen.data['figure']['layout']['yaxis' + trace['yaxis'][1:]]['range']
    assert -2.0 < low < high < 2.0


def test_two_runs_stand_side_by_side_on_shared_axes() -> None:
    before = run(figures={'rows': {'emitted': 10}})
    after = run(title='another', figures={'rows': {'emitted': 12}})
    seen = parsed(page([before, after]))
    axes = [{trace['yaxis'] for trace in seen.traces(f'{label}: commanded')} for label in 'AB']
    assert axes[0] == axes[1]
    assert len(axes[0]) == 2
    assert 'B - A' in seen.text
    assert '+2' in seen.text


def test_joints_of_one_name_share_a_row_whatever_their_channels_are_called() -> None:
    (channel,) = run().channels
    other = run(channels=[replace(channel, name='/arm/commands')])
    seen = parsed(page([run(), other]))
    axes = [[trace['yaxis'] for trace in seen.traces(f'{label}: commanded')] for label in 'AB']
    assert axes[0] == axes[1]


def test_one_joint_on_two_channels_of_a_run_has_a_row_each() -> None:
    (channel,) = run().channels
    both = run(channels=[channel, replace(channel, name='arm (preview)')])
    seen = parsed(page([both]))
    assert len({trace['yaxis'] for trace in seen.traces('commanded')}) == 4


def test_a_page_is_about_one_run_or_two() -> None:
    with pytest.raises(ValueError, match='one run or two, got 3'):
        page([run(), run(), run()])


def test_a_run_of_which_nothing_is_known_is_a_page_that_says_so() -> None:
    nothing = ReportData('bare', 'a test', 0, 0.0, missing=['No setpoint was sent.'])
    seen = parsed(page([nothing]))
    assert 'No setpoint was sent.' in seen.text
    assert 'Nothing says why it ended' in seen.text
    assert as_plain(nothing)['moments'] == []


def test_ten_minutes_at_100_hz_are_a_small_page_at_once() -> None:
    began_s = time.perf_counter()
    t_s = np.arange(60_000) / 100
    values = np.sin(t_s[:, None] * (0.3 + 0.1 * np.arange(6)))
    names = tuple(f'joint_{number}' for number in range(1, 7))
    lines = Lines(names, t_s, values)
    chunks = [
        Prediction('arm', at_s + np.arange(50) / 100, np.zeros((50, 6)), f'act {number}')
        for number, at_s in enumerate(np.arange(0, 600, 0.5))
    ]
    channel = Channel('arm', 'rad', lines, lines, t_s)
    acts = [act(float(at_s)) for at_s in np.arange(0, 600, 0.5)]
    joins = [join(float(at_s)) for at_s in np.arange(0.1, 600, 0.5)]
    html = page(
        [run(600.0, 100.0, channels=[channel], predictions=chunks, acts=acts, events=joins)]
    )
    # 2.5 MB and half a second were measured for the numbers; plotly itself is 5 MB.
    assert len(html) < 20e6
    assert time.perf_counter() - began_s < 20.0


def test_a_very_long_line_is_drawn_with_fewer_points() -> None:
    t_s = np.arange(2_000_000) / 1000
    lines = Lines(('j',), t_s, np.sin(t_s)[:, None])
    html = page([run(2000.0, channels=[Channel('arm', 'rad', lines)])])
    assert len(html) < 20e6
