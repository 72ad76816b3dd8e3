"""The time before a policy is ready, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import logging

from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.contract.wire import DETAIL_ETA_S
from seq_harness.worker.inference import guarded, LoadedPolicy
from seq_harness.worker.policy import Policy
from seq_harness.worker.thread import PolicyThread

ASK_AGAIN_S = 1.0
"""A client that waits for a policy asks again no later than this."""

log = logging.getLogger('seq_harness.worker')


class Loading:
    """Load a policy on its thread; belongs to the event loop."""

    def __init__(
        self, policy: Policy, most_frames: int, clock_ns: Callable[[], int], debug: bool
    ) -> None:
        self._policy = policy
        self._most_frames = most_frames
        self._clock_ns = clock_ns
        self._debug = debug
        self._began_ns = clock_ns()
        self.failure: TransportError | None = None

    async def run(self, thread: PolicyThread) -> LoadedPolicy | None:
        """Load the policy; None when it could not be loaded, which `failure` then tells of."""
        self._began_ns = self._clock_ns()
        try:
            loaded = await asyncio.wrap_future(thread.submit(self._load))
        except TransportError as error:
            self.failure = error
        else:
            log.info('the policy is ready after %.1f s', self._elapsed_s())
            return loaded
        log.error('the policy could not be loaded: %s', self.failure.detail)
        return None

    def not_ready(self) -> TransportError:
        """Make the error that tells why there is no policy to ask."""
        if self.failure is not None:
            return self.failure
        eta_s = self._eta_s()
        return TransportError(
            ErrorCode.WARMING,
            f'the policy has been loading for {self._elapsed_s():.0f} s',
            retry_after_s=min(eta_s, ASK_AGAIN_S),
            hint='ask again; the worker goes on loading',
            details={DETAIL_ETA_S: eta_s},
        )

    def _load(self) -> LoadedPolicy:
        guarded(self._policy.load, self._debug)
        return guarded(lambda: LoadedPolicy(self._policy, self._most_frames), self._debug)

    def _elapsed_s(self) -> float:
        return (self._clock_ns() - self._began_ns) / 1e9

    def _eta_s(self) -> float:
        """Return what is left of what the policy promised; once over, a quarter more."""
        elapsed_s = self._elapsed_s()
        return round(max(self._policy.load_s - elapsed_s, elapsed_s / 4, 0.1), 1)
