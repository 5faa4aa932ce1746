"""Listening tests: one HTML file that contains all sounds, a key that names their systems, and the results.

MUSHRA (ITU-R BS.1534-3) has the recording as open and hidden reference, and a low-passed recording as anchor. A/B is
the same test with two systems and no reference.
"""

import base64
import hashlib
import io
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from markupsafe import Markup
from scipy.signal import firwin, oaconvolve

from common.audio.levels import CEILING, measure_loudness
from common.audio.wav import check_wav, load_wav
from common.errors import InputError
from common.evaluation.options import MUSHRA, RESULTS
from common.evaluation.results import CONFIDENCE, RECORDING, SYNTHESIZED, Figures, files_of, find_differences, mean
from common.files import read_json, write_json, write_text
from common.pages.render import NAME, STYLESHEET, digest, render_template
from common.pages.tables import Measure, Row, text_table

LISTENING_PAGE, LISTENING_KEY = "listening.html", "listening_key.json"  # files in an evaluation's folder
LISTENING_RESULTS = "listening_results.tsv"
ANCHOR = "anchor"  # system that is the low-passed recording
ANCHOR_CUT, ANCHOR_SECONDS = 3750.0, 0.02  # Hz, and filter length in s: +-0.1 dB to 3.5 kHz, below -25 dB from 4 kHz
LOUDNESS = -23.0  # LUFS; all sounds of a trial are quieter if a peak would exceed the ceiling
# BS.1534-3, 4.1.2: a listener who rates the hidden reference below 90 in more than 15 % of the trials isn't counted.
LEAST_REFERENCE, MOST_MISSED = 90.0, 0.15

SCORE = Measure("score", "score", better="high")  # from 0 to 100
Answers = dict[tuple[str, str], float]  # scores by trial and system
Wave = tuple[np.ndarray, int]  # samples (T,), and their rate in Hz


def write_listening_test(folder: Path, kind: str, systems: Mapping[str, Path]) -> None:
    """Write the page and the key of a test to an evaluation's ``folder``, and print the page's path.

    ``systems`` maps names to folders of evaluations, or of sounds named like the utterances. MUSHRA adds the recordings
    and the anchor; A/B adds the recordings if there is a single system. Raises InputError if no utterance has sounds of
    all systems.
    """
    names = [*systems, *([RECORDING] if kind == MUSHRA or len(systems) == 1 else []), *[ANCHOR] * (kind == MUSHRA)]
    sounds: dict[str, str] = {}  # FLAC in base64, by id
    trials: dict[str, dict[str, str]] = {}  # the system of each sound, by utterance and the sound's id
    shown: list[dict[str, Any]] = []
    utterances = read_json(folder / RESULTS)["utterances"]
    for utterance in utterances:
        name = utterance["name"]
        waves = {} if utterance["error"] else _read_waves(folder, name, systems, names)
        if not waves:
            continue
        made = {system: _encode(wave) for system, wave in match_loudness(waves).items()}
        ids = {system: _short_digest(f"{name}\n{system}\n{sound}") for system, sound in made.items()}
        sounds |= {ids[system]: sound for system, sound in made.items()}
        trials[name] = {ids[system]: system for system in names}
        reference = ids[RECORDING] if kind == MUSHRA else None
        shown.append({"name": name, "text": utterance["text"], "reference": reference, "sounds": sorted(ids.values())})
    if not trials:
        raise InputError(f"{', '.join(map(str, systems.values()))}: no utterance has sounds of all systems")
    test = _short_digest(" ".join([kind, *sorted(sounds)]))
    script, style = (Path(__file__).with_suffix(suffix).read_text("utf-8") for suffix in (".js", ".css"))
    values = {"script": Markup(script), "script_digest": digest(script), "style": Markup(STYLESHEET + style)}
    page = {"test": test, "trials": shown, "sounds": sounds}  # doesn't reveal the systems
    write_text(folder / LISTENING_PAGE, render_template("evaluation/listening.html", test=page, product=NAME, **values))
    write_json(folder / LISTENING_KEY, {"test": test, "kind": kind, "systems": names, "trials": trials})
    left_out = len(utterances) - len(trials)
    note = f"; {left_out} utterances lack a sound" if left_out else ""
    print(f"listening test: {folder / LISTENING_PAGE}, {len(trials)} trials of {len(names)} sounds{note}")


