"""Write the tables of docs/MIGRATING.md: published options, scripts and variables that are called otherwise here.

What stands before them is written by hand.

python -m scripts.migration_page
"""

from collections.abc import Mapping
from pathlib import Path

from common.cli import ArgumentParser, run
from common.files import write_text
from common.options import option_of
from common.registry import available_models, get_model
from scripts.launch import REMOVED
from scripts.options_page import parser_of
from scripts.start import all_scripts

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "MIGRATING.md"
# Title of a section -> the commands whose options it is about.
COMMANDS = {
    "train.py": [f"train -m {model}" for model in available_models()],
    "inference.py": ["inference"],
    "inference.py --jasper": ["inference --jasper CHECKPOINT"],
    "extract_mels.py": ["extract_mels"],
    "extract_mels.py --checkpoint": ["extract_mels --checkpoint CHECKPOINT"],
}
# Scripts of the published toolkits without one of that name here, and what to run.
SCRIPTS = {
    "scripts/download_fastpitch.sh": "`bash scripts/download_models.sh fastpitch-1.0`, with `--output FOLDER` "
    "for `MODEL_DIR`",
    "scripts/download_tacotron2.sh": "`bash scripts/download_models.sh tacotron2`, likewise",
    "scripts/download_waveglow.sh": "`bash scripts/download_models.sh waveglow`, likewise",
    "scripts/generate_filelists.sh": "`FEATURES=false bash scripts/prepare_dataset.sh`",
    "scripts/docker/launch.sh": "`scripts/docker/interactive.sh`, which gives the container this folder; put "
    "or link the data, checkpoints and results there",
    "scripts/mandarin_chinese/prepare_dataset.sh": "`DATASET_PATH=data/SF_bilingual NAME=sf FEATURES=false bash "
    "scripts/prepare_dataset.sh`, for a corpus in LJSpeech's layout",
    "scripts/mandarin_chinese/train.sh": "`DATASET_PATH=data/SF_bilingual NAME=sf OUTPUT_DIR=output_sf bash "
    "scripts/train.sh`, with the text options of [TEXT.md](TEXT.md); there are no cleaners for Mandarin",
    "scripts/mandarin_chinese/inference.sh": "`FASTPITCH=voice.pt PHRASES=sf_test.tsv bash "
    "scripts/inference_example.sh`",
}
# Variables of the scripts whose defaults are not as published, with the default here and why.
OTHER_DEFAULTS = {
    "NUM_GPUS": "all GPUs that there are, not 8, so that a script runs on any machine",
    "BATCH_SIZE, GRAD_ACCUMULATION": "of FastPitch 1.1 32 and 1, not 16 and 2: the same update of 256 utterances; of "
    "speaking and extraction 32 for every model, of Jasper's transcribing 32, or 16 in `evaluation.sh`, not 64; of "
    "benchmarks of inference 1, 4 and 8",
    "EPOCHS, EPOCHS_PER_CHECKPOINT": "of FastPitch 1500 and 50, as in 1.0, not 1.1's 1000 and 20",
    "PHONE, TEXT_CLEANERS": "of FastPitch `false` and english_cleaners_v3, so that training needs no dictionary; 1.1 "
    "is PHONE=true TEXT_CLEANERS=english_cleaners_v2. Speaking reads as the checkpoint was trained",
    "LOAD_PITCH_FROM_DISK": "`false`: the columns of the list decide, and `true` refuses lists without pitch",
    "RESUME": "`false`, not `true`: a run goes on only where that is asked for",
    "CUDNN_BENCHMARK": "of Jasper's training `false`, not `true`: its batches differ in length",
    "TORCHSCRIPT": "`false`, not `true`: networks run as they are",
    "EMA": "of transcribing: the EMA weights where the checkpoint has them",
    "PAD_LEADING": "of transcribing 0, not 16, which adds nothing to the recordings",
    "WARMUP, NUM_WARMUP_STEPS, REPEATS": "of benchmarks 16 on a GPU and 2 on a CPU, and 100 repeats, not 10 to 100 and "
    "200 to 1000",
    "AMP": "of benchmarks of training and of Jasper both precisions, for the table's speed-up",
    "EPOCHS_THIS_JOB": "of benchmarks all EPOCHS, which are 10, or 2 of Jasper",
}
SCRIPTS_INTRODUCTION = """## Scripts

The scripts have the names that they had, for all models: `MODEL=FastPitch`, `HiFi-GAN`, `Tacotron2`, `WaveGlow` or
`Jasper` in front of a command says which; `train_lj22khz.sh` and `inference.sh` are HiFi-GAN's and Jasper's. With
`MODEL=Jasper` arguments that are no options are, as they were, defaults of `DATASET_PATH`, `MODEL_CONFIG`, `OUTPUT_DIR`
and `CHECKPOINT`, in that order. These scripts are not here:
"""
VARIABLES_INTRODUCTION = """## Variables of scripts

All variables of the scripts that are not in this table are called as they were. Variables that have gone end a script
with exit status 2 and the line that stands here, unless they are `false` or 0. `BATCH_SIZE` of Jasper's training is, as
it was, of an update: `GRAD_ACCUMULATION` divides it. The
folder `configs` of a `MODEL_CONFIG` is `jasper/configs`.
"""

