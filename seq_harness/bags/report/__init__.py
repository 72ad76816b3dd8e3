"""A page about a run: what was commanded and measured, predicted, asked, and when it jumped."""
