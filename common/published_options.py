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
_HARDWARE = {
    "--affinity": "processes are not bound to cores here; leave it out, or start them under numactl",
    "--l2-promote": "the GPU's L2 cache is left as it is; leave it out",
}

TRAINING = {
    **_PROCESSES,
    **_HARDWARE,
    "--validation-freq": "--validation-interval",
    "--init-from-checkpoint": "--from-checkpoint",
    "--symbol-type": "--input-type",
    "--pitch-online-method": "--pitch-method",
    "--num-mels": "--n-mel-channels",
    "--resume-from-last": "--resume",
    "--grad-clip": "--grad-clip-thresh",
    "--lr": "--learning-rate",
    "--grad-accumulation-steps": "--gradient-accumulation-steps",
    "--ckpt": "--checkpoint-path",
    "--dataset-dir": "--dataset-path",
    "--output-dir": "--output",
    "--train-manifests": "--training-files",
    "--val-manifests": "--validation-files",
    "--save-frequency": "--epochs-per-checkpoint",
    "--ema": "--ema-decay",
    "--fp16": "--amp",
    "--eval-frequency": "--validation-steps",
    **_each("--pitch-mean --pitch-std", "both are read from a file: --pitch-mean-std-file FILE.json"),
    "--load-mel-from-disk": "the columns of the lists say what is read, and --input-mels-dir names mels to fine-tune a "
    "vocoder on; leave it out",
    "--max-wav-value": _SCALE,
    **_each("--n-symbols --padding-idx", "--symbol-set decides it; leave it out"),
    "--max-seq-len": "positions are computed for any length; leave it out",
    "--n-frames-per-step": "the decoder makes one frame a step, as in all published models; leave it out",
    "--trainloader-repeats": "loader processes stay alive between epochs; leave it out",
    **_each("--benchmark-epochs-num --bench-class", "training is measured by scripts/train_benchmark.sh; leave it out"),
    **_each(
        "--checkpoint-path-gen --checkpoint-path-discrim",
        "one checkpoint holds generator and discriminators: --checkpoint-path FILE",
    ),
    "--step-logs-interval": "every update is logged; leave it out",
    "--log-frequency": "every update is logged; leave it out",
    "--autocast-spectrogram": "mel-spectrograms are always computed in float32; leave it out",
    "--disable-cudnn-benchmark": "it is off unless --cudnn-benchmark is given; leave it out",
    "--cudnn-enabled": "cuDNN is always used on a GPU; leave it out",
    "--dynamic-loss-scaling": "it is always dynamic with --amp --amp-dtype float16; leave it out",
    "--use-saved-learning-rate": "a resumed run takes the rate from --learning-rate and its schedule; leave it out",
    "--config-file": "options are given on the command line; leave it out",
    "--text-cleaners": "this model reads no text; leave it out",
    **_each(
        "--anneal-steps --anneal-factor --warmup-steps --disable-uniform-initialize-bn-weight",
        "it has no effect on this model; leave it out",
    ),
    "--prediction-frequency": "transcripts of some utterances are printed with each validation; leave it out",
    "--save-best-from": "the best checkpoint is kept from the first epoch on; leave it out",
    "--pre-allocate-range": "memory is allocated as needed; leave it out, and limit recordings by --max-duration",
    "--dali-device": "recordings are read by --num-workers processes, not by DALI; leave it out",
}

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
