"""Compares voices of any origin on a list: words wrong, DistillMOS, and work for a second of sound on one thread.

    bash scripts/benchmark.sh voices list.txt --recordings wavs \
        ours=".venv/bin/python inference.py -i {list} -o {folder}" \
        "piper=piper -m joe.onnx -f {output} -- {text}" "other=http://localhost:8880?voice=af_heart&model=kokoro"

A system is NAME=COMMAND or NAME=URL. A command gets each sentence in the place of {text}, or on its standard input,
and writes {output}, or a WAV to its standard output. Or it gets all at once: {list}, with lines of name.wav|text, to
write to {folder}. A server has OpenAI's API for speech; fields of its requests follow the URL. Work is in processor
seconds without those of loading: what a command takes for one word is subtracted. The recordings, if each line has
one, and copies of them are measured too. What was measured before of the same texts is kept.
"""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import torch

from common.audio.decoding import decode
from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.evaluation.items import find_recordings, read_texts
from common.evaluation.judges import Judges, open_judges
from common.evaluation.options import EvaluationOptions
from common.evaluation.results import MEASURES, RECORDING, Result, find_differences, mean
from common.files import read_json, write_json, write_text
from common.text.markdown import plain_text
from scripts.benchmarks.table import Row, machine, markdown
from scripts.datasets.speech_server import SpeechServer, read_address
from scripts.launch import ROOT

_WORD = "Yes."  # is spoken to know the work of loading
_SHOWN = {"words wrong (%)": MEASURES["wer"], "DistillMOS": MEASURES["mos"]}
_COPIES = {  # commands of rows beside those of the systems
    "copies, vocoder": "{python}inference.py -i {copies} -o {folder} --harmonic {vocoder} --quiet",
    "copies, Griffin-Lim": "{python}inference.py -i {copies} -o {folder} --griffin-lim-iters 60 --quiet",
}

Voice = dict[str, Any]  # what is known of a system, as JSON: "key", "work" and "figures" by the names of the files


@dataclass(frozen=True)
class Text:
    """A sentence to speak, and its recording if there is one."""

    words: str
    recording: Path | None = None


Texts = Mapping[str, Text]  # by the names of the files


def run_command(words: Sequence[str], places: Mapping[str, object], *, text: str = "") -> bytes:
    """Run a command with ``text`` on its standard input, and what belongs in ``places``; returns its output."""
    pattern = re.compile("|".join(map(re.escape, places)))
    filled = [pattern.sub(lambda found: str(places[found[0]]), word) for word in words]
    one_core = (lambda: os.sched_setaffinity(0, {0})) if hasattr(os, "sched_setaffinity") else None
    threads = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(filled, input=text.encode(), capture_output=True, env=threads, preexec_fn=one_core)
    except OSError as error:
        raise OptionError(f"{words[0]}: cannot be started ({error.strerror})") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise InputError(f"{shlex.join(filled)}: exit status {done.returncode}: {said[-1]}")
    return done.stdout


def speak_by_command(words: Sequence[str], texts: Texts, folder: Path) -> None:
    """Let a command speak into a folder, at once or one text after the other."""
    if _is_started_once(words):
        path, copies = folder / "list.txt", folder / "copies.tsv"
        write_text(path, "".join(f"{name}|{one.words}\n" for name, one in texts.items()))
        lines = "".join(f"{name}\t{one.recording}\n" for name, one in texts.items())
        write_text(copies, f"output\twav\n{lines}")
        run_command(words, {"{list}": path, "{folder}": folder, "{copies}": copies})
        return
    for name, one in texts.items():
        output = run_command(words, {"{text}": one.words, "{output}": folder / name}, text=one.words)
        if not any("{output}" in word for word in words):
            (folder / name).write_bytes(output)


def speak_by_server(url: str, texts: Texts, folder: Path) -> None:
    """Let a server speak one text after the other into a folder."""
    address, _, query = url.partition("?")
    fields = dict(parse_qsl(query))
    server = SpeechServer(read_address(address), fields.pop("model", "tts-1"), retries=0)
    for name, one in texts.items():
        (folder / name).write_bytes(server.speak(one.words, **fields))


def _is_started_once(words: Sequence[str]) -> bool:
    return any("{folder}" in word for word in words)


def speak(system: str, texts: Texts, folder: Path) -> float | None:
    """Let a system, a command or URL, speak into a folder; the processor seconds for a second of sound, if known."""
    if system.startswith(("http://", "https://")):
        speak_by_server(system, texts, _emptied(folder, texts))
        return None
    words, spent, seconds = shlex.split(system), [], []
    word = {"word.wav": replace(next(iter(texts.values())), words=_WORD)}
    for some, place in ((word, folder / "loading"), (texts, folder)):
        before = os.times()
        speak_by_command(words, some, _emptied(place, some))
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
        seconds.append(sum(len(samples) / rate for samples, rate in (_read(place / name) for name in some)))
    starts = 1 if _is_started_once(words) else len(texts)
    sound = seconds[1] - starts * seconds[0]
    return max(0.0, spent[1] - starts * spent[0]) / sound if sound > 0 else None


