"""The newest message of each input, its stamp and its age, undecoded until someone needs it."""

from seq_harness.inputs.inputs import Inputs
from seq_harness.inputs.samples import Arrival, Sample, Snapshot, Still, Verdict

__all__ = ['Arrival', 'Inputs', 'Sample', 'Snapshot', 'Still', 'Verdict']
