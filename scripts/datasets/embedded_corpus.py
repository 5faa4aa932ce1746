"""Makes a small corpus in LJSpeech's layout: eSpeak NG reads a list of sentences.

Besides `wavs/` and `metadata.csv` it has `TextGrid/` with the true boundaries of words and phones, and two filelists,
`train.txt` and `val.txt`.
"""

from pathlib import Path

import tgt
import torch

from common.audio.wav import save_wav
from common.errors import InputError
from common.files import write_atomically, write_text
from common.progress import progress
from common.text.cleaners import get_cleaner
from common.text.espeak import EspeakSpeech, Speaker

SENTENCES = Path(__file__).with_name("corpus_sentences.txt")
# Higher than the library's own: Griffin-Lim finds the phases of harmonics 160 Hz apart far better than of 100 Hz.
READER = Speaker(pitch=95, marked=True)


def normalize(text: str) -> str:
    """A text as the embedded speaker gets it to read: numbers and abbreviations in words."""
    return get_cleaner("english_cleaners_v3")(text)


def make_corpus(folder: Path, sentences: list[str], speakers: dict[str, Speaker], *, n_validation: int) -> None:
    """Let each of ``speakers``, by name, read ``sentences``; ``n_validation``, evenly spread, are for validation.

    Clips are in folders of the names, with which lines of the lists end; a single speaker may have none. The same
    sentences and speakers give the same files; a line on stdout says how much speech they are.

    Raises:
        InputError: a list would get no sentence.
    """
    if not 0 < n_validation < len(sentences):
        raise InputError(f"{n_validation} of {len(sentences)} sentences for validation: both lists need at least one")
    stride = len(sentences) / n_validation
    validation = {int((i + 0.5) * stride) for i in range(n_validation)}
    duration_s = 0.0
    files: dict[str, list[str]] = {"train.txt": [], "val.txt": [], "metadata.csv": []}
    readings = [(voice, number) for voice in speakers for number in range(len(sentences))]
    for voice, number in progress(readings, desc="corpus", unit="clip"):
        name, text = f"{voice and f'{voice}/'}EM-{number + 1:04d}", normalize(sentences[number])
        speech = speakers[voice].speak(text)
        write_clip(folder, name, speech)
        duration_s += speech.duration_s
        split = "val.txt" if number in validation else "train.txt"
        files[split].append(f"wavs/{name}.wav|{text}{voice and f'|{voice}'}")
        files["metadata.csv"].append(f"{name}|{sentences[number]}|{text}")
    for file, rows in files.items():
        write_text(folder / file, "\n".join([*rows, ""]))
    print(f"{folder}: {len(readings)} clips, {duration_s / 60:.1f} minutes of speech")


def write_clip(folder: Path, name: str, speech: EspeakSpeech) -> None:
    """``wavs/<name>.wav``, 16-bit mono, and ``TextGrid/<name>.TextGrid`` with the tiers words and phones."""
    wave = torch.from_numpy(speech.wave)
    save_wav(folder / "wavs" / f"{name}.wav", wave, sampling_rate=speech.sampling_rate, durable=False)
    grid = tgt.TextGrid()
    for tier, intervals in (("words", speech.words), ("phones", speech.phones)):
        objects = [tgt.Interval(one.start_s, one.end_s, one.label) for one in intervals]
        grid.add_tier(tgt.IntervalTier(0, speech.duration_s, tier, objects))
    text = tgt.io.export_to_long_textgrid(grid).encode("utf-8")
    write_atomically(folder / "TextGrid" / f"{name}.TextGrid", lambda file: file.write(text), durable=False)
