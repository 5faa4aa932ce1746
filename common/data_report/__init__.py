"""How good a corpus is: its measurements, what would be refused or is suspicious, and a page about both."""
