"""Every variable of the published toolkits' scripts changes what runs here, or is answered by one line."""

import json
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from shell import ROOT, dry_run, run_bash, training_options

ORIGINALS = Path(__file__).resolve().parents[2] / "shared" / "originals" / "options.json"
_PAGE = (ROOT / "docs/MIGRATING.md").read_text(encoding="utf-8")
SCRIPTS = [f"scripts/{name}" for name in re.findall(r"^\| `([\w/]+\.sh)` \|", _PAGE, re.MULTILINE)]
OTHER_DEFAULTS = re.findall(r"`([A-Z_0-9]+)`", re.sub(r"(\|[^|]*\|).*", r"\1", _PAGE.partition("\n## Defaults of")[2]))
MODELS = {"FastPitch": "FastPitch", "HiFi-GAN": "HiFi-GAN", "Tacotron": "Tacotron2", "Jasper": "Jasper"}
# What a script has before a variable is set: a GPU, and few runs of the benchmarks.
BASE = {
    "train_benchmark": {"FastPitch": {}, "HiFi-GAN": {"AMP": "true"}, "Jasper": {"NUM_GPUS_SEQ": "1"}},
    "inference_benchmark": {
        "FastPitch": {"NUM_GPUS": "1", "WAVEGLOW": "w.pt"},
        "HiFi-GAN": {"NUM_GPUS": "1"},
        "Jasper": {"NUM_GPUS": "1", "BATCH_SIZE_SEQ": "2", "MAX_DURATION_SEQ": "2"},
    },
    "inference_example": {"FastPitch": {"NUM_GPUS": "1", "WAVEGLOW": "w.pt"}, "HiFi-GAN": {"NUM_GPUS": "1"}},
}
# Variables whose value is no whole number; of all others it is 38.
VALUES = {"NUM_GPUS": "2", "LR_POLICY": "legacy", "DENOISING": "0.38", "PRE_ALLOCATE": "10 20", "DALI_DEVICE": "none"}


def published_scripts() -> list[tuple[str, str, dict[str, str]]]:
    """Model, script, and variables with their defaults, of the scripts that are here too."""
    if not ORIGINALS.exists():
        return []
    found = []
    for toolkit, facts in json.loads(ORIGINALS.read_text()).items():
        model = next(model for name, model in MODELS.items() if toolkit.startswith(name))
        found += [(model, script, names) for script, names in facts["variables"].items() if script not in SCRIPTS]
    return found


PUBLISHED = published_scripts()


@cache
def outcome(script: str, settings: frozenset[tuple[str, str]]) -> tuple[int, str, str]:
    """Status, commands and messages of a dry run."""
    result = run_bash(ROOT / script, DRY_RUN="1", **dict(settings))
    return result.returncode, result.stdout, result.stderr


@pytest.mark.skipif(not PUBLISHED, reason="shared/originals/options.json is not here")
def test_every_published_script_is_here_or_named_with_what_to_run_instead():
    assert len(PUBLISHED) > 40
    assert [script for _, script, _ in PUBLISHED if not (ROOT / script).is_file()] == []
    assert [script for script in SCRIPTS if (ROOT / script).exists()] == []


@pytest.mark.parametrize(("model", "script", "variables"), PUBLISHED, ids=lambda value: str(value).partition(" ")[0])
def test_every_published_variable_has_an_effect_or_one_line(model: str, script: str, variables: dict[str, str]):
    kind = Path(script).stem
    base = {"MODEL": model} | BASE.get(kind, {}).get(model, {"NUM_GPUS": "1"} if kind != "prepare_dataset" else {})
    assert outcome(script, frozenset(base.items()))[0] == 0
    for name, default in variables.items():
        values = ("true", "false") if default in ("true", "false") else (VALUES.get(name, "38"),)
        seen = {outcome(script, frozenset((base | {name: value}).items())) for value in values}
        if len(values) == 1:
            seen.add(outcome(script, frozenset(base.items())))
        assert len({commands for _, commands, _ in seen}) == 2, f"{name} does nothing"
        for status, _, messages in seen:
            assert status in (0, 2), messages
            if status == 2:
                assert messages.count("error: ") == 1 and f"{name}=" in messages.splitlines()[-1]


def test_a_platform_file_gives_way_to_the_original_name_of_a_variable():
    platform = "platform/DGX1-16GB_Jasper_AMP_8GPU.sh"
    args = training_options(dry_run(platform, GRAD_ACCUMULATION_STEPS="2", BATCH_SIZE="64")[0])
    assert (args.gradient_accumulation_steps, args.batch_size) == (2, 32)


