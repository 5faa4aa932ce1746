"""Options of the published toolkits that are spelled otherwise here or have gone, by command, with what replaces them.

A replacement without spaces is an option that does the same: the published name is read as that one. Any other text
says why the option no longer exists, and what to do. A parser that has an option itself reads it as its own.
`ArgumentParser.answer_published` reads the tables, and docs/MIGRATING.md shows them.
"""

from collections.abc import Iterable
from dataclasses import fields

from common.cli import option_of

_ARCHITECTURE = "the checkpoint holds the architecture; leave it out"
_AUDIO = "the checkpoint describes its mel-spectrograms; leave it out"
_TEXT = "the checkpoint describes how its text is read; leave it out"
_SCALE = "recordings are scaled by their own bit depth; leave it out"


def _each(names: str, replacement: str) -> dict[str, str]:
    """Map several options, separated by spaces, to one replacement."""
    return dict.fromkeys(names.split(), replacement)


_PROCESSES = _each(
    "--world-size --rank --dist-url --group-name --dist-backend",
    "the launcher says it, as torchrun --nproc-per-node N does; leave it out",
)
EXTRACTION = {
    "--wav-text-filelists": "--wav-text-filelist",
    "--wav-files": "--wav-text-filelist",
    "--mel-files": "--output-meta-file",
    "--f0-method": "--pitch-method",
    "--n-workers": "--num-workers",
    **_each("-b --batch-size", "the batch size is fixed, and no result depends on it; leave it out"),
    "--log-file": "the summary is printed, and statistics are written beside the features; leave it out",
    "--n-speakers": "a third column of the lists holds the speaker; leave it out",
    "--train-mode": "the teacher always runs as at inference; leave it out",
}

TEACHER_FORCING = {
    **_PROCESSES,
    "--checkpoint-path": "--checkpoint",
    "--dataset-files": "--filelist",
    **_each(
        "-sr --sampling-rate --filter-length --hop-length --win-length --mel-fmin --mel-fmax --n-mel-channels", _AUDIO
    ),
    **_each("--prepend-space-to-text --append-space-to-text --n-speakers", _TEXT),
    **_each("--max-seq-len --n-symbols --padding-idx --speaker-emb-weight", _ARCHITECTURE),
    "--load-pitch-from-disk": "a pitch column in the lists says it; leave it out",
    **_each(
        "--pitch-online-method --pitch-online-dir",
        "pitch comes from the lists or the dataset's pitch cache; leave it out",
    ),
    "--max-wav-value": _SCALE,
}


def architecture_options(configs: Iterable[type]) -> dict[str, str]:
    """Answers to the options of architectures, which checkpoints hold; ``configs`` are the models' dataclasses."""
    names = {field.name for config in configs for field in fields(config)}
    return {option_of(name): _ARCHITECTURE for name in sorted(names)}
