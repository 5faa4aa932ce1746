"""A listening test as one HTML file with all sounds in it, and the key that says which sound is of which system.

MUSHRA is ITU-R BS.1534-3's, with the recording as open and hidden reference and its low anchor.
"""

import base64
import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import soundfile
from markupsafe import Markup
from scipy.signal import fftconvolve, firwin, kaiserord

from common.audio import check_wav, load_wav
from common.audio.loudness import CEILING, measure_loudness
from common.errors import InputError
from common.evaluation.options import AB, MUSHRA
from common.evaluation.results import RECORDING, RESULTS, SYNTHESIZED, files_of
from common.files import read_json, write_json, write_text
from common.pages.render import NAME, STYLESHEET, digest, render_template

LISTENING_PAGE, LISTENING_KEY = "listening.html", "listening_key.json"  # files in an evaluation's folder
ANCHOR = "anchor"  # the system of that name: the recording through a low-pass
ANCHOR_BAND = (3500.0, 4000.0)  # Hz: BS.1534-3 wants +-0.1 dB below the first, and -25 dB from the second
ANCHOR_ATTENUATION = 60.0  # dB; its ripple below is 0.01 dB, and it meets the -50 dB from 4500 Hz
LEAST_ANCHOR_RATE = 8000  # Hz of a recording, so that the anchor differs from it
LOUDNESS = -23.0  # LUFS; all sounds of a trial are quieter where a peak would pass the ceiling
_SHORTEST_WORK = 5.0  # s that a listener takes to answer, beside listening
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Wave:
    """Sound (T,) at a sampling rate in Hz."""

    samples: np.ndarray
    rate: int


@dataclass(frozen=True)
class Trial:
    """One question to a listener: the sounds of an utterance by some systems."""

    utterance: str  # the name of its files
    sounds: dict[str, str]  # the system of each sound, by the sound's name on the page


@dataclass(frozen=True)
class ListeningKey:
    """What the page does not say: the systems behind its sounds."""

    test: str  # digest of the kind and of all sounds; result files name it
    kind: str
    systems: list[str]
    trials: dict[str, Trial]  # by their names on the page

    @classmethod
    def read(cls, folder: Path) -> "ListeningKey":
        """The key in an evaluation's folder; raises InputError where there is none."""
        path = folder / LISTENING_KEY
        values = read_json(path, kind="key of a listening test (--output)")
        try:
            return cls(**values | {"trials": {name: Trial(**one) for name, one in values["trials"].items()}})
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{path}: not the key of a listening test; write the test again") from error


def write_listening_test(folder: Path, kind: str, systems: Mapping[str, Path]) -> None:
    """Write the page and the key of a test into ``folder``, which is that of an evaluation, and say so on stdout.

    ``systems`` are folders by the names of the systems: evaluations, or sounds under the utterances' names. Of MUSHRA
    the recordings and the anchor are further systems, of A/B the recordings.

    Raises:
        InputError: a sound cannot be read, or no utterance has the sounds of all systems.
    """
    sounds: dict[str, str] = {}
    texts: dict[str, str] = {}
    references: dict[str, str] = {}
    trials: dict[str, Trial] = {}
    seconds, names = 0.0, [*systems, RECORDING, *([ANCHOR] if kind == MUSHRA else [])]
    utterances = read_json(folder / RESULTS)["utterances"]
    for utterance in utterances:
        recording = files_of(folder, utterance["name"])[RECORDING] if utterance["recording"] else None
        waves = {} if utterance["error"] else read_waves(utterance["name"], kind, systems, recording)
        chosen = list(combinations(waves, 2)) if kind == AB else [tuple(waves)] if waves else []
        made = {system: _encode(wave) for system, wave in match_loudness(waves).items()}
        ids = {system: _short_digest(f"{utterance['name']}\n{system}\n{sound}") for system, sound in made.items()}
        sounds |= {ids[system]: sound for system, sound in made.items()}
        for group in chosen:
            trial = Trial(utterance["name"], {ids[system]: system for system in group})
            name = _short_digest(" ".join(sorted(trial.sounds)))
            trials[name], texts[name], references[name] = trial, utterance["text"], ids.get(RECORDING, "")
            n_plays = len(group) + 1
            seconds += _SHORTEST_WORK + n_plays * max(len(waves[one].samples) / waves[one].rate for one in group)
    if not trials:
        raise InputError(f"{', '.join(map(str, systems.values()))}: no utterance has sounds of all systems")
    used = {system for trial in trials.values() for system in trial.sounds.values()}
    key = ListeningKey(_short_digest(" ".join([kind, *sorted(trials)])), kind, [n for n in names if n in used], trials)
    shown = [
        {"name": name, "text": texts[name], "sounds": sorted(trials[name].sounds)}
        | ({"reference": references[name]} if kind == MUSHRA else {})
        for name in sorted(trials)
    ]
    write_text(folder / LISTENING_PAGE, render({"test": key.test, "kind": kind, "trials": shown, "sounds": sounds}))
    write_json(folder / LISTENING_KEY, asdict(key))
    size = (folder / LISTENING_PAGE).stat().st_size / 1e6
    left_out = len(utterances) - len({trial.utterance for trial in trials.values()})
    print(
        f"listening test: {folder / LISTENING_PAGE}, {size:.1f} MB; {len(trials)} trials, about "
        f"{math.ceil(seconds / 60)} min a listener" + (f"; {left_out} utterances lack a sound" if left_out else "")
    )