def _emptied(folder: Path, names: Iterable[str]) -> Path:
    """The folder without sounds of an earlier run, which would be judged in place of what a system failed to make."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
    return folder


def _read(path: Path) -> tuple[np.ndarray, int]:
    """The samples (T,) of a sound, and its sampling rate in Hz."""
    opened = decode(path)
    return np.concatenate([*opened.blocks]), opened.sampling_rate


def judge(path: Path, text: Text, judges: Judges) -> dict[str, float]:
    """The figures of a sound of a sentence."""
    samples, rate = _read(path)
    reference = judges.recognizer.normalize(text.words) if judges.recognizer else None
    result = Result(path.name, text.words, reference=reference)
    judges.hear(result, torch.from_numpy(samples), rate)
    return result.figures


def measure(name: str, system: str, texts: Texts, output: Path, judges: Judges, setting: str) -> Voice:
    """What is known of a system, if possible by an earlier run with the same texts and ``setting`` of the judges."""
    path = output / f"{name}.json"
    key = hashlib.sha256(repr([system, *sorted(texts.items()), setting]).encode()).hexdigest()
    if path.is_file() and (known := read_json(path)).get("key") == key:
        return known
    work = speak(system, texts, output / name) if system else None
    places = {one: (not system and text.recording) or output / name / one for one, text in texts.items()}
    figures = {one: judge(places[one], text, judges) for one, text in texts.items()}
    write_json(path, known := {"key": key, "work": work, "figures": figures})
    return known


def read_systems(words: Sequence[str]) -> dict[str, str]:
    """Commands and addresses by the systems' names; raises OptionError."""
    systems: dict[str, str] = {}
    for word in words:
        name, equals, system = word.partition("=")
        if not equals or not system.strip() or not re.fullmatch(r"\w[\w .,+-]*", name):
            raise OptionError(f"{word}: expected NAME=COMMAND or NAME=URL")
        if name in {*systems, *_COPIES, RECORDING}:
            raise OptionError(f"{name}: two systems of this name; choose another one")
        try:
            shlex.split(system)
        except ValueError as error:
            raise OptionError(f"{word}: {error}") from error
        systems[name] = system
    return systems


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="voices", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("list", type=Path, help="phrases, as inference.py reads them")
    parser.add_argument("systems", nargs="*", help="NAME=COMMAND or NAME=URL")
    parser.add_argument("--recordings", type=Path, help="folder with recordings under the utterances' names")
    parser.add_argument("--vocoder", type=Path, default=ROOT / "voices/vocoder-small.pt", help="of the copies")
    parser.add_argument("--whisper", help="size, or folder with a CTranslate2 model (base)")
    parser.add_argument("--language", default="en", help="that Whisper hears (en)")
    parser.add_argument("-o", "--output", type=Path, default=Path("output/voices"), help="folder for all sounds")
    args = parser.parse_intermixed_args(argv)
    systems = read_systems(args.systems)
    options = EvaluationOptions(recordings=args.recordings, whisper=args.whisper, language=args.language)
    phrases = find_recordings(read_texts(args.list), options)
    texts = {
        str(one.output.with_suffix(".wav")): Text(plain_text(one.text or ""), Path(one.wav) if one.wav else None)
        for one in phrases
    }
    beside: dict[str, str] = {}
    if all(one.recording for one in texts.values()):
        python, vocoder = shlex.quote(sys.executable), shlex.quote(str(args.vocoder))
        beside = {RECORDING: ""}
        for name, command in _COPIES.items():
            beside[name] = command.replace("{python}", f"{python} {ROOT}/").replace("{vocoder}", vocoder)
    elif args.recordings:
        print("note: without rows of recordings and copies, as some sentences have no recording")
    judges = open_judges(("faster_whisper", "distillmos"), options, language=args.language)
    setting = f"{judges.whisper}, {judges.score is not None}"
    found = {
        name: measure(name, system, texts, args.output, judges, setting) for name, system in (systems | beside).items()
    }
    print(f"{len(texts)} sentences; {machine(cuda=False)}; Whisper {judges.whisper or '-'}")
    print(*markdown([row_of(name, one) for name, one in found.items()]), sep="\n")
    first, *others = found
    for name in others if systems else ():
        apart = find_differences(_SHOWN.values(), found[first]["figures"], found[name]["figures"])
        texts_apart = [f"{title} {apart[one.key].show(one)}" for title, one in _SHOWN.items() if one.key in apart]
        print(f"{first} less {name}: {'; '.join(texts_apart) or '-'}")


def row_of(name: str, found: Voice) -> Row:
    """The row of a system in the table."""
    row = {"what": name} | {title: one.show(mean(one, [*found["figures"].values()])) for title, one in _SHOWN.items()}
    return row | {"work per second of sound (s)": "-" if found["work"] is None else f"{found['work']:.3f}"}


if __name__ == "__main__":
    run(main)
