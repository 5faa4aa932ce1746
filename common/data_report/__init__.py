"""Report on a corpus: its measurements, clips that would be refused or are suspicious, and a page about both."""
