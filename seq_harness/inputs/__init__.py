"""The newest message of each input, its stamp and its age, undecoded until someone needs it."""

from seq_harness.inputs.inputs import Inputs
from seq_harness.inputs.samples import Arrival, InputChanged, Sample, Snapshot, Still, Verdict

__all__ = ['Arrival', 'InputChanged', 'Inputs', 'Sample', 'Snapshot', 'Still', 'Verdict']
