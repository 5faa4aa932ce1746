"""Evaluate a voice: error rates, distance from recordings, speed, and a report."""
