"""Tacotron 2: text to mel-spectrogram, one frame after the other, with attention."""
