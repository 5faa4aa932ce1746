"""Recordings as people have them become a corpus: any sound file and transcripts of many forms, wherever they lie."""
