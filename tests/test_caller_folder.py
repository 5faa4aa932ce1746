"""Scripts and the command work in the folder that they are called in, from wherever that is."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from shell import ROOT, environment_of, training_options

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


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_subcommand_is_that_of_its_function_without_pytorch(name: str, capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    said = capsys.readouterr().out
    assert said.startswith("usage: ") and {*parser_of(name)._option_string_actions} > {"--help"}
    program = f"import sys\nfrom speech_toolkit.__main__ import main\ntry: main(['{name}', '--help'])\n"
    program += "except SystemExit: assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)


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
