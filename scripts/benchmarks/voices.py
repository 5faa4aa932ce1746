"""Compares voices of any origin on a list: words wrong, DistillMOS, and work for a second of sound on one thread.

    bash scripts/benchmark.sh voices list.txt --recordings wavs \
        ours=".venv/bin/python inference.py -i {list} -o {folder}" \
        "piper=piper -m joe.onnx -f {output} -- {text}" "other=http://localhost:8880?voice=af_heart&model=kokoro"

A system is NAME=COMMAND or NAME=URL. A command gets all sentences at once as {list}, with lines name.wav|text, and
writes to {folder}; or it gets one as {text} or on its standard input, and writes {output}, or a WAV to its standard
output. A server has OpenAI's API for speech; fields of its requests follow the URL. Work is in processor seconds
without those of loading: what a command takes for one word is subtracted. The recordings, if each line has one, and
copies of them are measured too.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import torch

from common.audio.decoding import decode
from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.evaluation.items import find_recordings, read_texts
from common.evaluation.judges import Judges, open_judges
from common.evaluation.options import EvaluationOptions
from common.evaluation.results import MEASURES, RECORDING, Figures, Result, find_differences, mean
from common.files import write_text
from common.text.markdown import plain_text
from scripts.benchmarks.table import machine, markdown
from scripts.datasets.speech_server import SpeechServer, read_address
from scripts.launch import ROOT

_WORD = "Yes."  # is spoken to measure the work of loading
_SHOWN = {"words wrong (%)": MEASURES["wer"], "DistillMOS": MEASURES["mos"]}


@dataclass(frozen=True)
class Text:
    """A sentence to speak, and its recording if there is one."""

    words: str
    recording: Path | None = None


Texts = Mapping[str, Text]  # by the names of the files


def run_command(words: Sequence[str], places: Mapping[str, object], *, text: str = "") -> bytes:
    """Run a command on one core, with ``places`` filled in and ``text`` on its standard input; returns its output."""
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
    """Let a command speak into a folder, all texts at once or one after the other."""
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


def _is_started_once(words: Sequence[str]) -> bool:
    return any("{folder}" in word for word in words)


def speak(system: str, texts: Texts, folder: Path) -> float | None:
    """Let a command or a server speak into a folder; returns the processor seconds for a second of sound, if known."""
    if system.startswith(("http://", "https://")):
        address, _, query = system.partition("?")
        fields = dict(parse_qsl(query))
        server = SpeechServer(read_address(address), fields.pop("model", "tts-1"), retries=0)
        for name, one in texts.items():
            (folder / name).write_bytes(server.speak(one.words, **fields))
        return None
    words, spent, seconds = shlex.split(system), [], []
    word = {"word.wav": replace(next(iter(texts.values())), words=_WORD)}
    for some in (word, texts):
        before = os.times()
        speak_by_command(words, some, folder)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
        seconds.append(sum(len(samples) / rate for samples, rate in (_read(folder / name) for name in some)))
    starts = 1 if _is_started_once(words) else len(texts)
    sound = seconds[1] - starts * seconds[0]
    return max(0.0, spent[1] - starts * spent[0]) / sound if sound > 0 else None


def _read(path: Path) -> tuple[np.ndarray, int]:
    """The samples (T,) of a sound, and its sampling rate in Hz."""
    opened = decode(path)
    return np.concatenate([*opened.blocks]), opened.sampling_rate


def judge(path: Path, text: Text, judges: Judges) -> Figures:
    """The figures of a sound of a sentence."""
    samples, rate = _read(path)
    reference = judges.recognizer.normalize(text.words) if judges.recognizer else None
    result = Result(path.name, text.words, reference=reference)
    judges.hear(result, torch.from_numpy(samples), rate)
    return result.figures


def measure(system: str, texts: Texts, folder: Path, judges: Judges) -> tuple[float | None, dict[str, Figures]]:
    """The work of a system, and the figures of each sentence; without a command those of the recordings."""
    for name in (*texts, "word.wav"):  # of an earlier run
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
    work = speak(system, texts, folder) if system else None
    places = {name: (not system and text.recording) or folder / name for name, text in texts.items()}
    return work, {name: judge(places[name], text, judges) for name, text in texts.items()}


def read_systems(words: Sequence[str]) -> dict[str, str]:
    """Commands and addresses by the systems' names; raises OptionError."""
    systems: dict[str, str] = {}
    for word in words:
        name, _, system = word.partition("=")
        if not re.fullmatch(r"\w[\w .,+-]*", name) or not system.strip() or name in systems:
            raise OptionError(f"{word}: expected NAME=COMMAND or NAME=URL, each name once")
        systems[name] = system
    return systems


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="voices", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("list", type=Path, help="phrases, as inference.py reads them")
    parser.add_argument("systems", nargs="*", help="NAME=COMMAND or NAME=URL")
    parser.add_argument("--recordings", type=Path, help="folder with recordings under the utterances' names")
    parser.add_argument("--vocoder", type=Path, default=ROOT / "voices/vocoder-small.pt", help="vocoder of the copies")
    parser.add_argument("--whisper", help="size, or folder with a CTranslate2 model (base)")
    parser.add_argument("--language", default="en", help="language of the sentences, for Whisper (en)")
    parser.add_argument("-o", "--output", type=Path, default=Path("output/voices"), help="folder for all sounds")
    args = parser.parse_intermixed_args(argv)
    systems = read_systems(args.systems)
    options = EvaluationOptions(recordings=args.recordings, whisper=args.whisper, language=args.language)
    texts = {
        str(one.output.with_suffix(".wav")): Text(plain_text(one.text or ""), Path(one.wav) if one.wav else None)
        for one in find_recordings(read_texts(args.list), options)
    }
    if all(one.recording for one in texts.values()):
        copying = f"{shlex.join([sys.executable, str(ROOT / 'inference.py')])} -i {{copies}} -o {{folder}} --quiet"
        systems |= {
            RECORDING: "",
            "copies, vocoder": f"{copying} --harmonic {shlex.quote(str(args.vocoder))}",
            "copies, Griffin-Lim": f"{copying} --griffin-lim-iters 60",
        }
    judges = open_judges(("faster_whisper", "distillmos"), options, language=args.language)
    found = {name: measure(system, texts, args.output / name, judges) for name, system in systems.items()}
    print(f"{len(texts)} sentences; {machine(cuda=False)}; Whisper {judges.whisper or '-'}")
    rows = []
    for name, (work, figures) in found.items():
        row = {"what": name} | {title: one.show(mean(one, [*figures.values()])) for title, one in _SHOWN.items()}
        rows.append(row | {"work per second of sound (s)": "-" if work is None else f"{work:.3f}"})
    print(*markdown(rows), sep="\n")
    first, *others = found
    for name in others:
        apart = find_differences(_SHOWN.values(), found[first][1], found[name][1])
        texts_apart = [f"{title} {apart[one.key].show(one)}" for title, one in _SHOWN.items() if one.key in apart]
        print(f"{first} less {name}: {'; '.join(texts_apart) or '-'}")


if __name__ == "__main__":
    run(main)
