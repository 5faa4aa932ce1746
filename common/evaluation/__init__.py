"""Listening to a voice: what it says, how far it is from recordings, how fast it is, and a report of all that."""
