"""Write docs/MIGRATING.md: the published toolkits' options that are spelled otherwise here, from the table of them.

python -m scripts.migration_page
"""

from collections.abc import Mapping
from pathlib import Path

from common.cli import ArgumentParser, run
from common.published_options import EXTRACTION, INFERENCE, RECOGNITION, TEACHER_FORCING, TRAINING

PAGE = Path(__file__).resolve().parents[1] / "docs" / "MIGRATING.md"
COMMANDS = {
    "train.py": TRAINING,
    "inference.py": INFERENCE,
    "inference.py --jasper": RECOGNITION,
    "extract_mels.py": EXTRACTION,
    "extract_mels.py --checkpoint": TEACHER_FORCING,
}
INTRODUCTION = """# From the published toolkits

Written by `python -m scripts.migration_page`; do not edit. The commands of NVIDIA's FastPitch (1.0 and 1.1), HiFi-GAN,
Tacotron 2, WaveGlow and Jasper run here with the options that they had, with hyphens or underscores. This page lists
those that are spelled otherwise or have gone; all others are in [OPTIONS.md](OPTIONS.md). The former are accepted. The
latter end the command with exit status 2 and the line that stands here, unless the model has an option of that name.
Where a checkpoint is given, the options of its architecture are refused likewise: it holds the architecture.

The processes of several GPUs are started by `torchrun`, or by `python -m torch.distributed.launch`, whose
`--local-rank` each command accepts. What was `prepare_dataset.py` or `preprocess_audio2mel.py` is `extract_mels.py`,
and HiFi-GAN's extraction of FastPitch's mels is `extract_mels.py --checkpoint`. Jasper's `inference.py --ckpt` is
`inference.py --jasper`, or `--ckpt` as it was; `train.py --model-name` is `train.py --model`, likewise.
"""


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


def page() -> str:
    """The page as the table wants it."""
    text = INTRODUCTION
    for command, table in COMMANDS.items():
        text += f"\n## {command}\n\n| published | here |\n| --- | --- |\n{rows(table)}"
    return text


def main() -> int:
    """Write the page; tests/test_published_options.py fails where it is stale."""
    ArgumentParser(description="Write docs/MIGRATING.md from the table", prog="migration_page").parse_args()
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    run(main)
