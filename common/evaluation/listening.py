"""A listening test as one HTML file with all sounds in it, the key that says whose they are, and the results.

The test is MUSHRA (ITU-R BS.1534-3) with the recording as open and hidden reference and its low anchor. A/B is its case
of two systems without a reference.
"""

import base64
import hashlib
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from markupsafe import Markup
from scipy.signal import fftconvolve, firwin, kaiserord
from scipy.stats import binomtest, t

from common.audio.levels import CEILING, measure_loudness
from common.audio.wav import check_wav, load_wav
from common.errors import InputError, shown
from common.evaluation.options import MUSHRA, RESULTS
from common.evaluation.results import RECORDING, SYNTHESIZED, files_of
from common.files import read_json, write_json, write_text
from common.pages.render import NAME, STYLESHEET, digest, render_template
from common.pages.tables import Row, cells, read_measures, text_table

LISTENING_PAGE, LISTENING_KEY = "listening.html", "listening_key.json"  # files in an evaluation's folder
LISTENING_RESULTS = "listening_results.tsv"
ANCHOR = "anchor"  # the system of that name: the recording through a low-pass
ANCHOR_BAND = (3500.0, 4000.0)  # Hz: BS.1534-3 wants +-0.1 dB below the first, and -25 dB from the second
ANCHOR_ATTENUATION = 60.0  # dB; its ripple below is 0.01 dB, and it meets the -50 dB from 4500 Hz
LEAST_ANCHOR_RATE = 8000  # Hz of a recording, so that the anchor differs from it
LOUDNESS = -23.0  # LUFS; all sounds of a trial are quieter where a peak would pass the ceiling
CONFIDENCE = 0.95
# BS.1534-3, 4.1.2: a listener who rates the hidden reference below 90 in more than 15 % of the trials is not counted.
LEAST_REFERENCE, MOST_MISSED = 90.0, 0.15

Scores = dict[str, dict[str, float]]  # of one listener: of each utterance, by system
_FOLDER = Path(__file__).parent
_MEASURES = [*read_measures("evaluation/listening.tsv").values()]


@dataclass(frozen=True)
class Wave:
    """Sound (T,) at a sampling rate in Hz."""

    samples: np.ndarray
    rate: int


def write_listening_test(folder: Path, kind: str, systems: Mapping[str, Path]) -> None:
    """Write the page and the key of a test into ``folder``, which is that of an evaluation, and say so on stdout.

    ``systems`` are folders by the systems' names: evaluations, or sounds under the utterances' names. MUSHRA adds the
    recordings and the anchor, and A/B the recordings to a single system.

    Raises:
        InputError: a sound cannot be read, or no utterance has the sounds of all systems.
    """
    names = [*systems, *([RECORDING] if kind == MUSHRA or len(systems) == 1 else []), *[ANCHOR] * (kind == MUSHRA)]
    sounds: dict[str, str] = {}  # FLAC in base64, by id
    trials: dict[str, dict[str, str]] = {}  # the system of each sound, by utterance and the sound's id
    shown_trials: list[dict[str, Any]] = []
    utterances = read_json(folder / RESULTS)["utterances"]
    for utterance in utterances:
        name = utterance["name"]
        waves = {} if utterance["error"] else _read_waves(folder, name, systems, names)
        if waves:
            made = {system: _encode(wave) for system, wave in match_loudness(waves).items()}
            ids = {system: _short_digest(f"{name}\n{system}\n{sound}") for system, sound in made.items()}
            sounds |= {ids[system]: sound for system, sound in made.items()}
            trials[name] = {ids[system]: system for system in names}
            reference = ids[RECORDING] if kind == MUSHRA else None
            facts = {"name": name, "text": utterance["text"], "reference": reference}
            shown_trials.append({**facts, "sounds": sorted(ids.values())})
    if not trials:
        raise InputError(f"{', '.join(map(str, systems.values()))}: no utterance has sounds of all systems")
    test = _short_digest(" ".join([kind, *sorted(sounds)]))
    script, style = ((_FOLDER / f"listening.{suffix}").read_text(encoding="utf-8") for suffix in ("js", "css"))
    values = {"script": Markup(script), "script_digest": digest(script), "style": Markup(STYLESHEET + style)}
    page = {"test": test, "trials": shown_trials, "sounds": sounds}  # which says nothing of the systems
    write_text(folder / LISTENING_PAGE, render_template("evaluation/listening.html", test=page, product=NAME, **values))
    write_json(folder / LISTENING_KEY, {"test": test, "kind": kind, "systems": names, "trials": trials})
    left_out = len(utterances) - len(trials)
    note = f"; {left_out} utterances lack a sound" if left_out else ""
    print(f"listening test: {folder / LISTENING_PAGE}, {len(trials)} trials of {len(names)} sounds{note}")


def _read_waves(folder: Path, name: str, systems: Mapping[str, Path], names: list[str]) -> dict[str, Wave]:
    """The sounds of an utterance by system; none where one is missing."""
    paths = {system: _sound_file(place, name) for system, place in systems.items()}
    if RECORDING in names:
        paths[RECORDING] = next(filter(Path.is_file, [files_of(folder, name)[RECORDING]]), None)
    waves = {}
    for system, path in paths.items():
        if path is None:
            return {}
        rate = check_wav(path, sampling_rate=None).sampling_rate
        waves[system] = Wave(load_wav(path, sampling_rate=rate).double().numpy(), rate)
    if ANCHOR in names:
        if (rate := waves[RECORDING].rate) < LEAST_ANCHOR_RATE:
            raise InputError(f"{paths[RECORDING]}: {rate} Hz, expected at least {LEAST_ANCHOR_RATE} for the anchor")
        waves[ANCHOR] = low_anchor(waves[RECORDING])
    return waves


