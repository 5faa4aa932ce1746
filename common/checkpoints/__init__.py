"""Checkpoints: our format, safe unpickling, and loading by content."""
