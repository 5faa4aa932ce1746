"""Voices in Piper's form sound in piper-tts and sherpa-onnx as they do here."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import test_export_waveglow
import tiny_tacotron2
import tiny_voice
from tiny_harmonic import save_harmonic

from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.synthesis.loading import load_voice
from common.text.config import TextConfig
from common.text.espeak import espeak_voice
from common.text.front_end import TextFrontEnd
from common.text.symbols import CODE_POINTS
from scripts import checkpoint_tools

piper = pytest.importorskip("piper", reason="piper-tts is not installed")
sherpa_onnx = pytest.importorskip("sherpa_onnx", reason="sherpa-onnx is not installed")

TEXT = TextConfig("phone", CODE_POINTS, ("english_cleaners_v3",), speakers=("ann", "bob"), g2p="espeak")
MODEL = tiny_voice.with_symbols(len(tiny_voice.symbols_of(TEXT)))
SENTENCE = "Hello there, the church's judge was bitter."
SAME_SOUND = 1e-3  # of full scale
VOCODERS: dict[str, tuple[AudioConfig, Callable[[Path], object]]] = {
    "harmonic": (tiny_voice.AUDIO, lambda path: save_harmonic(path, tiny_voice.AUDIO)),
    "hifigan": (tiny_voice.AUDIO, tiny_voice.save_vocoder),
    "waveglow": (test_export_waveglow.AUDIO, test_export_waveglow.save),
}


def spoken_by_piper(path: Path, **settings: float) -> np.ndarray:
    """The sound of SENTENCE (T,) by piper-tts, before its own normalization."""
    config = piper.SynthesisConfig(normalize_audio=False, **settings)
    return np.concatenate([one.audio_float_array for one in piper.PiperVoice.load(path).synthesize(SENTENCE, config)])


def spoken_by_sherpa(path: Path, *, speaker: int = 0, speed: float = 1.0) -> np.ndarray:
    """The sound of SENTENCE (T,) by sherpa-onnx, with eSpeak NG's data of piper-tts, and pauses as they are."""
    files = {"model": str(path), "tokens": str(path.with_suffix(".tokens.txt"))}
    vits = sherpa_onnx.OfflineTtsVitsModelConfig(**files, data_dir=str(piper.voice.ESPEAK_DATA_DIR))
    model = sherpa_onnx.OfflineTtsModelConfig(vits=vits, num_threads=1)
    tts = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=model))
    settings = sherpa_onnx.GenerationConfig()
    settings.sid, settings.speed, settings.silence_scale = speaker, speed, 1.0
    return np.array(tts.generate(SENTENCE, settings).samples)


def export(folder: Path, vocoder: str) -> Path:
    """A tiny voice of two speakers with a vocoder, as checkpoints and exported."""
    audio, save = VOCODERS[vocoder]
    save(folder / "vocoder.pt")
    tiny_voice.save_voice(folder / "voice.pt", text=TEXT, model=MODEL, audio=audio)
    words = ["--vocoder", str(folder / "vocoder.pt"), "--format", "piper"]
    checkpoint_tools.export([str(folder / "voice.pt"), *words])
    return folder / "voice.onnx"


@pytest.mark.parametrize("name", VOCODERS)
def test_both_packages_make_the_sound_of_the_checkpoints(tmp_path: Path, name: str, capsys):
    path = export(tmp_path, name)
    assert "largest difference from PyTorch" in capsys.readouterr().out
    voice = load_voice(tmp_path / "voice.pt", tmp_path / "vocoder.pt", device="cpu")
    for speaker, pace in ((0, 1.0), (1, 1.25)):
        expected = voice.speak(SENTENCE, speaker=TEXT.speakers[speaker], pace=pace).wave.numpy()
        sounds = (
            spoken_by_piper(path, speaker_id=speaker, length_scale=1 / pace),
            spoken_by_sherpa(path, speaker=speaker, speed=pace),
        )
        for sound in sounds:
            assert len(sound) == len(expected) > 2000 and np.abs(expected).max() > 1e-3
            np.testing.assert_allclose(sound, expected, atol=SAME_SOUND)


@pytest.mark.parametrize(
    ("language", "voice", "text"),
    [
        ("en-us", "en-us", "Hello there, world: isn't it nice; or? Yes! The church's nurse, Mr. Smith, stirs butter."),
        ("en-us", "en-us", "Please,"),
        ("de", "de", "Der schöne Hund läuft, ich nicht: Zwölf Boxkämpfer jagen Viktor? Ja!"),
        ("fr-fr", "fr", "Bonjour, où est le garçon? Les enfants ont mangé des pommes; c'est la vie."),
        ("es", "es", "¿Dónde está el niño? ¡Aquí! El perro y la guitarra, qué bien."),
    ],
)
def test_texts_become_the_code_points_that_pipers_phonemizer_gives(language: str, voice: str, text: str):
    front_end = TextFrontEnd(TextConfig("phone", CODE_POINTS, (), g2p="espeak", g2p_language=language))
    sentences = piper.phonemize_espeak.EspeakPhonemizer().phonemize(voice, text)
    # Sentences are utterances of their own there.
    expected = " ".join("".join(one) for one in sentences).replace(" ", "#")
    assert front_end.decode(front_end.encode(text)).replace(" ", "") == f"sil{expected}sil"
    assert espeak_voice(language)[0] == voice


def test_what_piper_cannot_speak_is_one_line_and_leaves_no_file(tmp_path: Path):
    vocoder = str(tiny_voice.save_vocoder(tmp_path / "vocoder.pt"))
    characters = str(tiny_voice.save_voice(tmp_path / "characters.pt"))
    tacotron2 = str(tiny_tacotron2.save_voice(tmp_path / "tacotron2.pt"))
    voice = str(tiny_voice.save_voice(tmp_path / "voice.pt", text=TEXT, model=MODEL))
    with pytest.raises(InputError, match=r"reads 'english_basic' without g2p, but Piper 'espeak'; fine-tune it: train"):
        checkpoint_tools.export([characters, "--vocoder", vocoder, "--format", "piper"])
    with pytest.raises(InputError, match="reads 'english_basic'"):
        checkpoint_tools.export([tacotron2, "--vocoder", vocoder, "--format", "piper"])
    with pytest.raises(OptionError, match="--format piper needs --vocoder FILE"):
        checkpoint_tools.export([voice, "--format", "piper"])
    with pytest.raises(InputError, match="above the tolerance 1e-12; removed"):
        checkpoint_tools.export([voice, "--vocoder", vocoder, "--format", "piper", "--tolerance", "1e-12"])
    assert not [*tmp_path.glob("*.onnx*"), *tmp_path.glob("*.txt")]
