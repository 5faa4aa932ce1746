"""Checkpoint files: our format, safe unpickling, and loading by content."""
