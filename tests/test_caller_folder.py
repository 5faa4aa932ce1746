"""Scripts and the command work in the folder that they are called in, from wherever that is."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from shell import ROOT, environment_of, run_bash, training_options

from speech_toolkit.__main__ import COMMANDS, main, parser_of


def dry_run_in(folder: Path, script: str, *words: str, **variables: str) -> list[list[str]]:
    """The words of each command that a script would run from a folder."""
    environment = environment_of(DRY_RUN="1", NUM_GPUS="0", **variables)
    command = ["bash", str(ROOT / "scripts" / script), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [shlex.split(line) for line in done.stdout.splitlines()]


def test_paths_start_from_the_callers_folder(tmp_path: Path):
    (tmp_path / "my_voice").mkdir()
    (tmp_path / "my_voice/metadata.csv").write_text("a|Hello.\n")
    (words, *_) = dry_run_in(tmp_path, "train.sh", DATASET_PATH="my_voice", NAME="my_voice")
    assert words[1] == str(ROOT / "train.py")
    args = training_options(words)
    assert (str(args.dataset_path), str(args.output)) == ("my_voice", "output/my_voice")
    assert str(args.training_files[0]).startswith("filelists/my_voice_")
    commands = dry_run_in(tmp_path, "finetune_voice.sh", "my_voice")
    assert commands[1][commands[1].index("--from-checkpoint") + 1] == str(ROOT / "voices/en-small.pt")
    (words,) = dry_run_in(tmp_path, "inference_example.sh", FASTPITCH="mine.pt")
    assert words[words.index("--input") + 1] == str(ROOT / "phrases/devset10.tsv")
    assert words[words.index("--fastpitch") + 1] == "mine.pt"


def test_help_of_each_subcommand_is_that_of_its_function_without_pytorch():
    program = "import contextlib, sys\nfrom speech_toolkit.__main__ import COMMANDS, main\nfor name in COMMANDS:\n"
    program += " with contextlib.suppress(SystemExit): main([name, '--help'])\n assert 'torch' not in sys.modules, name"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.count("usage: ") == len(COMMANDS)
    assert all({*parser_of(name)._option_string_actions} > {"--help"} for name in COMMANDS)


def test_a_setting_of_a_script_is_an_option_of_its_subcommand_and_no_variable(monkeypatch, capsys):
    monkeypatch.setenv("DRY_RUN", "1")
    monkeypatch.setenv("EPOCHS", "7")  # of another program
    main(["finetune", "my_voice", "--num-gpus", "0", "--epochs", "3", "--speaker", "ann"])
    training = shlex.split(capsys.readouterr().out.splitlines()[1])
    assert training_options(training).epochs == 3


def test_the_shell_completes_subcommands_and_options(monkeypatch, tmp_path: Path):
    pytest.importorskip("argcomplete")
    for line, found in (("speech tra", {"train", "transcribe"}), ("speech speak --pac", {"--pace"})):
        environment = environment_of(
            _ARGCOMPLETE="1",
            COMP_LINE=line,
            COMP_POINT=str(len(line)),
            _ARGCOMPLETE_STDOUT_FILENAME=str(tmp_path / "o"),
        )
        subprocess.run([sys.executable, "-m", "speech_toolkit"], cwd=ROOT, env=environment, check=False)
        assert {*(tmp_path / "o").read_text().replace("\v", "\n").split()} == found


VENV = """
source "$1/scripts/lib.sh"
ROOT=$2 VENV=$2/.venv
cat >"$2/bin/python3" <<END
#!/bin/sh
[ "\\$1" != -m ] || [ "\\$2" != venv ] || { mkdir -p "\\$3/bin"; cp "\\$0" "\\$3/bin/python"; echo made; exit $3; }
[ "\\$1" != -m ] || { shift \\$((\\$# - 1)); echo "installed \\$(basename "\\$1")"; exit; }
exec "$4" "\\$@"
END
chmod +x "$2/bin/python3"
PATH=$2/bin:$PATH
fresh() { unset PYTHON; use_python "$@"; [ "$PYTHON" = "$VENV/bin/python" ]; }
"""
RUNS = """
fresh; fresh; echo --
fresh dev; fresh dev; echo --
echo new >> "$ROOT/requirements.txt"; fresh dev; fresh; echo --
echo broken > "$VENV/bin/python"; fresh
"""


def prepared(folder: Path, status: str = "0") -> list[str | Path]:
    """Arguments of the program above, in whose folder are requirements."""
    (folder / "bin").mkdir()
    for name in ("constraints", "requirements", *(f"requirements-{one}" for one in ("speak", "train", "serve", "dev"))):
        (folder / f"{name}.txt").write_text("torch\n")
    return ["bash", ROOT, folder, status, sys.executable]


def test_the_environment_is_made_once_and_again_when_requirements_change(tmp_path: Path):
    result = run_bash("-euo", "pipefail", "-c", VENV.replace(" >/dev/null", "") + RUNS, *prepared(tmp_path))
    assert result.returncode == 0, result.stderr
    base, dev = "installed requirements.txt\n", "installed requirements-dev.txt\n"
    assert result.stdout == f"{base}--\n{dev}--\n{dev}--\n{dev}"
    assert result.stderr.count("making ") == 2


def test_an_environment_that_cannot_be_made_is_one_line_and_nothing_is_left(tmp_path: Path):
    result = run_bash("-euo", "pipefail", "-c", VENV + "fresh", *prepared(tmp_path, "1"))
    assert result.returncode == 1 and not (tmp_path / ".venv").exists()
    assert result.stderr.splitlines()[-1].startswith("error: python3 -m venv ") and "python3-venv" in result.stderr


@pytest.mark.parametrize(("python", "fits"), [("", False), ("exit 1", False), ("exit 0", True)])
def test_an_environment_that_the_scripts_did_not_make_is_left_alone(python: str, fits: bool, tmp_path: Path):
    (venv := tmp_path / ".venv" / "bin").mkdir(parents=True)
    (venv / "python").write_text(f"#!/bin/sh\n{python}\n")
    (venv / "python").chmod(0o755 if python else 0o644)
    (venv / "work").write_text("mine")
    result = run_bash("-euo", "pipefail", "-c", VENV + "fresh", *prepared(tmp_path))
    assert (result.returncode, result.stdout, (venv / "work").read_text()) == (0 if fits else 1, "", "mine")
    assert [*(tmp_path / ".venv").iterdir()] == [venv]
    assert result.stderr.count("\n") == (not fits) and ("PYTHON" in result.stderr) == (not fits)


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_each_requirement_has_one_tested_version_on_each_python(python: str):
    environment = {"python_version": python, "python_full_version": f"{python}.2", "sys_platform": "linux"}
    tested: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        pinned = Requirement(line)
        if pinned.marker is None or pinned.marker.evaluate(environment):
            assert pinned.name not in tested, line
            tested[canonicalize_name(pinned.name)] = next(iter(pinned.specifier)).version
    files = sorted({*ROOT.glob("requirements*.txt")} - {ROOT / "requirements-evaluate.txt"})  # which is optional
    for line in [line for file in files for line in file.read_text().splitlines() if not line.startswith("-r")]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(tested[canonicalize_name(wanted.name)]), line
