"""Text to symbol ids: front end, cleaners that write out numbers and abbreviations, symbol sets, phones."""

from common.text.cleaners import CLEANERS, get_cleaner
from common.text.front_end import UNKNOWN_SYMBOLS, TextFrontEnd
from common.text.symbols import CHARACTER_SETS, PHONE_SETS, SymbolTable, get_symbol_table

__all__ = [
    "CHARACTER_SETS",
    "CLEANERS",
    "PHONE_SETS",
    "UNKNOWN_SYMBOLS",
    "SymbolTable",
    "TextFrontEnd",
    "get_cleaner",
    "get_symbol_table",
]
