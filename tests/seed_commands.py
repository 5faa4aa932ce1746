"""The commands of the documents that this project implements, and a folder of a project to paste them into."""

import contextlib
import importlib
import io
import re
import shlex
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from conftest import SHARED
from corpus import make_corpus
from shell import ROOT, TRACKED, paste

from common.checkpoints.checkpoint import save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.logger import read_log

START = r'(?:[A-Z_]+=(?:"[^"]*"|\S+) )*(?:bash|python|git clone|cd) \S'
COMMAND = re.compile(rf"{START}.*?(?= {START}|$)")  # several may stand on one line, where line breaks were lost
# Besides lines of commands: help that a sentence names, a script with an argument, and options to pass to a program.
HELP = re.compile(r"\bpython \w+\.py (?:--help|-h)\b")
SCRIPT = re.compile(r"scripts/\w+\.sh \w+$")
OPTIONS = re.compile(r"--[\w-]+ [^|\s]")
OF_A_GPU = ("--cuda", "--cudnn-benchmark")
FILLED = ("filelists/", "phrases/", "voices/")  # folders of a project that commands write to
CLIPS = {"train": 4, "val": 1, "test": 1}  # of the corpus of `Project`


def commands(text: str) -> list[str]:
    """Every command of a document, in order, each on one line with single spaces.

    Typographic quotes are read as the shell's; quotes and backticks without their partner are left out. Options to pass
    to a program, as ``--batch-size 32``, count as commands.
    """
    text = re.sub(r"[“”]", '"', text)
    text = re.sub(r"`?[ \t]*\\[ \t]*\n?[ \t]*", " ", text)
    text = re.sub(rf"(?<=[a-z][.:])(?={START})", "\n", text)
    found: list[str] = []
    for line in text.splitlines():
        line = " ".join(line.split())
        if re.match(START, line):
            found += COMMAND.findall(line)
        elif SCRIPT.match(line) or OPTIONS.match(line):
            found.append(line)
        else:
            found += HELP.findall(line)
    return [command.rstrip('"') if command.count('"') % 2 else command for command in found]


def seed(number: int) -> str:
    """The text of the document of that number; where it is absent, the test or the file of tests is skipped."""
    found = list((SHARED / "seeds").glob(f"{number:03d}_*.txt"))
    if not found:
        pytest.skip(f"{SHARED}/seeds: no document {number:03d}", allow_module_level=True)
    return found[0].read_text(encoding="utf-8")


def updates_shown(printed: str, number: int) -> list[str]:
    """The lines of the two updates of a training, which show the figures that the document of that number shows."""
    lines = re.findall("^DLL .*", seed(number), re.MULTILINE)[:1] + re.findall("^.* [|] iter .*", printed, re.MULTILINE)
    wanted, *shown = (re.findall(r"[a-zA-Z]+(?: [a-z]+)*", line) for line in lines)
    assert shown == [wanted, wanted]
    return lines[1:]


def files_named(text: str) -> list[str]:
    """The scripts, settings of machines, phrases and programs that a document names."""
    found = []
    for name in re.findall(r"(?:scripts|platform|phrases)/[\w{},.-]+\.(?:sh|tsv)|(?<=python )\w+\.py", text):
        choices = re.search(r"{(.+)}", name)
        found += [re.sub(r"{.+}", choice, name) for choice in (choices[1].split(",") if choices else [""])]
    return found


def speak_longer(path: Path) -> None:
    """Let a FastPitch of hardly any training say each symbol for some frames."""
    checkpoint = load_checkpoint(path)
    checkpoint.networks["fastpitch"]["duration_predictor.fc.bias"].fill_(1.6)
    save_checkpoint(path, checkpoint)


def place_of_program(words: Sequence[str]) -> int:
    """Where in a command its program of this project stands."""
    return next(
        index
        for index, word in enumerate(words)
        if word.endswith(".py") or word.startswith("scripts.") or word == "speech_toolkit"
    )


def names_logged(path: Path) -> set[str]:
    """The figures in a run's JSON log."""
    return set().union(*(record["data"] for record in read_log(path) if record["type"] == "LOG"))


class Project:
    """A folder with links to the files and folders that git tracks of this project, and lists and data of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in {name if name.startswith(FILLED) else name.partition("/")[0] for name in TRACKED}:
            link = folder / name
            if not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(ROOT / name)

    def bash(self, command: str, **variables: str | Path) -> CompletedProcess[str]:
        """Run a line as a shell in this folder does, on the CPU."""
        return paste(command, self.folder, **{"OMP_NUM_THREADS": "1"} | variables)

    def dry_run(self, command: str, **variables: str | Path) -> list[list[str]]:
        """The words of each command that a line's script would run, with ``py`` for the interpreter."""
        done = self.bash(command, DRY_RUN="1", **variables)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.replace(sys.executable, "py").splitlines()
        return [shlex.split(line) for line in lines if not line.startswith("next")]

    def python(self, command: str | Sequence[str], *options: str | Path) -> str:
        """Run a program of this project in this process and folder, with more options; returns what it printed.

        Without a GPU the options that ask for one are left out.
        """
        words = shlex.split(command) if isinstance(command, str) else command
        place = place_of_program(words)
        program = importlib.import_module(
            words[place].removesuffix(".py").replace("speech_toolkit", "speech_toolkit.__main__")
        )
        words = [words[place], *(word for word in words[place + 1 :] if word not in OF_A_GPU), *map(str, options)]
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", words)
            try:
                status = program.main() or 0
            except SystemExit as end:
                if end.code:
                    raise
                status = 0  # of --help
        assert status == 0, printed.getvalue()
        return printed.getvalue()

    def replay(self, command: str, *options: str | Path, **variables: str | Path) -> str:
        """Run what a line's script would run, in this process; returns what it printed."""
        return "".join(self.python(words, *options) for words in self.dry_run(command, **variables))

    def __truediv__(self, path: str) -> Path:
        return self.folder / path


def archive_of_ljspeech(folder: Path) -> Path:
    """An archive in the layout of LJSpeech-1.1 with some clips of each of its splits, each with a sound of its own."""
    names = [
        clip
        for split, count in CLIPS.items()
        for clip in (ROOT / f"filelists/ljs_{split}_ids.txt").read_text().split()[:count]
    ]
    corpus = make_corpus(folder / "LJSpeech-1.1", len(names), seconds=0.6)
    for number, clip in enumerate(names):
        (corpus / "wavs" / f"c{number:03d}.wav").rename(corpus / "wavs" / f"{clip}.wav")
    (corpus / "metadata.csv").write_text("".join(f"{clip}|Line {n}.|Line one.\n" for n, clip in enumerate(names)))
    shutil.rmtree(corpus / "TextGrid")  # which LJSpeech has not
    (corpus / "README").write_text("A corpus.\n")
    with tarfile.open(folder / "LJSpeech-1.1.tar.bz2", "w:bz2") as archive:
        for name in ("wavs", "metadata.csv", "README"):
            archive.add(corpus / name, f"LJSpeech-1.1/{name}")
    return folder / "LJSpeech-1.1.tar.bz2"
