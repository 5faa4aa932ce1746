"""Text as it is written into words as they are said: numbers, money, dates, abbreviations."""
