"""Text to symbol ids: front end, cleaners that write out numbers and abbreviations, symbol sets, phones."""

from .arpabet import RandomNumbers as RandomNumbers, utterance_draws as utterance_draws
from .cleaners import collapse_spaces as collapse_spaces, get_cleaner as get_cleaner
from .espeak import EspeakSpeech as EspeakSpeech, Speaker as Speaker, espeak_voice as espeak_voice
from .front_end import EmptyTextError as EmptyTextError, TextFrontEnd as TextFrontEnd
from .input_checks import quote as quote
from .lexicon import read_lexicon as read_lexicon
from .markdown import plain_text as plain_text, read_text as read_text
from .prosody import LIMITS as LIMITS, NEUTRAL as NEUTRAL, Style as Style, combined as combined
from .sentences import TextUtterance as TextUtterance, cut_early as cut_early, split_utterances as split_utterances
from .ssml import (
    Boundary as Boundary,
    Mark as Mark,
    Pause as Pause,
    Span as Span,
    has_markup as has_markup,
    read_markup as read_markup,
)
from .symbols import (
    BOUNDARY as BOUNDARY,
    CHARACTER_SETS as CHARACTER_SETS,
    CODE_POINTS as CODE_POINTS,
    EDGE_SILENCE as EDGE_SILENCE,
    PAUSE as PAUSE,
    get_symbol_table as get_symbol_table,
    name_symbol as name_symbol,
)
from .words import EncodedText as EncodedText, Word as Word
