"""Text front end: cleaners that write out numbers and abbreviations, symbol sets, and encoding to ids."""