DEFAULTS_INTRODUCTION = """## Defaults of scripts

Folders and lists are those of this project ([OPTIONS.md](OPTIONS.md#variables-of-the-scripts)). Otherwise the defaults
are as published, but for these:
"""


def published_options(section: str) -> dict[str, str]:
    """Options of the published toolkits, and what replaces them in the commands of a section."""
    found: dict[str, str] = {}
    for command in COMMANDS[section]:
        found = parser_of(command).published | found
    architecture = {name for spec in map(get_model, available_models()) for name in spec.config.__dataclass_fields__}
    return {name: text for name, text in found.items() if name[2:].replace("-", "_") not in architecture}


def rows(table: Mapping[str, str]) -> str:
    """A row for each option that another one replaces, and for each reason why some have gone."""
    by_replacement: dict[str, list[str]] = {}
    for name, replacement in table.items():
        by_replacement.setdefault(replacement, []).append(f"`{name}`")
    text = ""
    for replacement, names in by_replacement.items():
        here = replacement.replace("|", "\\|") if " " in replacement else f"accepted as `{replacement}`"
        text += f"| {', '.join(names)} | {here} |\n"
    return text


def published_variables() -> dict[tuple[str, str], dict[str, tuple[str, ...]]]:
    """Variables of the originals with what replaces them -> the scripts and the models (none: all) that have them."""
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for script, one in sorted(all_scripts().items()):
        for field, known, _, models in one.declarations():
            here = known.variable or option_of(field)
            for name in (name for name in known.published if name[0] != "-"):
                found.setdefault((name, here), {})[script] = tuple(models)
        for name in one.removed.split():
            found.setdefault((name, REMOVED[name]), {})[script] = ()
    return dict(sorted(found.items()))


def variable_rows() -> str:
    """A row for each variable of the published scripts that is called otherwise here or has gone."""
    text = ""
    for (name, here), by_script in published_variables().items():
        if " " not in here:
            here = f"accepted as {'the argument ' * here.startswith('--')}`{here}`"
        scripts = ", ".join(f"`{script}.sh`" for script in by_script)
        models = {model: None for models in by_script.values() for model in models}
        only = ", ".join(models) if all(by_script.values()) else "all"
        text += f"| `{name}` | {scripts} | {only} | {here} |\n"
    return text


def page() -> str:
    """The page as the tables want it."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## train.py\n")[0]  # is written by hand
    for section in COMMANDS:
        text += f"\n## {section}\n\n| published | here |\n| --- | --- |\n{rows(published_options(section))}"
    text += f"\n{SCRIPTS_INTRODUCTION}\n| published | here |\n| --- | --- |\n"
    text += "".join(f"| `{script.removeprefix('scripts/')}` | {here} |\n" for script, here in SCRIPTS.items())
    text += f"\n{VARIABLES_INTRODUCTION}\n| published | scripts | models | here |\n| --- | --- | --- | --- |\n"
    text += variable_rows()
    text += f"\n{DEFAULTS_INTRODUCTION}\n| variable | default here |\n| --- | --- |\n"
    for names, here in OTHER_DEFAULTS.items():
        text += f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {here} |\n"
    return text


def main() -> int:
    """Write the page; tests/test_published_options.py fails where it is stale."""
    ArgumentParser(description="Write docs/MIGRATING.md from the table", prog="migration_page").parse_args()
    write_text(PAGE, page())
    return 0


if __name__ == "__main__":
    run(main)
