"""Stream observations to a policy worker and play its chunks as setpoints."""
