"""Compares voices of any origin on a list: words wrong, DistillMOS, and work for a second of sound on one thread.

    bash scripts/benchmark.sh voices list.txt --recordings wavs \
        ours=".venv/bin/python inference.py -i {list} -o {folder}" \
        "piper=piper -m joe.onnx -f {output} -- {text}" "other=http://localhost:8880?voice=af_heart&model=kokoro"

A system is NAME=COMMAND or NAME=URL. A command gets each sentence in the place of {text}, or on its standard input,
and writes {output}, or a WAV to its standard output. Or it gets all at once: {list}, with lines of name.wav|text, to
write to {folder}. A server has OpenAI's API for speech; fields of its requests follow the URL, and after a space the
command that starts it may follow. Work is in processor seconds without those of loading: what a command takes for one
word is subtracted, as is what a server that is started takes for it. The recordings, if each line has one, and copies
of them are measured too. What was measured of the same texts before is kept.
"""

import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request, urlopen

import numpy as np
import torch

from common.audio import decode, save_wav
from common.checkpoints import open_checkpoint
from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError, reason
from common.evaluation.command import open_evaluation, open_judges
from common.evaluation.differences import difference_rows, find_differences
from common.evaluation.evaluator import Judges
from common.evaluation.items import EvaluationItem, find_recordings, read_texts
from common.evaluation.options import EvaluationOptions
from common.evaluation.results import MEASURES, RECORDING, Result, mean
from common.evaluation.whisper import Whisper
from common.files import read_json, sha256, write_json, write_text
from common.pages import text_table
from common.precision import Precision
from common.synthesis import Phrase, Synthesizer
from common.synthesis.options import VoiceOptions
from common.text import plain_text
from scripts.benchmarks.table import Row, machine, markdown
from scripts.launch import ROOT

_WORD = "Yes."  # is spoken to know the work of loading
_PATIENCE = 300.0  # s for a server to start, or to answer
_COPIES = {"copies, vocoder": "synthesizer", "copies, Griffin-Lim": "griffin_lim"}  # attributes of `Evaluator`
_SHOWN = {"words wrong (%)": "wer", "DistillMOS": "mos"}

Texts = Mapping[str, str]  # by the names of the files
Voice = dict[str, Any]  # what is known of a system, as JSON: "key", "work" and "figures" by the names of the files


