"""Features of a corpus: mel-spectrograms, durations and pitch of many recordings."""