def _sound_file(folder: Path, name: str) -> Path | None:
    """The file of an utterance in the folder of an evaluation, or of sounds; None without one."""
    paths = [(folder / name).with_suffix(suffix) for suffix in (".wav", ".flac")]
    if (folder / RESULTS).is_file():
        paths = [files_of(folder, name)[SYNTHESIZED]]
    return next(filter(Path.is_file, paths), None)


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
    """The sound as lossless FLAC, which browsers play, in base64."""
    file = io.BytesIO()
    soundfile.write(file, wave.samples, wave.rate, format="FLAC", subtype="PCM_16")
    return base64.b64encode(file.getvalue()).decode("ascii")


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def report_results(folder: Path, results: Path) -> int:
    """Print and write the table of the test in ``folder`` from the files in ``results``; the exit status.

    Files that cannot be counted are one line each, and the status is 1.

    Raises:
        InputError: there is no test, or no listener to count.
    """
    key = read_json(folder / LISTENING_KEY, kind="key of a listening test (--output)")
    paths = sorted(results.glob("*.json"))
    if not paths:
        raise InputError(f"{results}: no result files (*.json) of listeners (--results)")
    listeners: dict[str, Scores] = {}
    n_problems = 0
    for path in paths:
        try:
            name, scores = _read_answers(path, key)
            if name in listeners:
                raise InputError(f"{path}: a second file of listener {name}; not counted")
            listeners[name] = scores
        except InputError as error:
            n_problems += 1
            print(error)
    counted = dict(listeners)
    for name, scores in listeners.items() if key["kind"] == MUSHRA else ():
        missed = sum(one[RECORDING] < LEAST_REFERENCE for one in scores.values()) / len(scores)
        if missed > MOST_MISSED:
            print(f"{name}: {missed:.0%} of the hidden references below {LEAST_REFERENCE:g}; not counted (BS.1534-3)")
            del counted[name]
    if not counted:
        raise InputError(f"{results}: none of {len(listeners)} listeners can be counted, expected at least one")
    rows = result_table(list(counted.values()), key["systems"])
    print(f"{key['kind']}: {len(counted)} of {len(listeners)} listeners, {len(key['trials'])} trials each")
    print(*text_table(rows), sep="\n")
    write_text(folder / LISTENING_RESULTS, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    print(f"table: {folder / LISTENING_RESULTS}")
    return int(n_problems > 0)


def _read_answers(path: Path, key: dict[str, Any]) -> tuple[str, Scores]:
    """The listener and the scores of a file; raises InputError unless it is a complete one of this test."""
    values, trials = read_json(path), key["trials"]
    if not isinstance(values, dict) or not isinstance(values.get("listener"), str) or not values["listener"]:
        raise InputError(f"{path}: not a result file of a listening test, expected a listener")
    if values.get("test") != key["test"]:
        raise InputError(f"{path}: of another listening test, {shown(values.get('test'))}, expected {key['test']!r}")
    answers = values.get("answers")
    if not isinstance(answers, dict) or answers.keys() != trials.keys():
        raise InputError(f"{path}: not answers of the test's {len(trials)} trials")
    for name, given in answers.items():
        is_complete = isinstance(given, dict) and given.keys() == trials[name].keys()
        if not is_complete or not all(type(one) in (int, float) and 0 <= one <= 100 for one in given.values()):
            raise InputError(f"{path}: {shown(given)} in trial {name}, expected a score from 0 to 100 of each sound")
    return values["listener"], {
        name: {trials[name][sound]: score for sound, score in given.items()} for name, given in answers.items()
    }


def result_table(listeners: list[Scores], systems: list[str]) -> list[Row]:
    """A heading, and a row for each system, the best first.

    The mean is over the listeners' means, its interval is Student's. The first system is compared with each other one:
    the share of answers, of those that prefer one, in which the first is rated higher, with Wilson's interval.
    """
    rows = {}
    for system in systems:
        means = [float(np.mean([scores[system] for scores in one.values()])) for one in listeners]
        pairs = [(scores[systems[0]], scores[system]) for one in listeners for scores in one.values()]
        preferred = preference(sum(a > b for a, b in pairs), sum(a < b for a, b in pairs))
        rows[system] = mean_interval(means) | preferred
    order = sorted(rows, key=lambda system: -rows[system]["mean"])
    table: list[Row] = [("system", *map(str, _MEASURES))]
    return table + [(system, *cells(_MEASURES, rows[system])) for system in order]


def mean_interval(values: list[float]) -> dict[str, float]:
    """The mean, and its confidence interval by Student's t unless there is one value alone."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return {"mean": mean}
    half = float(t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1)) / math.sqrt(n)
    return {"mean": mean, "low": mean - half, "high": mean + half}


def preference(n_first: int, n_second: int) -> dict[str, float]:
    """The share of the first of two among answers that prefer one, and its Wilson interval."""
    if n_first + n_second == 0:
        return {}
    test = binomtest(n_first, n_first + n_second)
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return {"share": test.statistic, "share_low": interval.low, "share_high": interval.high}