def run_command(words: Sequence[str], places: Mapping[str, object], *, text: str = "") -> bytes:
    """Run a command with ``text`` on its standard input, and what belongs in ``places``; returns its output."""
    pattern = re.compile("|".join(map(re.escape, places)))
    filled = [pattern.sub(lambda found: str(places[found[0]]), word) for word in words]
    done = subprocess.run(filled, input=text.encode(), capture_output=True, env=_environment(), check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise InputError(f"{shlex.join(filled)}: exit status {done.returncode}: {said[-1]}")
    return done.stdout


def speak_by_command(words: Sequence[str], texts: Texts, folder: Path) -> None:
    """Let a command speak into a folder, at once or one text after the other."""
    if _is_started_once(words):
        path = folder / "list.txt"
        write_text(path, "".join(f"{name}|{text}\n" for name, text in texts.items()))
        run_command(words, {"{list}": path, "{folder}": folder})
        return
    for name, text in texts.items():
        output = run_command(words, {"{text}": text, "{output}": folder / name}, text=text)
        if not any("{output}" in word for word in words):
            (folder / name).write_bytes(output)


def ask_server(url: str, texts: Texts, folder: Path) -> None:
    """Let a server speak one text after the other into a folder."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/v1/audio/speech"
    for name, text in texts.items():
        body = {"input": text, "response_format": "wav", **dict(parse_qsl(parts.query))}
        request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=_PATIENCE) as response:
                (folder / name).write_bytes(response.read())
        except (OSError, http.client.HTTPException) as error:
            said = error.read().decode(errors="replace")[:200] if hasattr(error, "read") else ""
            raise InputError(f"{address}: {name}: {reason(error)} {said}") from error


def speak_by_server(words: Sequence[str], texts: Texts, folder: Path) -> None:
    """Start a server by the words after its URL, let it speak into a folder, and end it."""
    url, *command = words
    place = (urlsplit(url).hostname or "", urlsplit(url).port or 80)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment(), start_new_session=True) as server:
        try:
            end = time.monotonic() + _PATIENCE
            while server.poll() is None and time.monotonic() < end:
                with suppress(OSError), socket.create_connection(place, timeout=1):
                    break
                time.sleep(0.2)
            else:
                raise InputError(f"{shlex.join(command)}: does not answer at {url}")
            ask_server(url, texts, folder)
            if server.poll() is not None:
                raise InputError(f"{shlex.join(command)}: has ended, so another server answers at {url}")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)


def speak(system: str, texts: Texts, folder: Path) -> float | None:
    """Let a system, a command or URL, speak into a folder; the processor seconds for a second of sound, if known."""
    words, spent, seconds = shlex.split(system), [], []
    is_server = words[0].startswith(("http://", "https://"))
    if is_server and len(words) == 1:
        ask_server(words[0], texts, folder)
        return None
    (folder / "loading").mkdir(exist_ok=True)
    for some, place in (({"word.wav": _WORD}, folder / "loading"), (texts, folder)):
        before = os.times()
        try:
            (speak_by_server if is_server else speak_by_command)(words, some, place)
        except OSError as error:
            raise OptionError(f"{system}: cannot be started ({error.strerror})") from error
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
        seconds.append(sum(_seconds(place / name) for name in some))
    starts = 1 if is_server or _is_started_once(words) else len(texts)
    sound = seconds[1] - starts * seconds[0]
    return max(0.0, spent[1] - starts * spent[0]) / sound if sound > 0 else None


def _is_started_once(words: Sequence[str]) -> bool:
    return any("{list}" in word for word in words)


def copy(items: Sequence[EvaluationItem], synthesizer: Synthesizer, folder: Path) -> float:
    """Write copies of recordings into a folder; the processor seconds for a second of sound."""
    work = seconds = 0.0
    for item in items:
        before = time.process_time()
        wave = synthesizer.speak_inputs(item.inputs).wave
        work, seconds = work + time.process_time() - before, seconds + len(wave) / synthesizer.audio.sampling_rate
        save_wav(folder / _name(item.phrase), wave, sampling_rate=synthesizer.audio.sampling_rate)
    return work / seconds


def copy_files(phrases: Sequence[Phrase], folder: Path) -> None:
    """Copy a list's recordings under the names of the utterances."""
    for phrase in phrases:
        shutil.copyfile(str(phrase.wav), folder / _name(phrase))


def _name(phrase: Phrase) -> str:
    return str(phrase.output.with_suffix(".wav"))


def judge(path: Path, text: str, judges: Judges) -> dict[str, float]:
    """The figures of a sound of ``text``."""
    opened = decode(path)
    reference = judges.recognizer.normalize(text) if judges.recognizer else None
    result = Result(path.name, text, reference=reference)
    judges.hear(result, torch.from_numpy(np.concatenate([*opened.blocks])), opened.sampling_rate)
    return result.figures


def _seconds(path: Path) -> float:
    opened = decode(path)
    return sum(map(len, opened.blocks)) / opened.sampling_rate


def _environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1"}


@contextmanager
def _one_core() -> Iterator[None]:
    """Let this process and its children use one core, so that no library starts more threads, where Linux can."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if cores:
            os.sched_setaffinity(0, {max(cores)})
        yield
    finally:
        torch.set_num_threads(threads)
        if cores:
            os.sched_setaffinity(0, cores)


def measure(speaker: Callable[[Path], float | None], key: str, texts: Texts, folder: Path, judges: Judges) -> Voice:
    """What is known of a system that ``speaker`` lets speak into a folder, or of an earlier run of this ``key``."""
    path = folder.with_name(f"{folder.name}.json")
    if path.is_file() and (known := read_json(path)).get("key") == key:
        return known
    for name in texts:  # what an earlier run has left would be judged in place of what a command failed to write
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
    work = speaker(folder)
    figures = {name: judge(folder / name, text, judges) for name, text in texts.items()}
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
    options = EvaluationOptions(
        output=args.output, recordings=args.recordings, whisper=args.whisper, language=args.language
    )
    phrases = find_recordings(read_texts(args.list), options)
    texts = {_name(one): plain_text(one.text or "") for one in phrases}
    speakers: dict[str, tuple[str, Callable[[Path], float | None]]]
    speakers = {name: (system, partial(speak, system, texts)) for name, system in systems.items()}
    with _one_core():
        judges = open_judges(("faster_whisper", "distillmos"), options, language=args.language)
        heard_by = judges.recognizer.source if isinstance(judges.recognizer, Whisper) else ""
        if all(phrase.wav for phrase in phrases):
            vocoder = {"vocoder": open_checkpoint(args.vocoder, role="vocoder", ema=True)}
            items, evaluator = open_evaluation(args.list, options, VoiceOptions(), vocoder, Precision())
            files = [[phrase.wav, Path(str(phrase.wav)).stat().st_mtime_ns] for phrase in phrases]
            copies = {name: partial(copy, items, getattr(evaluator, one)) for name, one in _COPIES.items()}
            beside: dict[str, Callable[[Path], float | None]]
            beside = {RECORDING: partial(copy_files, phrases), **copies}
            speakers |= {name: (f"{files} {sha256(args.vocoder)}", one) for name, one in beside.items()}
        elif args.recordings:
            print("note: without rows of recordings and copies, as some sentences have no recording")
        found = {}
        for name, (system, speaker) in speakers.items():
            key = hashlib.sha256(
                repr([system, texts, heard_by, args.language, judges.score is None]).encode()
            ).hexdigest()
            found[name] = measure(speaker, key, texts, args.output / name, judges)
        print(f"{len(texts)} sentences; {machine(cuda=False)}; Whisper {heard_by or '-'}")
    print(*markdown([row_of(name, one) for name, one in found.items()]), sep="\n")
    figures = {name: one["figures"] for name, one in found.items()}
    if first := next(iter(systems), None):
        measures = [MEASURES[key] for key in _SHOWN.values()]
        apart = find_differences(measures, figures.pop(first), figures)
        print(*text_table([(f"{first}: {row[0]}", *row[1:]) for row in difference_rows(measures, apart)]), sep="\n")


def row_of(name: str, found: Voice) -> Row:
    """The row of a system in the table."""
    row = {"what": name}
    for title, key in _SHOWN.items():
        row[title] = MEASURES[key].show(mean(MEASURES[key], [*found["figures"].values()]))
    return row | {"work per second of sound (s)": "" if found["work"] is None else f"{found['work']:.3f}"}


if __name__ == "__main__":
    run(main)
