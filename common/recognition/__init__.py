"""Speech to text: transcribing recordings, and error rates."""
