"""A voice of another language: LANGUAGE is all that it needs, and lists that would be read as English are noticed."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from shell import dry_run
from tiny import TINY_OPTIONS

import inference
import train
from common.checkpoints.reading import load_checkpoint
from common.data.filelist import FilelistEntry
from common.data.text_mel import Transcripts
from common.errors import InputError
from common.synthesis.loading import load_voice
from common.text.config import TextConfig
from common.text.espeak import Speaker
from scripts.demos.quickstart import write_clip

ENGLISH = TextConfig(cleaners=("english_cleaners_v3",))
GERMAN = TextConfig("phone", "espeak", (), g2p="espeak", g2p_language="de")
GERMAN_TEXTS = [
    "Der Hund schläft im Garten.",
    "Wir haben drei Äpfel und zwölf Brötchen.",
    "Heute ist das Wetter schön, aber kalt.",
    "Die Straße ist sehr lang.",
]
ENGLISH_TEXTS = ["The café of Müller was in the Große Straße.", "He was at it with the rest of them."]


def read(texts: list[str], text: TextConfig, *, unknown_symbols: str = "error") -> None:
    entries = [FilelistEntry({"text": one}, f"list.txt:{number}") for number, one in enumerate(texts, 1)]
    Transcripts(entries, text, unknown_symbols=unknown_symbols)


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (GERMAN_TEXTS, r"list\.txt:1: 'schläft' has 'ä', which .* for language de set LANGUAGE=de \("),
        (["Hello.", "Stra\u00dfe"], r"list\.txt:2: 'Straße' has 'ß', .*; set LANGUAGE=<tag of eSpeak NG>"),
        (["Hello.", "Scho\u0308n"], r"list\.txt:2: 'Schön' has 'ö'"),
        (["Привет, как дела?", "Это очень хорошо."], r"list\.txt:1: 'Привет' has 'П', .* LANGUAGE=ru"),
    ],
)
@pytest.mark.parametrize("cleaners", ["english_cleaners", "english_cleaners_v3"])
def test_a_list_whose_letters_english_cleaners_would_rewrite_is_refused(
    texts: list[str], wanted: str, cleaners: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(InputError, match=wanted):
        read(texts, TextConfig(cleaners=(cleaners,)))
    with pytest.raises(InputError, match="phones"):  # words in IPA are of no language
        read(["taɪp kæst fɹʌm"], TextConfig(cleaners=(cleaners,)))
    read(GERMAN_TEXTS, TextConfig(cleaners=(cleaners,)), unknown_symbols="drop")
    assert "warning: list.txt:1: 'schläft' has 'ä'" in capsys.readouterr().err


def test_a_list_that_looks_like_another_language_is_warned_of(capsys: pytest.CaptureFixture) -> None:
    line = "warning: list.txt: looks like language {}, but is read as {}; set LANGUAGE={} (train.py: --g2p-language)\n"
    for texts, text, wanted in (
        (["Der Hund rennt in den Wald.", "Das Buch liegt auf dem Tisch."], ENGLISH, line.format("de", "en", "de")),
        (ENGLISH_TEXTS, GERMAN, line.format("en", "de", "en-us")),
        (ENGLISH_TEXTS, ENGLISH, ""),
        (GERMAN_TEXTS, GERMAN, ""),
        (
            ["Det er en fin dag, og jeg vil ikke gå hjem nå."],
            replace(GERMAN, g2p_language="da"),
            "",
        ),  # nearly the same words
        (["sil d ɛ ɾ sil"], TextConfig("phone", "ipa", (), g2p="espeak", transcript_type="phones"), ""),
    ):
        read(texts, text)
        assert capsys.readouterr().err == wanted


@pytest.mark.usefixtures("no_samples")
def test_a_german_voice_says_numbers_in_german(tmp_path: Path) -> None:
    for number, text in enumerate(GERMAN_TEXTS):
        write_clip(tmp_path, f"a{number}", Speaker("de", words_per_minute=200).speak(text))
    lines = [f"wavs/a{number}.wav|{text}\n" for number, text in enumerate(GERMAN_TEXTS)]
    (tmp_path / "train.txt").write_text("".join(lines[1:]), encoding="utf-8")
    (tmp_path / "val.txt").write_text(lines[0], encoding="utf-8")
    variables = {"TRAIN_FILELIST": f"{tmp_path}/train.txt", "VAL_FILELIST": f"{tmp_path}/val.txt", "LANGUAGE": "de"}
    variables |= {"DATASET_PATH": str(tmp_path), "OUTPUT_DIR": str(tmp_path), "EPOCHS": "2", "BS": "3"}
    (words,) = dry_run("scripts/train.sh", LEARNED_ALIGNMENT="true", NUM_GPUS="0", **variables)
    assert train.main([*words[words.index("train.py") + 1 :], *TINY_OPTIONS]) == 0
    path = tmp_path / "FastPitch_checkpoint_2.pt"
    assert load_checkpoint(path).text == GERMAN

    voice = load_voice(path, device="cpu")
    said = voice.front_end.decode(voice.front_end.encode("12 Brötchen"))
    assert said.split() == Speaker("de", marked=True).phones("zwölf Brötchen")

    def speak(text: str, *options: str) -> torch.Tensor:
        words = ["--text", text, "--fastpitch", str(path), "--no-audio", "--save-mels", *options]
        assert inference.main([*words, "-o", str(tmp_path / "said")]) == 0
        mel: torch.Tensor = torch.load(next((tmp_path / "said" / "mels").iterdir()))
        return mel

    mel = speak("12 Brötchen")
    assert torch.equal(mel, speak("zwölf Brötchen"))
    assert torch.equal(mel, speak("12 Brötchen", "--g2p-language", "de"))
