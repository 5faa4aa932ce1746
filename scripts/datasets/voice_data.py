"""Makes the speech and the lists that the shipped voice and vocoder are trained on.

    python -m scripts.datasets.voice_data -o output/voices/data --recordings LJSpeech-1.1

The vocoder learns from the recordings, their copies with another pitch and other formants, and ten embedded speakers;
the voice's base from the recordings and three embedded speakers, who read the recordings' transcripts too. Clips that
are held back are in `held_back.txt` alone, for ``scripts/evaluate_voice.sh``. Each seventh sentence of the quickstart's
is left out, to compare voices by. Run again after a stop, it keeps what is there.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import parselmouth
import soundfile
import torch
from parselmouth.praat import call

from common.audio import save_wav
from common.cli import ArgumentParser, run
from common.files import write_text, writing
from common.progress import progress
from common.text import Speaker
from scripts.datasets.make_corpus import SENTENCES, normalize, read_sentences
from scripts.datasets.make_filelists import read_metadata
from scripts.variables import HELD_BACK

MORE_SENTENCES = Path(__file__).with_name("voice_sentences.txt")
VALIDATION = tuple(f"LJ001-{number:04d}" for number in range(65, 73))
_LEFT_OUT = 7  # one of so many sentences
_MOST_TRANSCRIPTS = 1000  # of the recordings, that embedded speakers read
_PITCH_RANGE = (60, 500)  # Hz, that Praat looks in

# Formants times, median pitch in Hz; None keeps it as it is.
READERS = {
    "us": (Speaker(pitch=60, words_per_minute=165), None),
    "fem": (Speaker(pitch=70, words_per_minute=175), (1.17, 210.0)),
    "high": (Speaker(pitch=95, words_per_minute=150), None),
}
# Language, pitch, range of pitch, words per minute; each reads 20 sentences.
VOCODER_READERS = [
    Speaker(voice, pace, pitch, pitch_range)
    for voice, pitch, pitch_range, pace in (
        ("en-us", 30, 50, 150),
        ("en-us", 50, 70, 170),
        ("en-us", 75, 40, 150),
        ("en-us", 95, 50, 150),
        ("en-gb", 40, 60, 140),
        ("en-gb", 65, 50, 170),
        ("de", 50, 50, 150),
        ("fr", 60, 60, 150),
        ("it", 85, 70, 150),
        ("pl", 20, 50, 150),
    )
]
_READ_EACH = 20
# Formants times, semitones.
_CHANGES = [(1.0, 4), (1.0, -4), (0.85, -6), (1.15, 3), (0.8, -9), (1.0, 7), (0.9, -4), (1.2, 5)]


def change_voice(
    samples: np.ndarray, *, sampling_rate: int, formants: float, pitch: float | None = None, semitones: float = 0
) -> np.ndarray:
    """Samples (T,) from -1 to 1 with other formants, and a median ``pitch`` in Hz or one moved by ``semitones``.

    Praat's "Change gender"; the length stays.
    """
    sound = parselmouth.Sound(samples.astype(np.float64), sampling_rate)
    own = sound.to_pitch_ac(pitch_floor=_PITCH_RANGE[0], pitch_ceiling=_PITCH_RANGE[1])
    wanted = pitch or call(own, "Get quantile", 0, 0, 0.5, "Hertz") * 2 ** (semitones / 12)
    changed = call(sound, "Change gender", *_PITCH_RANGE, formants, wanted, 1.0, 1.0).values[0]
    return changed / max(1.0, float(np.abs(changed).max()) / 0.95)


def read_text(path: Path, text: str, speaker: Speaker, change: tuple[float, float] | None = None) -> None:
    """Let ``speaker`` read a text into a file, changed to (formants, pitch), unless the file is there."""
    if path.exists():
        return
    speech = speaker.speak(normalize(text))
    samples, rate = speech.wave, speech.sampling_rate
    if change is not None:
        samples = change_voice(samples, sampling_rate=rate, formants=change[0], pitch=change[1])
    save_wav(path, torch.from_numpy(samples), sampling_rate=rate, durable=False)


def repeated(recordings: Sequence[str], *, share: float, others: Sequence[str]) -> list[str]:
    """Others, and recordings as often as they are about ``share`` of that many."""
    return [*others, *list(recordings) * max(1, round(share * len(others) / len(recordings)))]


def vocoder_lists(folder: Path, training: Sequence[str], validation: Sequence[str]) -> dict[str, list[str]]:
    """The vocoder's lists of recordings, of clips by name; makes their changed copies and its embedded speech."""
    others = []
    for index, name in enumerate(progress(training[:_MOST_TRANSCRIPTS], desc="changed voices", unit="clip")):
        others.append(f"wavs/changed/{name}.wav")
        if not (folder / others[-1]).exists():
            samples, rate = soundfile.read(folder / f"wavs/lj/{name}.wav")
            formants, semitones = _CHANGES[index % len(_CHANGES)]
            changed = change_voice(samples, sampling_rate=rate, formants=formants, semitones=semitones)
            save_wav(folder / others[-1], torch.from_numpy(changed), sampling_rate=rate, durable=False)
    sentences = base_sentences(SENTENCES)
    for number, speaker in enumerate(VOCODER_READERS):
        for index, text in enumerate(sentences[number * _READ_EACH : (number + 1) * _READ_EACH]):
            others.append(f"wavs/reader{number}/{index:04d}.wav")
            read_text(folder / others[-1], text, speaker)
    recorded = [f"wavs/lj/{name}.wav" for name in training]
    return {
        "vocoder_train": repeated(recorded, share=0.5, others=others),
        "vocoder_val": [f"wavs/lj/{name}.wav" for name in validation],
    }