def render(test: Mapping[str, object]) -> str:
    """The HTML of a test; it loads nothing, and says nothing of the systems."""
    script = (_FOLDER / "listening.js").read_text(encoding="utf-8")
    policy = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; base-uri 'none'"
    return render_template(
        "evaluation/listening.html",
        policy=Markup(f"{policy}; form-action 'none'; script-src {digest(script)}"),
        product=NAME,
        style=Markup(STYLESHEET + (_FOLDER / "listening.css").read_text(encoding="utf-8")),
        script=Markup(script),
        test=test,
    )


def read_waves(name: str, kind: str, systems: Mapping[str, Path], recording: Path | None) -> dict[str, Wave]:
    """The sounds of an utterance by system; none where one is missing, but of A/B there may be no recording.

    Raises:
        InputError: a sound cannot be read, or a recording has less band than the anchor.
    """
    paths = {system: path for system, folder in systems.items() if (path := sound_file(folder, name)) is not None}
    if len(paths) < len(systems) or (kind == MUSHRA and recording is None):
        return {}
    waves = {system: _load(path) for system, path in paths.items()}
    if recording is not None:
        waves[RECORDING] = _load(recording)
    if kind == MUSHRA:
        if (rate := waves[RECORDING].rate) < LEAST_ANCHOR_RATE:
            raise InputError(
                f"{recording}: {rate} Hz, expected at least {LEAST_ANCHOR_RATE} for the anchor of {MUSHRA}"
            )
        waves[ANCHOR] = low_anchor(waves[RECORDING])
    return waves


def sound_file(folder: Path, name: str) -> Path | None:
    """The file of an utterance in the folder of an evaluation, or of sounds; None without one."""
    if (folder / RESULTS).is_file():
        paths = [files_of(folder, name)[SYNTHESIZED]]
    else:
        paths = [(folder / name).with_suffix(suffix) for suffix in (".wav", ".flac")]
    return next((path for path in paths if path.is_file()), None)


def _load(path: Path) -> Wave:
    rate = check_wav(path, sampling_rate=None).sampling_rate
    return Wave(load_wav(path, sampling_rate=rate).double().numpy(), rate)


def low_anchor(wave: Wave) -> Wave:
    """The sound through the low-pass of BS.1534-3's low anchor, without delay."""
    low, high = ANCHOR_BAND
    n_taps, beta = kaiserord(ANCHOR_ATTENUATION, (high - low) / (wave.rate / 2))
    taps = firwin(n_taps | 1, (low + high) / 2, window=("kaiser", beta), fs=wave.rate)
    padded = np.pad(wave.samples, len(taps) // 2)
    return Wave(fftconvolve(padded, taps, mode="valid"), wave.rate)


def match_loudness(waves: Mapping[str, Wave]) -> dict[str, Wave]:
    """Sounds at one loudness by EBU R128, at most `LOUDNESS`, so that none has a peak above `CEILING`."""
    levels = {name: measure_loudness(wave.samples, wave.rate) for name, wave in waves.items()}
    peaks = {name: 20 * math.log10(max(float(np.abs(wave.samples).max()), 1e-9)) for name, wave in waves.items()}
    target = min([LOUDNESS, *(levels[name] - peaks[name] + CEILING for name in waves)])
    gains = {name: 10 ** ((target - level) / 20) for name, level in levels.items()}
    return {name: Wave(wave.samples * gains[name], wave.rate) for name, wave in waves.items()}


def _encode(wave: Wave) -> str:
    """The sound as FLAC, which loses nothing and which browsers play, in base64."""
    file = io.BytesIO()
    soundfile.write(file, wave.samples, wave.rate, format="FLAC", subtype="PCM_16")
    return base64.b64encode(file.getvalue()).decode("ascii")


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
