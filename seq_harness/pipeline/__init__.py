"""What the settings and a policy's declaration build: the parts of an episode."""

from seq_harness.pipeline.pipeline import AnswerRefused, DeclarationRefused, Pipeline

__all__ = ['AnswerRefused', 'DeclarationRefused', 'Pipeline']
