"""What a policy would see at instants of a recording, with nothing played."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from seq_harness.bags.arrivals import Arrivals
from seq_harness.bags.faults import Faults, OnFault
from seq_harness.bags.reading import Bag
from seq_harness.inputs import Inputs
from seq_harness.observation import ObservationSpec, SampledObservation
from seq_harness.settings import Settings


def observations_at(
    bag: Bag,
    settings: Settings,
    spec: ObservationSpec,
    instants_ns: Iterable[int],
    remaps: Mapping[str, str] | None = None,
) -> Iterator[SampledObservation]:
    """
    Yield what a round at each instant sees: the newest of what was logged up to it.

    `instants_ns` rise, in the recording's time. An observation lacks the inputs that have no
    message yet.

    Raises
    ------
    BagError
        The recording cannot be read.

    """
    inputs = Inputs(settings.inputs)
    arrivals = Arrivals(settings.inputs, inputs, Faults(OnFault.USE), bag.decode, remaps or {})
    records = bag.records(arrivals.check(bag.topics, bag.start_ns))
    waiting = next(records, None)
    for instant_ns in instants_ns:
        while waiting is not None and waiting.log_ns <= instant_ns:
            arrivals.put(waiting)
            waiting = next(records, None)
        yield spec.observe(inputs.snapshot(), instant_ns, settings['instruction'])
