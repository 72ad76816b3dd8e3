"""What the settings and a policy's declaration build: the parts of an episode."""

from seq_harness.pipeline.pipeline import DeclarationRefused, Pipeline

__all__ = ['DeclarationRefused', 'Pipeline']
