"""Transcribing recordings, and error rates."""
