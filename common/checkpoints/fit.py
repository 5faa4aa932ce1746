"""Whether a text-to-mel model's config fits the audio and the text that its checkpoint says."""

from typing import Any

from common.config import AudioConfig
from common.errors import InputError
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd


def check_model(config: Any, audio: AudioConfig, text: TextConfig | None) -> None:
    """Refuse by InputError a text-to-mel model's config of other mel channels or symbols.

    ``text`` None leaves the number of symbols unchecked, and so do phonological features without a table.
    """
    if config.n_mel_channels != audio.n_mels:
        raise InputError(f"the model makes {config.n_mel_channels} mel channels, the audio has {audio.n_mels}")
    if text is None or (text.input_type == "pf" and not text.phone_features):
        return
    if config.n_symbols != (n_symbols := TextFrontEnd(text).n_symbols):
        what = "features, the table of them" if text.phone_features else f"symbols, symbol set {text.symbol_set}"
        raise InputError(f"the model reads {config.n_symbols} {what} has {n_symbols}")
