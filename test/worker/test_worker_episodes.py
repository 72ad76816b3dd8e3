"""Episodes from their first act to their end, over a real websocket."""

from __future__ import annotations

import threading
from typing import Any

from seq_harness.contract.episode import Episode
from seq_harness.contract.own_io import Observations, Stream
from seq_harness.worker.limits import Limits
from support.waiting import PATIENCE_S
from worker.worker_policies import every, Recorder, serving


def test_an_episode_is_one_object_until_its_end() -> None:
    class Counts:
        def __init__(self) -> None:
            self.log: list[str] = []

        def episode_start(self, episode: Episode) -> None:
            self.log.append(f'start {episode.id}')

        def episode_end(self, episode: Episode) -> None:
            self.log.append(f'end {episode.id} {episode.steps}')

        def infer(self, inputs: Any, episode: Episode) -> Any:
            episode.state.setdefault('acts', []).append(inputs)
            return {'steps': episode.steps, 'acts': episode.state['acts'], 'log': self.log}

    with serving(Counts()) as client:
        assert client.connect().body['keeps_state'] is True
        client.act('a', episode_id='e', seq=0)
        second = client.act('b', episode_id='e', seq=1).outputs
        assert (second['steps'], second['acts']) == (1, ['a', 'b'])
        assert client.ask('episode_end', {'episode_id': 'e'}).body['ended'] is True
        assert client.ask('episode_end', {'episode_id': 'e'}).body['ended'] is False
        fresh = client.act('c', episode_id='e', seq=0).outputs
    assert fresh == {'steps': 0, 'acts': ['c'], 'log': ['start e', 'end e 2', 'start e']}


def test_an_act_that_waits_when_its_episode_ends_is_told() -> None:
    with serving(every()) as client:
        act = client.send('act', {'inputs': 'o2', 'episode_id': 'e', 'seq': 2})
        client.ask('episode_end', {'episode_id': 'e'})
        answer = client.receive(act)
    assert (answer.status, answer.code) == (410, 'gone')


def test_an_idle_episode_ends_and_its_policy_is_told() -> None:
    over = threading.Event()

    class Stateful:
        def infer(self, inputs: Any, episode: Episode) -> Any:
            return episode.steps

        def episode_end(self) -> None:
            over.set()

    with serving(Stateful(), Limits(episode_idle_s=0.1)) as client:
        client.act(1, episode_id='e', seq=0)
        assert over.wait(PATIENCE_S)
        lost = client.act(1, episode_id='e', seq=1)
        assert (lost.status, lost.reason) == (409, 'episode_lost')
        assert client.act(1, episode_id='e', seq=0).outputs == 0


def test_after_an_idle_end_a_policy_without_state_asks_for_its_window_at_once() -> None:
    over = threading.Event()

    class Window(Recorder):
        keeps_state = False

        def episode_end(self) -> None:
            over.set()

    window = Window(Observations({'cam': Stream(at=[-1, 0])}))
    with serving(window, Limits(episode_idle_s=0.1, stream_wait_s=60)) as client:
        client.act({'cam': 0}, episode_id='e', seq=0)
        assert over.wait(PATIENCE_S)
        missing = client.act({'cam': 2}, episode_id='e', seq=2)
        assert missing.body['details'] == {'reason': 'frames_missing', 'from': 1}
        client.observe('e', {1: {'cam': 1}})
        assert client.act({'cam': 2}, episode_id='e', seq=2).outputs['read']['steps'] == [1, 2]


def test_a_policy_with_episodes_of_its_own_serves_one_at_a_time() -> None:
    class Own:
        episodes = 'own'

        def infer(self, inputs: Any) -> Any:
            return inputs

    with serving(Own()) as client:
        client.act(1, episode_id='a', seq=0)
        busy = client.act(1, episode_id='b', seq=0)
        assert (busy.status, busy.code) == (429, 'busy')
        assert busy.body['retry_after_s'] > 0
        client.ask('episode_end', {'episode_id': 'a'})
        assert client.act(2, episode_id='b', seq=0).outputs == 2
