"""A voice carries how text becomes its symbols, and LANGUAGE is all that a voice of another language needs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from shell import dry_run
from tiny import TINY_OPTIONS, read_aloud
from training_setup import set_up

import inference
import train
from common.checkpoints.checkpoint import save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.data.filelist import FilelistEntry
from common.data.text_mel import Transcripts
from common.errors import InputError
from common.synthesis.loading import load_voice
from common.text.config import TextConfig
from common.text.espeak import Speaker
from common.torch_file import load_tensor
from scripts.demos.quickstart import normalize, write_clip

pytestmark = pytest.mark.usefixtures("no_samples")

SENTENCES = ["Bread and salt.", "Seven ships came.", "It cost $1.2m on 3/4/2021.", "The rain stopped."]
PHONES = ("--input-type", "phone", "--symbol-set", "ipa", "--g2p", "espeak", "--transcript-type", "phones")
READS_TEXT = TextConfig("phone", "ipa", ("english_cleaners_v3",), g2p="espeak", transcript_type="phones")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings with lists of text (train.txt) and of eSpeak's phones (train_phones.txt)."""
    folder = tmp_path_factory.mktemp("phones") / "corpus"
    speaker = Speaker(words_per_minute=200)
    read_aloud(folder, SENTENCES, {"": speaker})
    for name in ("train", "val"):
        rows = [line.split("|") for line in (folder / f"{name}.txt").read_text().splitlines()]
        lines = [f"{wav}|{' '.join(speaker.phones(text))}\n" for wav, text in rows]
        (folder / f"{name}_phones.txt").write_text("".join(lines))
    return folder


def options_of_training(corpus: Path, output: Path, *extra: str, lists: str = "") -> list[str]:
    files = [f"--training-files={corpus}/train{lists}.txt", f"--validation-files={corpus}/val{lists}.txt"]
    shape = () if "--from-checkpoint" in extra else TINY_OPTIONS
    words = ["-o", str(output), "-d", str(corpus), *files, *shape, "-bs", "3", "--warmup-steps", "10", "--epochs", "1"]
    return [*words, "--learned-alignment", *extra]


def run_train(*arguments, **options) -> int:
    return train.main(options_of_training(*arguments, **options))


def text_of_training(*arguments, **options) -> TextConfig:
    """What a training would store in its checkpoints."""
    return set_up("-m", "FastPitch", *options_of_training(*arguments, **options)).text


@pytest.fixture(scope="module")
def voice(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that was trained on phones and reads text."""
    output = tmp_path_factory.mktemp("voice")
    assert run_train(corpus, output, *PHONES, lists="_phones") == 0
    return output / "FastPitch_checkpoint_1.pt"


@pytest.fixture(scope="module")
def old_voice(voice: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same voice as earlier versions saved it: of phones alone."""
    path = tmp_path_factory.mktemp("old") / "old.pt"
    save_checkpoint(path, replace(load_checkpoint(voice), text=TextConfig("phone", "ipa", ())))
    return path


def speak(voice: Path, folder: Path, text: str, *options: str) -> torch.Tensor:
    (folder / "phrases.txt").write_text(f"{text}\n", encoding="utf-8")
    words = ["-i", str(folder / "phrases.txt"), "-o", str(folder), "--fastpitch", str(voice), "--no-audio"]
    assert inference.main([*words, "--save-mels", *options]) == 0
    return load_tensor(folder / "mels" / "audio_0001.pt")


def test_a_voice_of_phones_reads_text_as_its_speaker_does(voice: Path, old_voice: Path, tmp_path: Path) -> None:
    assert load_checkpoint(voice).text == READS_TEXT
    text = "It cost $1.2m on 3/4/2021."
    phones = " ".join(Speaker().phones(normalize(text)))
    mel = speak(voice, tmp_path, text)
    assert torch.equal(mel, speak(voice, tmp_path, phones, "--g2p", "none"))
    assert torch.equal(mel, speak(voice, tmp_path, f"{{{phones}}}"))
    assert torch.equal(mel, speak(old_voice, tmp_path, phones))
    assert torch.equal(mel, speak(old_voice, tmp_path, text, "--g2p", "espeak"))


def test_a_voice_of_phones_alone_says_what_makes_it_read_text(old_voice: Path, tmp_path: Path) -> None:
    for text in ("rain", "Der schöne Hund läuft.", "$5"):
        with pytest.raises(InputError, match=r"looks like text.*\(.*phrases\.txt:1\); add --g2p espeak") as error:
            speak(old_voice, tmp_path, text)
        assert "--symbol-set" not in str(error.value) and "--unknown-symbols" not in str(error.value)


def test_fine_tuning_reads_spelling_by_the_voices_own_front_end(
    corpus: Path, voice: Path, old_voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ("--from-checkpoint", str(voice))
    assert run_train(corpus, tmp_path / "text", *options) == 0
    assert "left out" not in capsys.readouterr().err
    of_text = replace(READS_TEXT, transcript_type="text")
    assert load_checkpoint(tmp_path / "text/FastPitch_checkpoint_1.pt").text == of_text
    with pytest.raises(InputError, match=r"looks like phones.*train_phones\.txt:1.*--transcript-type phones"):
        run_train(corpus, tmp_path / "refused", *options, lists="_phones")
    options = (*options, "--transcript-type", "phones")
    assert text_of_training(corpus, tmp_path, *options, lists="_phones") == READS_TEXT

    options = ("--from-checkpoint", str(old_voice))
    with pytest.raises(InputError, match=r"looks like text.*train\.txt:1\); add --g2p espeak"):
        run_train(corpus, tmp_path / "old", *options)
    assert text_of_training(corpus, tmp_path, *options, "--g2p", "espeak") == of_text


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
