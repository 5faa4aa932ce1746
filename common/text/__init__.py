"""Convert text to symbol ids: front end, cleaners that write out numbers and abbreviations, symbol sets, phones."""
