"""The rules of ``english_cleaners_v3``: how a person reads numbers, dates, money, units and abbreviations aloud."""