def base_sentences(path: Path) -> list[str]:
    """Sentences of a file but those that voices are compared by."""
    return [text for index, text in enumerate(read_sentences(path)) if index % _LEFT_OUT]


def voice_lists(folder: Path, training: dict[str, str], validation: dict[str, str]) -> dict[str, list[str]]:
    """Lists `wav|text|speaker` of the voice's base and of its fine-tuning; makes their embedded speech."""
    texts = base_sentences(SENTENCES) + read_sentences(MORE_SENTENCES) + list(training.values())[:_MOST_TRANSCRIPTS]
    spoken = []
    for index, text in enumerate(progress(texts, desc="embedded speakers", unit="sentence")):
        for name, (speaker, change) in READERS.items():
            if name == "high" and index % 2:
                continue
            wav = f"wavs/{name}/{index:04d}.wav"
            read_text(folder / wav, text, speaker, change)
            spoken.append(f"{wav}|{text}|{name}")
    lists = [[f"wavs/lj/{name}.wav|{text}|lj" for name, text in clips.items()] for clips in (training, validation)]
    base = repeated(lists[0], share=0.14, others=spoken)
    return {"base_train": base, "lj_train": lists[0], "lj_val": lists[1]}


def main(argv: Sequence[str] | None = None) -> None:
    """Make speech and lists."""
    parser = ArgumentParser(description="Make the data of the shipped voice and vocoder", prog="voice_data.py")
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, help="folder of the lists, the speech and a link to the recordings")
    add("--recordings", type=Path, required=True, help="corpus in LJSpeech's layout: wavs/ and metadata.csv")
    add("--held-back", nargs="*", default=HELD_BACK, help="recordings for measuring (default: LJ001-0073 to 0080)")
    args = parser.parse_args(argv)
    every = read_metadata(args.recordings / "metadata.csv")
    clips = {name: text for name, text in every.items() if name not in args.held_back}
    link = args.output / "wavs" / "lj"
    with writing(link):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to((args.recordings / "wavs").resolve())
    validation = {name: text for name, text in clips.items() if name in VALIDATION}
    training = {name: text for name, text in clips.items() if name not in VALIDATION}
    lists = voice_lists(args.output, training, validation)
    lists["held_back"] = [f"wavs/lj/{name}.wav|{text}" for name, text in every.items() if name in args.held_back]
    for name, rows in (lists | vocoder_lists(args.output, list(training), list(validation))).items():
        write_text(args.output / f"{name}.txt", "".join(f"{row}\n" for row in rows))


if __name__ == "__main__":
    run(main)
