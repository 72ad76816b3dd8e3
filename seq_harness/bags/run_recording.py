"""The recorder of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
import logging
from pathlib import Path
from typing import Any

from seq_harness.bags.record_format import (
    Arrived,
    Begin,
    Clocks,
    EpisodeChange,
    Notice,
    Request,
    RULES,
    VERSION,
)
from seq_harness.bags.record_shaping import Images, Shaping
from seq_harness.bags.record_taking import NotedRequests, RecordingTape
from seq_harness.bags.record_values import pack_declaration, pack_settings, pack_value
from seq_harness.bags.record_writing import free_path, RecordWriter
from seq_harness.bags.taping import taped, taped_start, TapedScope
from seq_harness.bags.unrecorded import Unrecorded
from seq_harness.bags.versions import versions
from seq_harness.contract.connect import WorkerDeclaration
from seq_harness.episode import Start
from seq_harness.harness import Harness, Parts, RequestAnswer, State
from seq_harness.inputs import Arrival, Verdict
from seq_harness.playback.uplink import PolicyScope
from seq_harness.settings import Settings

logger = logging.getLogger(__name__)


class RunRecorder(Unrecorded):
    """Records a run; each method is called by the thread that does what it names."""

    def __init__(
        self,
        path: Path | str,
        settings: Settings,
        declaration: WorkerDeclaration,
        *,
        now_ns: Callable[[], int],
        ros_now_ns: Callable[[], int],
        serialise: Callable[[Any], bytes],
        period_ns: int,
        instruction: str,
        playback_clock: str,
        may_wait: bool = False,
        complain: Callable[[str], None] | None = None,
    ) -> None:
        """
        Begin a record at `path`, or beside it where that is there already.

        `now_ns` reads the playback clock; `serialise` gives the CDR of a message; whoever hands
        something over waits for the disk only where it `may_wait`; `complain` hears, from any
        thread, what the record lacks.

        Raises
        ------
        BagError
            The file cannot be made.

        """
        self._now_ns = now_ns
        self._ros_now_ns = ros_now_ns
        self._wrong: dict[str, str] = {}  # owner: the executor's thread
        self._changed = False  # set by any thread, cleared by the paced one
        clocks = self._clocks()
        images = Images(settings['record_images'])
        begin = Begin(
            VERSION,
            clocks,
            period_ns,
            versions(),
            pack_settings(_told(settings)),
            pack_declaration(declaration),
            instruction,
            images.value,
            playback_clock,
            RULES,
        )
        offset_ns = clocks.ros_ns - clocks.t_ns
        shaping = Shaping(settings, images, serialise, lambda t_ns: t_ns + offset_ns)
        self.path = free_path(Path(path).expanduser())
        self._writer = RecordWriter(
            self.path,
            begin,
            shaping,
            self._clocks,
            may_wait=may_wait,
            complain=complain or logger.error,
        )
        self._tape = RecordingTape(self._writer.put, now_ns)

    def parts(self, parts: Parts) -> Parts:
        requests = NotedRequests(self._tape, self._requested)

        def on_change() -> None:
            self._changed = True
            parts.on_change()

        wake = self.waking('request', parts.wake)
        made = replace(parts, requests=requests, wake=wake, on_change=on_change)
        return taped(made, self._tape)

    def episode(self, scope: PolicyScope, start: Start) -> tuple[PolicyScope, Start]:
        noted = self._tape.scope(TapedScope(self._tape, scope))
        return noted, taped_start(self._tape, start)

    def stamping(self, ros_now_ns: Callable[[], int]) -> Callable[[], int]:
        return lambda: self._tape.read('ros_ns', ros_now_ns, 0)

    def waking(self, cause: str, wake: Callable[[], None]) -> Callable[[], None]:
        def woken() -> None:
            self._tape.woke(cause)
            wake()

        return woken

    def round(self, harness: Harness) -> int:
        resume_ns = self._tape.round(harness)
        self._note_state(harness)
        return resume_ns

    def prepare(self, harness: Harness, instant_ns: int) -> bool:
        return self._tape.prepare(harness, instant_ns)

    def close_harness(self, harness: Harness, reason: str) -> None:
        self._tape.close(harness, reason)
        self._note_state(harness)

    def arrived(
        self, name: str, topic: str, sequence: int | None, at: tuple[int, int], arrival: Arrival
    ) -> None:
        now_ns, ros_now_ns = at
        verdict = arrival.verdict.value
        self._writer.put(
            Arrived(now_ns, ros_now_ns, name, topic, sequence, verdict, arrival.reason)
        )

    def told(self, name: str, reason: str, verdict: Verdict) -> None:
        if self._wrong.get(name, '') != reason:
            self._wrong[name] = reason
            self._writer.put(Notice(self._now_ns(), name, verdict.value, reason))

    def figures(self) -> Mapping[str, Any]:
        return {'record': self._writer.figures()}

    def close(self) -> None:
        self._writer.close()

    def _clocks(self) -> Clocks:
        return Clocks(self._now_ns(), self._ros_now_ns())

    def _requested(self, name: str, detail: str, answer: RequestAnswer) -> None:
        request = Request(self._now_ns(), name, detail, answer.accepted, answer.reason)
        self._writer.put(request)

    def _note_state(self, harness: Harness) -> None:
        """Note a new state; between rounds, so that what is read for it is no reading."""
        if not self._changed:
            return
        self._changed = False
        report = harness.report()
        ended = report.state is State.IDLE
        figures = pack_value(report.figures) if ended else {}
        self._writer.put(
            EpisodeChange(
                self._now_ns(), report.number, report.state.value, report.reason, figures
            )
        )


def _told(settings: Settings) -> Settings:
    """Leave out of addresses what may be a secret."""
    told = {name: _address(settings[name]) for name in ('worker_url', 'gateway_url')}
    return replace(settings, general={**settings.general, **told})


def _address(url: str) -> str:
    """Return an address without its user and password."""
    scheme, mark, rest = url.partition('://')
    return f'{scheme}{mark}{rest.rpartition("@")[2]}' if mark else url
