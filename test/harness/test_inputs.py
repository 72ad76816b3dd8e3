"""Inputs: what refreshes them, what makes them stale, and what a stale one does."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
import pytest
from seq_harness.inputs import Inputs, Verdict
from seq_harness.observation import ObservationRefused, ObservationSpec
from seq_harness.settings import Settings
from seq_harness.settings.parameters import SettingsError
from support.robots import Bench, joint_state, MS, S, settings_of

CAMERA: dict[str, Any] = {
    'input_names': ['front', 'state'],
    'inputs__front__topic': 'camera/image_raw/compressed',
    'inputs__front__type': 'compressed_image',
}
STATUS: dict[str, Any] = {
    'input_names': ['state', 'mode'],
    'inputs__mode__topic': 'robot_program_running',
    'inputs__mode__type': 'bool',
    'inputs__mode__available': ['true'],
}


def stamped(stamp_ns: int, **fields: Any) -> SimpleNamespace:
    sec, nanosec = divmod(stamp_ns, S)
    header = SimpleNamespace(stamp=SimpleNamespace(sec=sec, nanosec=nanosec))
    return SimpleNamespace(header=header, **fields)


def jpeg(shade: int, at_ns: int, *, spoilt: bool = False) -> SimpleNamespace:
    """Return a frame; a spoilt one has its first and last bytes, and nothing between them."""
    out = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), shade, np.uint8)).save(out, 'JPEG')
    data = out.getvalue()
    if spoilt:
        data = data[:20] + bytes(64) + data[-2:]
    return stamped(at_ns, format='jpeg', data=data)


class Camera:
    """The inputs of a camera, and what a policy reads of them."""

    def __init__(self, **changes: Any) -> None:
        self.settings: Settings = settings_of(**{**CAMERA, **changes})
        self.inputs = Inputs(self.settings.inputs)
        self.spec = ObservationSpec(self.settings.inputs, {}, '')

    def put(self, frame: SimpleNamespace, at_ns: int) -> Verdict:
        return self.inputs.put('front', frame, now_ns=at_ns, ros_now_ns=at_ns).verdict

    def read(self, at_ns: int) -> Any:
        return self.spec.observe(self.inputs.snapshot(), at_ns, '')['front']

    def stale(self, at_ns: int) -> bool:
        return 'front' in self.inputs.stale(self.inputs.snapshot(), at_ns)


def test_g12_a_frame_that_does_not_decode_takes_its_age_back() -> None:
    camera = Camera()
    camera.put(jpeg(10, 1 * S), 1 * S)
    camera.put(jpeg(0, 1400 * MS, spoilt=True), 1400 * MS)
    assert not camera.stale(1600 * MS)
    with pytest.raises(ObservationRefused, match="'front' does not decode"):
        camera.read(1600 * MS)
    assert camera.stale(1600 * MS)
    assert camera.read(1600 * MS)[0, 0, 0] == 10


def test_g12_once_a_frame_did_not_decode_each_must_at_its_arrival_until_one_does() -> None:
    camera = Camera()
    camera.put(jpeg(0, 1 * S, spoilt=True), 1 * S)
    with pytest.raises(ObservationRefused):
        camera.read(1 * S)
    assert camera.put(jpeg(0, 2 * S, spoilt=True), 2 * S) is Verdict.REFUSED
    assert 'front' in camera.inputs.missing(camera.inputs.snapshot())
    assert camera.put(jpeg(30, 3 * S), 3 * S) is Verdict.ACCEPTED
    assert camera.read(3 * S)[0, 0, 0] == 30


def test_g12_frames_that_stay_the_same_to_the_byte_are_those_of_a_frozen_camera() -> None:
    camera = Camera(inputs__front__frozen_after_s=1.0)
    verdicts = [camera.put(jpeg(10, at * S // 10), at * S // 10) for at in range(10, 30)]
    assert verdicts[:10] == [Verdict.ACCEPTED] * 10
    assert verdicts[10:] == [Verdict.REFUSED] * 10
    assert camera.stale(2500 * MS)
    assert camera.put(jpeg(11, 3 * S), 3 * S) is Verdict.ACCEPTED


def test_a_simulated_camera_that_sees_the_same_is_not_frozen_by_default() -> None:
    camera = Camera()
    assert {camera.put(jpeg(10, at * S), at * S) for at in range(1, 9)} == {Verdict.ACCEPTED}


def put_joints(inputs: Inputs, names: list[str], sequence: int, at_ns: int) -> Verdict:
    message = joint_state([0.0] * len(names), at_ns, names)
    return inputs.put('state', message, now_ns=at_ns, ros_now_ns=at_ns, sequence=sequence).verdict


def test_g3_two_publishers_of_the_same_joints_are_told_by_name() -> None:
    inputs = Inputs(settings_of().inputs)
    verdicts = [
        put_joints(inputs, ['j1', 'j2'], number, S + at * 10 * MS)
        for at, number in enumerate([900, 7, 901, 8, 902, 9, 903, 10, 904, 11])
    ]
    assert verdicts[-1] is Verdict.CONTESTED
    said = inputs.put(
        'state', joint_state([0.0, 0.0], 2 * S), now_ns=S, ros_now_ns=2 * S, sequence=1
    )
    assert 'joint_states: two publishers of j1, j2: stop one' in said.reason


def test_g3_two_publishers_of_different_joints_are_merged_and_are_no_conflict() -> None:
    inputs = Inputs(settings_of().inputs)
    for at in range(20):
        assert put_joints(inputs, ['j1'], 900 + at, S + at * MS) is Verdict.ACCEPTED
        assert put_joints(inputs, ['j2'], 7 + at, S + at * MS) is Verdict.ACCEPTED
    assert inputs.snapshot()['state'].value == {'j1': 0.0, 'j2': 0.0}


def test_a_publisher_that_was_started_anew_is_no_conflict() -> None:
    inputs = Inputs(settings_of().inputs)
    numbers = [900, 901, 1, 2, 3, 4]
    verdicts = {put_joints(inputs, ['j1', 'j2'], n, S + n * MS) for n in numbers}
    assert verdicts == {Verdict.ACCEPTED}


def test_joints_of_two_topics_make_one_vector_as_old_as_its_oldest() -> None:
    inputs = Inputs(settings_of(inputs__state__more_topics=['gripper/joint_states']).inputs)
    for name, topic, at_ns in (('j1', 'joint_states', S), ('j2', 'gripper/joint_states', 2 * S)):
        message = joint_state([0.1], at_ns, [name])
        inputs.put('state', message, now_ns=at_ns, ros_now_ns=at_ns, topic=topic)
    assert inputs.snapshot()['state'].value == {'j1': 0.1, 'j2': 0.1}
    assert inputs.stale(inputs.snapshot(), 1600 * MS) == ['state']


def test_g13_a_camera_far_behind_another_is_stale_by_name() -> None:
    changes = {
        'input_names': ['state', 'front', 'wrist'],
        'inputs__front__topic': 'front',
        'inputs__front__type': 'compressed_image',
        'inputs__wrist__topic': 'wrist',
        'inputs__wrist__type': 'compressed_image',
    }
    inputs = Inputs(settings_of(**changes).inputs, max_camera_spread_s=0.1)
    inputs.put('wrist', jpeg(1, S), now_ns=S, ros_now_ns=S)
    inputs.put('front', jpeg(1, S + 50 * MS), now_ns=S, ros_now_ns=S + 50 * MS)
    assert inputs.stale(inputs.snapshot(), S) == []
    inputs.put('front', jpeg(1, S + 150 * MS), now_ns=S, ros_now_ns=S + 150 * MS)
    assert inputs.stale(inputs.snapshot(), S) == ['wrist']


def played(bench: Bench) -> None:
    """Let the bench play its first rows."""
    bench.begin()
    bench.give(*[0.01 * row for row in range(30)])
    bench.clock.now = bench.harness.round()


def run(bench: Bench, length_ns: int, **say: Any) -> None:
    """Run rounds for so long, without joint states; statuses of `say` are said each round."""
    until = bench.clock.now + length_ns
    while bench.clock.now < until and bench.live:
        for name, data in say.items():
            now = bench.clock.now
            message = SimpleNamespace(data=data)
            bench.inputs.put(name, message, now_ns=now, ros_now_ns=now)
        bench.clock.now = max(bench.harness.round(), bench.clock.now + MS)


def test_g13_an_input_that_may_hold_holds_the_arm_and_then_ends_the_episode() -> None:
    bench = Bench(inputs__state__on_stale='hold', inputs__state__hold_s=0.5)
    played(bench)
    run(bench, 600 * MS)
    held, asked = len(bench.sent), len(bench.answers)
    run(bench, 200 * MS)
    assert bench.live
    assert len(bench.sent) == held, 'nothing goes out while the input is late'
    bench.state()
    bench.harness.round()
    assert len(bench.answers) == asked + 1, 'the policy is asked afresh'
    run(bench, 1100 * MS)
    assert bench.reason == 'stale_input: state'


def test_an_input_that_may_be_old_never_ends_the_episode() -> None:
    bench = Bench(
        input_names=['state', 'light'],
        inputs__light__topic='light',
        inputs__light__type='float64',
        inputs__light__on_stale='continue',
    )
    now = bench.clock.now
    bench.inputs.put('light', SimpleNamespace(data=0.5), now_ns=now, ros_now_ns=now)
    bench.begin()
    bench.until(now + 3 * S)
    assert bench.live


def test_what_bounds_the_rows_may_not_be_old() -> None:
    with pytest.raises(SettingsError, match=r"'inputs.state.on_stale' must be stop or hold"):
        settings_of(inputs__state__on_stale='continue')


def test_nothing_plays_while_a_status_says_that_the_arm_is_not_available() -> None:
    bench = Bench(**STATUS)
    bench.begin()
    assert bench.answers == [], 'an absent status is no available one'
    run(bench, 50 * MS, mode=False)
    assert bench.answers == []
    run(bench, 50 * MS, mode=True)
    assert len(bench.answers) == 1
    bench.give(0.0, 0.01)
    run(bench, 50 * MS, mode=True)
    sent = len(bench.sent)
    assert sent
    bench.state()
    run(bench, 150 * MS, mode=False)
    assert len(bench.sent) == sent


def test_a_status_that_is_silent_for_too_long_is_no_available_one() -> None:
    inputs = Inputs(settings_of(**STATUS).inputs)
    assert 'has said nothing yet' in str(inputs.unavailable({}, S))
    arrival = inputs.put('mode', SimpleNamespace(data=False), now_ns=S, ros_now_ns=S)
    assert arrival.verdict is Verdict.UNAVAILABLE
    assert "says 'false'" in str(inputs.unavailable(inputs.snapshot(), S))
    inputs.put('mode', SimpleNamespace(data=True), now_ns=S, ros_now_ns=S)
    assert inputs.unavailable(inputs.snapshot(), S) is None
    assert 'for 1.00 s' in str(inputs.unavailable(inputs.snapshot(), 2 * S))
    assert 'mode' not in inputs.missing({})


def test_the_policy_does_not_read_a_status() -> None:
    assert Bench(**STATUS).pipeline.spec.keys == {'state', 'prompt'}


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        ({'inputs__mode__available': []}, "'inputs.mode.available' must be given for a bool"),
        ({'inputs__state__available': ['x']}, "'inputs.state.available' must be a text"),
        ({'inputs__state__frozen_after_s': 1.0}, "'inputs.state.frozen_after_s' must be of a cam"),
        ({'inputs__mode__more_topics': ['x']}, "'inputs.mode.more_topics' must be of named"),
    ],
)
def test_what_an_input_of_that_type_cannot_have_is_refused(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_of(**{**STATUS, **change})


def test_g9_a_frame_that_cannot_be_trusted_is_refused_with_its_topic() -> None:
    camera = Camera()
    broken = stamped(S, format='jpeg', data=b'nothing like a picture')
    arrival = camera.inputs.put('front', broken, now_ns=S, ros_now_ns=S)
    assert arrival.verdict is Verdict.REFUSED
    assert arrival.reason.startswith('camera/image_raw/compressed: expected a JPEG or PNG')


def test_diagnostics_that_do_not_mention_the_arm_do_not_refresh_its_status() -> None:
    changes = {
        'inputs__mode__topic': '/diagnostics',
        'inputs__mode__type': 'diagnostic_array',
        'inputs__mode__joints': ['arm'],
        'inputs__mode__available': ['ok'],
    }
    inputs = Inputs(settings_of(**{**STATUS, **changes}).inputs)
    for at_ns, name in ((S, 'arm'), (2 * S, 'camera')):
        status = SimpleNamespace(name=name, level=0, values=[])
        inputs.put('mode', stamped(at_ns, status=[status]), now_ns=at_ns, ros_now_ns=at_ns)
    assert inputs.unavailable(inputs.snapshot(), S) is None
    assert 'for 1.00 s' in str(inputs.unavailable(inputs.snapshot(), 2 * S))


def test_g3_a_joint_on_two_topics_is_told_while_both_speak() -> None:
    inputs = Inputs(settings_of(inputs__state__more_topics=['other']).inputs)

    def put(topic: str, at_ns: int) -> Verdict:
        message = joint_state([0.0, 0.0], at_ns)
        arrival = inputs.put(
            'state', message, now_ns=at_ns, ros_now_ns=at_ns, topic=topic, sequence=at_ns // MS
        )
        return arrival.verdict

    said = [put(('joint_states', 'other')[at % 2], S + at * 10 * MS) for at in range(10)]
    assert said[-1] is Verdict.CONTESTED
    later = [put('joint_states', 4 * S + at * 10 * MS) for at in range(10)]
    assert later == [Verdict.ACCEPTED] * 10
