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

from common.audio.wav import save_wav
from common.cli import ArgumentParser, run
from common.files import write_text
from common.progress import progress
from common.text.espeak import Speaker
from scripts.datasets.embedded_corpus import SENTENCES, normalize, read_sentences
from scripts.datasets.make_filelists import read_metadata

MORE_SENTENCES = Path(__file__).with_name("voice_sentences.txt")
HELD_BACK = tuple(f"LJ001-{number:04}" for number in range(73, 81))  # clips of LJSpeech that no shipped voice knows
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
_READ_EACH = 20  # sentences
VOCODER_READERS = (  # language, words per minute, pitch, range of pitch
    Speaker("en-us", 150, 30, 50),
    Speaker("en-us", 170, 50, 70),
    Speaker("en-us", 150, 75, 40),
    Speaker("en-us", 150, 95, 50),
    Speaker("en-gb", 140, 40, 60),
    Speaker("en-gb", 170, 65, 50),
    Speaker("de", 150, 50, 50),
    Speaker("fr", 150, 60, 60),
    Speaker("it", 150, 85, 70),
    Speaker("pl", 150, 20, 50),
)
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


def base_sentences() -> list[str]:
    """The quickstart's sentences but those that voices are compared by."""
    return [text for index, text in enumerate(read_sentences(SENTENCES)) if index % _LEFT_OUT]


def vocoder_list(folder: Path, training: Sequence[str]) -> list[str]:
    """The vocoder's training recordings, of clips by name; makes their changed copies and its embedded speech."""
    others = []
    for index, name in enumerate(progress(training[:_MOST_TRANSCRIPTS], desc="changed voices", unit="clip")):
        others.append(f"wavs/changed/{name}.wav")
        if not (folder / others[-1]).exists():
            samples, rate = soundfile.read(folder / f"wavs/lj/{name}.wav")
            formants, semitones = _CHANGES[index % len(_CHANGES)]
            changed = change_voice(samples, sampling_rate=rate, formants=formants, semitones=semitones)
            save_wav(folder / others[-1], torch.from_numpy(changed), sampling_rate=rate, durable=False)
    for number, speaker in enumerate(VOCODER_READERS):
        for index, text in enumerate(base_sentences()[number * _READ_EACH : (number + 1) * _READ_EACH]):
            others.append(f"wavs/reader{number}/{index:04d}.wav")
            read_text(folder / others[-1], text, speaker)
    return repeated([f"wavs/lj/{name}.wav" for name in training], share=0.5, others=others)


def spoken_list(folder: Path, transcripts: Sequence[str]) -> list[str]:
    """Lines `wav|text|speaker` of what the voice's embedded speakers read, which is made."""
    texts = base_sentences() + read_sentences(MORE_SENTENCES) + list(transcripts[:_MOST_TRANSCRIPTS])
    spoken = []
    for index, text in enumerate(progress(texts, desc="embedded speakers", unit="sentence")):
        for name, (speaker, change) in READERS.items():
            if name == "high" and index % 2:
                continue
            wav = f"wavs/{name}/{index:04d}.wav"
            read_text(folder / wav, text, speaker, change)
            spoken.append(f"{wav}|{text}|{name}")
    return spoken


def main(argv: Sequence[str] | None = None) -> None:
    """Make speech and lists."""
    parser = ArgumentParser(description="Make the data of the shipped voice and vocoder", prog="voice_data.py")
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, help="folder of the lists, the speech and a link to the recordings")
    add("--recordings", type=Path, required=True, help="corpus in LJSpeech's layout: wavs/ and metadata.csv")
    add("--held-back", nargs="*", default=HELD_BACK, help="recordings for measuring (default: LJ001-0073 to 0080)")
    args = parser.parse_args(argv)
    link = args.output / "wavs" / "lj"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to((args.recordings / "wavs").resolve())
    every = read_metadata(args.recordings / "metadata.csv")
    training = {name: text for name, text in every.items() if name not in (*args.held_back, *VALIDATION)}
    validation = [name for name in every if name in VALIDATION and name not in args.held_back]
    lj_train = [f"wavs/lj/{name}.wav|{text}|lj" for name, text in training.items()]
    lists = {
        "base_train": repeated(lj_train, share=0.14, others=spoken_list(args.output, list(training.values()))),
        "lj_train": lj_train,
        "lj_val": [f"wavs/lj/{name}.wav|{every[name]}|lj" for name in validation],
        "held_back": [f"wavs/lj/{name}.wav|{text}" for name, text in every.items() if name in args.held_back],
        "vocoder_val": [f"wavs/lj/{name}.wav" for name in validation],
        "vocoder_train": vocoder_list(args.output, list(training)),  # made last: it shows that all is there
    }
    for name, rows in lists.items():
        write_text(args.output / f"{name}.txt", "".join(f"{row}\n" for row in rows))


if __name__ == "__main__":
    run(main)
