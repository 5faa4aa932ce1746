"""Word and character error rates of transcripts, over a whole corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ErrorCounts:
    """Substitutions, deletions and insertions, and what they are counted in."""

    word_errors: int = 0
    n_words: int = 0  # of the references
    char_errors: int = 0
    n_chars: int = 0  # of the references, spaces included

    @property
    def wer(self) -> float:
        """Word errors a word of the references; above 1 if there are more errors than words."""
        return self.word_errors / max(self.n_words, 1)  # of no words it is their number, as jiwer has it

    @property
    def cer(self) -> float:
        """Character errors a character of the references."""
        return self.char_errors / max(self.n_chars, 1)


def error_counts(references: Sequence[str], hypotheses: Sequence[str]) -> ErrorCounts:
    """Errors of each hypothesis against the reference in its place, added up.

    Words are separated by whitespace; case and punctuation count. Characters are those of the texts as given.
    """
    if not references:
        return ErrorCounts()
    import jiwer  # here, as only measuring needs it

    whole = jiwer.ReduceToListOfListOfChars()  # jiwer's default leaves out spaces at both ends
    words = jiwer.process_words(_single_spaces(references), _single_spaces(hypotheses))
    characters = jiwer.process_characters(list(references), list(hypotheses), whole, whole)
    return ErrorCounts(*_errors_and_length(words), *_errors_and_length(characters))


def _single_spaces(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()) for text in texts]


def _errors_and_length(output: Any) -> tuple[int, int]:
    changed = output.substitutions + output.deletions
    return changed + output.insertions, changed + output.hits
