"""Import recordings into a corpus: audio files of any format, and transcripts in many formats and layouts."""
