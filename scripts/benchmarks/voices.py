"""Compares any voices on a list: word error rate, DistillMOS, and CPU time per second of sound on one thread.

    bash scripts/benchmark.sh voices list.txt --recordings wavs \
        ours=".venv/bin/python inference.py -i {list} -o {folder}" \
        "piper=piper -m joe.onnx -f {output} -- {text}" "other=http://localhost:8880?voice=af_heart&model=kokoro"

A system is NAME=COMMAND or NAME=URL. A command gets all sentences at once as {list}, with lines name.wav|text, and
writes to {folder}; or it gets one as {text} or on its standard input, and writes {output}, or a WAV to its standard
output. A server has OpenAI's API for speech; fields of its requests follow the URL. Work is CPU time
without loading: the time that a command takes for one word is subtracted. The recordings, if each line has one, and
copies of them are measured too.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import torch

from common.audio.decoding import decode
from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.evaluation.evaluator import find_recordings, read_texts
from common.evaluation.judges import Judges, open_judges
from common.evaluation.options import EvaluationOptions
from common.evaluation.results import MEASURES, RECORDING, Figures, Result, find_differences, mean
from common.files import write_text
from common.text.markdown import plain_text
from scripts.benchmarks.table import markdown
from scripts.datasets.speech_server import SpeechServer, read_address
from scripts.launch import ROOT

_SHOWN = {"words wrong (%)": MEASURES["wer"], "DistillMOS": MEASURES["mos"]}


Texts = Mapping[str, str]  # sentences, or paths of recordings, by the names of the files


def run_command(words: Sequence[str], places: Mapping[str, object], *, text: str = "") -> bytes:
    """Run a command on one core, with ``places`` filled in and ``text`` as standard input; return its output."""
    pattern = re.compile("|".join(map(re.escape, places)))
    filled = [pattern.sub(lambda found: str(places[found[0]]), word) for word in words]
    one_core = (lambda: os.sched_setaffinity(0, {0})) if hasattr(os, "sched_setaffinity") else None
    threads = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(filled, input=text.encode(), capture_output=True, env=threads, preexec_fn=one_core)
    except OSError as error:
        raise OptionError(f"{words[0]}: cannot be started ({error.strerror})") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise InputError(f"{shlex.join(filled)}: exit status {done.returncode}: {said[-1]}")
    return done.stdout


def speak_by_command(words: Sequence[str], texts: Texts, folder: Path, recordings: Texts) -> tuple[float, float]:
    """Let a command speak all texts at once or one by one; return its CPU time and the length of the sound, in s."""
    before = os.times()
    if "{folder}" in " ".join(words):
        path, copies = folder / "list.txt", folder / "copies.tsv"
        write_text(path, "".join(f"{name}|{text}\n" for name, text in texts.items()))
        write_text(copies, "output\twav\n" + "".join(f"{name}\t{recordings.get(name)}\n" for name in texts))
        run_command(words, {"{list}": path, "{folder}": folder, "{copies}": copies})
    else:
        for name, text in texts.items():
            output = run_command(words, {"{text}": text, "{output}": folder / name}, text=text)
            if "{output}" not in " ".join(words):
                (folder / name).write_bytes(output)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, sum(len(samples) / rate for samples, rate in (_read(folder / name) for name in texts))


def speak(system: str, texts: Texts, folder: Path, recordings: Texts) -> float | None:
    """Let a command or a server speak into a folder; return the CPU time per second of sound, if known."""
    if system.startswith(("http://", "https://")):
        address, _, query = system.partition("?")
        fields = dict(parse_qsl(query))
        server = SpeechServer(read_address(address), fields.pop("model", "tts-1"), retries=0)
        for name, text in texts.items():
            (folder / name).write_bytes(server.speak(text, **fields))
        return None
    words = shlex.split(system)
    loading, word = speak_by_command(words, {"word.wav": "Yes."}, folder, recordings)
    spent, sound = speak_by_command(words, texts, folder, recordings)
    starts = 1 if "{folder}" in system else len(texts)
    sound -= starts * word
    return max(0.0, spent - starts * loading) / sound if sound > 0 else None


def _read(path: Path) -> tuple[np.ndarray, int]:
    """Return the samples (T,) of a sound, and its sampling rate in Hz."""
    opened = decode(path)
    return np.concatenate([*opened.blocks]), opened.sampling_rate


def measure(paths: Iterable[Path], texts: Texts, judges: Judges) -> dict[str, Figures]:
    """Return the figures of each sentence, with sounds at ``paths``."""
    found = {}
    for path, (name, text) in zip(paths, texts.items()):
        samples, rate = _read(path)
        result = Result(name, text, reference=judges.recognizer.normalize(text) if judges.recognizer else None)
        judges.hear(result, torch.from_numpy(samples), rate)
        found[name] = result.figures
    return found


def read_systems(words: Sequence[str]) -> dict[str, str]:
    """Return commands and addresses by the systems' names; raise OptionError for invalid ones."""
    systems: dict[str, str] = {}
    for word in words:
        name, _, system = word.partition("=")
        if not re.fullmatch(r"\w[\w .,+-]*", name) or not system.strip() or name in systems:
            raise OptionError(f"{word}: expected NAME=COMMAND or NAME=URL, each name once")
        systems[name] = system
    return systems


def main(argv: Sequence[str] | None = None) -> None:
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
    items = find_recordings(read_texts(args.list), options)
    texts = {str(one.output.with_suffix(".wav")): plain_text(one.text or "") for one in items}
    recordings = {name: str(one.wav) for name, one in zip(texts, items) if one.wav}
    if len(recordings) == len(texts):
        copying = f"{shlex.join([sys.executable, str(ROOT / 'inference.py')])} -i {{copies}} -o {{folder}} --quiet"
        systems["copies, vocoder"] = f"{copying} --harmonic {shlex.quote(str(args.vocoder))}"
        systems["copies, Griffin-Lim"] = f"{copying} --griffin-lim-iters 60"
        recordings["word.wav"] = recordings[next(iter(texts))]
    judges = open_judges(("faster_whisper", "distillmos"), options, language=args.language)
    work: dict[str, float | None] = {}
    found = {}
    for system, command in systems.items():
        paths = [args.output / system / name for name in texts]
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # of an earlier run
        work[system] = speak(command, texts, args.output / system, recordings)
        found[system] = measure(paths, texts, judges)
    if recordings.keys() >= texts.keys():
        found[RECORDING] = measure([Path(recordings[name]) for name in texts], texts, judges)
    print(f"{len(texts)} sentences; Whisper {judges.whisper or '-'}")
    rows = []
    for system, figures in found.items():
        row = {"what": system} | {title: one.show(mean(one, [*figures.values()])) for title, one in _SHOWN.items()}
        spent = work.get(system)
        rows.append(row | {"work per second of sound (s)": "-" if spent is None else f"{spent:.3f}"})
    print(*markdown(rows), sep="\n")
    first, *others = found
    for name in others:
        apart = find_differences(_SHOWN.values(), found[first], found[name])
        texts_apart = [f"{title} {apart[one.key].show(one)}" for title, one in _SHOWN.items() if one.key in apart]
        print(f"{first} less {name}: {'; '.join(texts_apart) or '-'}")


if __name__ == "__main__":
    run(main)
