"""Faults that are put into running processes, each with the reason that must be told for it."""