def _read_waves(folder: Path, name: str, systems: Mapping[str, Path], names: list[str]) -> dict[str, Wave]:
    """Return an utterance's sounds by system, or none if one is missing."""
    waves: dict[str, Wave] = {}
    for system in names:
        if system == ANCHOR:
            waves[ANCHOR] = low_anchor(*waves[RECORDING])
            continue
        place = systems.get(system, folder)
        sounds = [(place / name).with_suffix(suffix) for suffix in (".wav", ".flac")]
        paths = [files_of(place, name)[RECORDING if system == RECORDING else SYNTHESIZED], *sounds]
        path = next(filter(Path.is_file, paths), None)
        if path is None:
            return {}
        rate = check_wav(path, sampling_rate=None).sampling_rate
        waves[system] = load_wav(path, sampling_rate=rate).double().numpy(), rate
    return waves


def low_anchor(samples: np.ndarray, rate: int) -> Wave:
    """Apply the low-pass filter of BS.1534-3's low anchor, without delay."""
    taps = firwin(round(ANCHOR_SECONDS * rate) | 1, min(ANCHOR_CUT, 0.49 * rate), fs=rate)
    return oaconvolve(samples, taps, mode="same"), rate


def match_loudness(waves: Mapping[str, Wave]) -> dict[str, Wave]:
    """Scale sounds to the same EBU R128 loudness, at most `LOUDNESS`, so that no peak exceeds `CEILING`."""
    levels = {name: measure_loudness(*wave) for name, wave in waves.items()}
    peaks = {name: 20 * math.log10(max(float(np.abs(wave).max()), 1e-9)) for name, (wave, _) in waves.items()}
    target = min([LOUDNESS, *(levels[name] - peaks[name] + CEILING for name in waves)])
    return {name: (wave * 10 ** ((target - levels[name]) / 20), rate) for name, (wave, rate) in waves.items()}


def _encode(wave: Wave) -> str:
    """Encode the sound as lossless FLAC, which browsers can play, in base64."""
    file = io.BytesIO()
    soundfile.write(file, *wave, format="FLAC", subtype="PCM_16")
    return base64.b64encode(file.getvalue()).decode("ascii")


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def report_results(folder: Path, results: Path) -> int:
    """Print and write a table for the test in ``folder`` from the files in ``results``; return the exit status.

    For each file that can't be counted, print a line; the status is then 1. A score is the mean over all answers. The
    first system is compared with each other system answer by answer. Raises InputError if no listener counts.
    """
    key = read_json(folder / LISTENING_KEY, kind="key of a listening test (--output)")
    paths, listeners = sorted(results.glob("*.json")), dict[str, Answers]()
    for path in paths:
        try:
            listeners |= _read_answers(path, key)  # a listener's last file counts
        except InputError as error:
            print(error)
    if not listeners:
        raise InputError(f"{results}: none of {len(paths)} result files (*.json) can be counted (--results)")
    scores: dict[str, dict[str, Figures]] = {system: {} for system in key["systems"]}  # by answer
    for name, answers in listeners.items():
        for (trial, system), score in answers.items():
            scores[system][f"{name} {trial}"] = {SCORE.key: score}
    first, *_ = scores
    rows: list[Row] = [("system", SCORE, f"{first} minus it ({CONFIDENCE} %)")]
    for system, own in sorted(scores.items(), key=lambda one: -(mean(SCORE, [*one[1].values()]) or 0)):
        apart = find_differences([SCORE], scores[first], own).get(SCORE.key) if system != first else None
        rows.append((system, SCORE.show(mean(SCORE, [*own.values()])), apart.show(SCORE) if apart else "-"))
    print(f"{key['kind']}: {len(listeners)} of {len(paths)} listeners, {len(key['trials'])} trials each")
    print(*text_table(rows), sep="\n")
    write_text(folder / LISTENING_RESULTS, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    print(f"table: {folder / LISTENING_RESULTS}")
    return int(len(listeners) < len(paths))


def _read_answers(path: Path, key: dict[str, Any]) -> dict[str, Answers]:
    """Return the listener's name -> scores by trial and system; raises InputError if the file doesn't count."""
    values, trials, answers = read_json(path), key["trials"], Answers()
    with suppress(KeyError, TypeError, ValueError, AttributeError):  # of another test
        for trial, scores in values["answers"].items():
            answers |= {(trial, trials[trial][sound]): float(score) for sound, score in scores.items()}
    if len(answers) < sum(map(len, trials.values())) or values["test"] != key["test"]:
        raise InputError(f"{path}: no complete answers to this test; not counted")
    references = [score for (_, system), score in answers.items() if system == RECORDING]
    missed = sum(score < LEAST_REFERENCE for score in references) / len(trials)
    if key["kind"] == MUSHRA and missed > MOST_MISSED:
        raise InputError(f"{path}: {missed:.0%} of the hidden references rated below {LEAST_REFERENCE:g}; not counted")
    return {str(values.get("listener")): answers}
