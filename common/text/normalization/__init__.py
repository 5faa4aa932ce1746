"""Written text as spoken words: numbers, money, dates, abbreviations."""
