"""Convert written text to spoken words: numbers, money, dates, abbreviations."""
