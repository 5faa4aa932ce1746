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

INFERENCE = {
    **_HARDWARE,
    "-s": "--sigma-infer",
    "--waveglow-sigma-infer": "--sigma-infer",
    "-d": "--denoising-strength",
    **_each("-sr --sampling-rate --hop-length --stft-hop-length --win-length", _AUDIO),
    "--max-wav-value": _SCALE,
    "--n-speakers": _TEXT,
    **_each(
        "--max-seq-len --n-symbols --padding-idx --speaker-emb-weight --hifigan-config --concat-fwd --flows --groups "
        "--early-every --early-size",
        _ARCHITECTURE,
    ),
    **_each("--segment-length --sigma", "it is an option of training; leave it out"),
    "--checkpoint-format": "files are recognized by their content; leave it out, and --torchscript compiles",
    **_each(
        "--torch-tensorrt --trt-min-opt-max-batch --trt-min-opt-max-hifigan-length",
        "TensorRT is not supported; --compile or --cuda-graphs make inference faster",
    ),
    "--report-mel-loss": "scripts/evaluate_voice.sh compares speech with recordings; leave it out",
    "--suffix": "the list names the files: lines of output.wav|text; leave it out",
    **_each(
        "-m --model-name --model --synth-data --bench-class",
        "scripts/inference_benchmark.sh measures; or give a checkpoint, and --benchmark",
    ),
}

RECOGNITION = {
    "--dataset-dir": "--dataset-path",
    "--val-manifests": "--input",
    "--save-predictions": "--output",
    "--fp16": "--amp",
    "--output-dir": "--output",
    "--steps": "--iterations",
    "--override-config": "the checkpoint holds the network, and --model-config FILE says how recordings are read",
    "--seed": "transcribing draws no random numbers; leave it out",
    "--dali-device": "recordings are read without DALI; leave it out",
    **_each(
        "--torchscript --torchscript-export",
        "TorchScript files are written by scripts/export_model.sh, not read; give the checkpoint, and leave it out",
    ),
}


def architecture_options(configs: Iterable[type]) -> dict[str, str]:
    """Answers to the options of architectures, which checkpoints hold; ``configs`` are the models' dataclasses."""
    names = {field.name for config in configs for field in fields(config)}
    return {option_of(name): _ARCHITECTURE for name in sorted(names)}
