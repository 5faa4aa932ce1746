"""Text to symbol ids: front end, cleaners that write out numbers and abbreviations, symbol sets, phones."""

from common.text.arpabet import RandomNumbers, utterance_draws
from common.text.cleaners import CLEANERS, collapse_spaces, get_cleaner
from common.text.espeak import EspeakSpeech, Interval, Speaker
from common.text.front_end import UNKNOWN_SYMBOLS, EmptyTextError, TextFrontEnd, check_model
from common.text.input_checks import check_length, check_markup, quote
from common.text.lexicon import Lexicon, read_lexicon
from common.text.prosody import LIMITS, NEUTRAL, Style, combined
from common.text.sentences import TextUtterance, split_utterances
from common.text.ssml import Boundary, Mark, Pause, Span, has_markup, plain_text, read_markup
from common.text.symbols import CHARACTER_SETS, EDGE_SILENCE, PAUSE, PHONE_SETS, get_symbol_table, name_symbol
from common.text.words import EncodedText, Word
