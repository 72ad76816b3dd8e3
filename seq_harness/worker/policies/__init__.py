"""Policies that ship with the worker."""