POSITIONS = ("/data", "configs/jasper10x5dr_speedp-online_speca.yaml", "/results", "j.pt")
CONFIG = "jasper/configs/jasper10x5dr_speedp-online_speca.yaml"
DEV = "librispeech-dev-clean-wav.json"


def test_jaspers_positions_are_defaults_of_variables():
    (words,) = dry_run("scripts/train.sh", *POSITIONS, "--seed", "3", MODEL="Jasper")
    args = training_options(words)
    assert (str(args.dataset_path), str(args.output), args.seed) == ("/data", "/results", 3)
    assert (str(args.model_config), str(args.checkpoint_path)) == (CONFIG, "j.pt")
    assert str(args.validation_files[0]) == "/data/librispeech-dev-clean-wav.json"
    (words,) = dry_run("scripts/train.sh", *POSITIONS[:3], "", MODEL="Jasper", DATA_DIR="own", OUTPUT_DIR="mine")
    args = training_options(words)
    assert (str(args.dataset_path), str(args.output), args.checkpoint_path) == ("own", "mine", None)
    assert dry_run("scripts/train.sh", "", "", "", "", MODEL="Jasper") == dry_run("scripts/train.sh", MODEL="Jasper")


def test_jaspers_positions_are_those_of_the_other_scripts_too():
    test = "librispeech-test-other-wav.json"
    wanted = f"py inference.py --jasper j.pt --input /data/{test} --dataset-path /data --output /results/{{}} "
    (words,) = dry_run("scripts/inference.sh", *POSITIONS)
    assert f"{' '.join(words)} ".startswith(wanted.format("transcripts.json"))
    heading, words = dry_run("scripts/evaluation.sh", *POSITIONS, DATASET="test-other")
    assert heading == [f"/data/{test}"] and f"{' '.join(words)} ".startswith(wanted.format(test))
    base = {"MODEL": "Jasper", "BATCH_SIZE_SEQ": "2"}
    measured = " ".join(dry_run("scripts/inference_benchmark.sh", *POSITIONS, **base, MAX_DURATION_SEQ="2")[0])
    assert "--jasper j.pt" in measured and "--log-file /results/" in measured and f"--input /data/{DEV}" in measured
    commands = dry_run("scripts/train_benchmark.sh", *POSITIONS, **base, NUM_GPUS_SEQ="1", AMP="false")
    args = training_options(commands[0])
    assert str(args.dataset_path) == "/data" and str(args.output).startswith("/results/")
    assert (str(args.model_config), str(args.checkpoint_path)) == (CONFIG, "j.pt")


RECIPES = [entry for entry in PUBLISHED if entry[1].endswith(("/train.sh", "/train_lj22khz.sh", "/fine_tune.sh"))]
# Folders and lists, and the variables whose other defaults docs/MIGRATING.md states.
OWN_PATHS = re.compile("_DIR$|_PATH$|FILELIST$")
OTHER = {"FastPitch": {"BATCH_SIZE", "GRAD_ACCUMULATION", "EPOCHS", "EPOCHS_PER_CHECKPOINT", "PHONE", "TEXT_CLEANERS"}}
OTHER |= {"FastPitch 1.0": set(), "HiFi-GAN": {"RESUME"}, "Jasper": {"RESUME", "CUDNN_BENCHMARK"}}
OTHER["FastPitch"].add("LOAD_PITCH_FROM_DISK")


@pytest.mark.parametrize(("model", "script", "variables"), RECIPES, ids=lambda value: str(value).partition(" ")[0])
def test_recipes_have_the_published_defaults_but_for_those_that_the_page_names(
    model: str, script: str, variables: dict[str, str]
):
    other = OTHER["FastPitch 1.0" if "BS" in variables else model]
    assert other <= set(OTHER_DEFAULTS)
    base = {"MODEL": model, "NUM_GPUS": "8", "LEARNED_ALIGNMENT": "auto" if model == "FastPitch" else ""}
    expected = vars(training_options(dry_run(script, **base)[0]))
    for name, default in variables.items():
        if not default or "$" in default or OWN_PATHS.search(name):
            continue
        result = run_bash(ROOT / script, DRY_RUN="1", **(base | {name: default}))
        if result.returncode == 0:  # else it has gone
            same = vars(training_options(shlex.split(result.stdout))) == expected
            assert same == (name not in other), name
