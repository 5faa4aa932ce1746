"""Writes a model repository of Triton Inference Server: a voice, a vocoder, and an ensemble of both, ids to sound.

python -m scripts.make_triton_repository models --fastpitch FastPitch.onnx --hifigan HiFi-GAN.onnx
"""

import argparse
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.checkpoints import LoadedCheckpoint, open_checkpoint, read_onnx_graph
from common.checkpoints.exported import METADATA_KEY
from common.cli import ArgumentParser, non_negative_int, positive_int, run
from common.errors import CheckpointError, OptionError, shown
from common.files import writing
from common.registry import ModelSpec, available_models, get_model
from common.synthesis import ACCEPTABLE_DIFFERENCES, contract_of
from scripts import export_model

ENSEMBLE = "speech"
# What a vocoder's input is in the ensemble: an output of the voice.
FROM_VOICE = {"mel": "mel", "lengths": "mel_lengths"}
_TYPES = {"float32": "TYPE_FP32", "float16": "TYPE_FP16", "int64": "TYPE_INT64"}  # numpy's -> Triton's


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model."""

    name: str
    data_type: str  # as Triton calls it
    dims: tuple[int, ...]  # without the batch; -1: any


@dataclass(frozen=True)
class Model:
    """A model of the repository that is one ONNX file."""

    name: str  # also of its folder
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class Serving:
    """How Triton runs the models."""

    max_batch_size: int
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay: int  # microseconds
    device: str  # auto, cpu or gpu
    instances: int


def specs_of(role: str) -> list[ModelSpec]:
    """The models of a role that have an ONNX form."""
    return [spec for spec in map(get_model, available_models(role)) if spec.exports is not None]


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(
        prog="make_triton_repository.sh", description="Write a model repository of Triton Inference Server."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="to write, which must not exist yet")
    for role, what in (("generator", "voice"), ("vocoder", "vocoder")):
        group = parser.add_mutually_exclusive_group(required=True)
        for spec in specs_of(role):
            text = f"{what}: an ONNX file of export_model.sh, or a checkpoint, ours or published"
            group.add_argument(f"--{spec.option}", dest=role, type=_model_file(spec), metavar="FILE", help=text)
    parser.add_argument("--max-batch-size", type=positive_int, default=8, help="most requests that are run together")
    text = "batch sizes that are run at once, without waiting for more requests (default: none, as Triton advises)"
    parser.add_argument("--preferred-batch-sizes", type=positive_int, nargs="+", metavar="N", default=[], help=text)
    text = "longest that a request waits for others to be run with, in microseconds"
    parser.add_argument("--max-queue-delay", type=non_negative_int, default=5000, help=text)
    text = "what the models run on; auto: GPUs where there are any"
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto", help=text)
    text = "of each model on each device, which run at the same time"
    parser.add_argument("--instances", type=positive_int, default=1, help=text)
    parser.add_argument(
        "--accept-audio-differences",
        nargs="+",
        choices=ACCEPTABLE_DIFFERENCES,
        default=[],
        help="settings of mel-spectrograms in which voice and vocoder may differ",
    )
    args = parser.parse_args(argv)
    for size in args.preferred_batch_sizes:
        if size > args.max_batch_size:
            raise OptionError(f"--preferred-batch-sizes {size}: larger than --max-batch-size {args.max_batch_size}")
    return args


def _model_file(spec: ModelSpec) -> Any:
    """An ``argparse`` type: a model's name and file."""
    return lambda text: (spec.name, Path(text))


def opened(given: tuple[str, Path]) -> LoadedCheckpoint:
    """The checkpoint or ONNX file that an option gives.

    Raises:
        OptionError: it is a TorchScript file.
    """
    model, path = given
    loaded = open_checkpoint(path, model=model, ema=True)
    if loaded.exported is not None and loaded.exported.format != "onnx":
        raise OptionError(
            f"{path}: a {loaded.exported.format} file, the models of the repository are ONNX; give the checkpoint"
        )
    return loaded


def write_model(folder: Path, loaded: LoadedCheckpoint, serving: Serving) -> Model:
    """Write a model's folder: its ONNX file, as version 1, and its configuration."""
    model_path = folder / loaded.spec.option / "1" / "model.onnx"
    model_path.parent.mkdir(parents=True)
    if loaded.exported is None:
        with redirect_stdout(io.StringIO()):  # it says where the file is now, which is not where it goes
            export_model.main([str(loaded.path), "-o", str(model_path)])
    else:
        shutil.copyfile(loaded.path, model_path)
    model = model_of(model_path, name=loaded.spec.option)
    (model_path.parents[1] / "config.pbtxt").write_text(model_config(model, serving), encoding="utf-8")
    return model


def model_of(path: Path, *, name: str) -> Model:
    """The inputs and outputs of an ONNX file, whose first dimension is the batch."""
    graph = read_onnx_graph(path)

    def tensors(described: Mapping[str, Any]) -> tuple[Tensor, ...]:
        made = []
        for key, about in described.items():
            dims = tuple(-1 if isinstance(size, str) else size for size in about["shape"])
            if dims[:1] != (-1,) or about["type"] not in _TYPES:
                raise CheckpointError(f"{path}: {shown(key)} is no tensor of a batch; export the checkpoint again")
            made.append(Tensor(key, _TYPES[about["type"]], dims[1:]))
        return tuple(made)

    return Model(name, tensors(graph.inputs), tensors(graph.outputs))


def model_config(model: Model, serving: Serving) -> str:
    """The configuration of a model that is one ONNX file, as protocol-buffer text."""
    batching = f"  max_queue_delay_microseconds: {serving.max_queue_delay}\n"
    if serving.preferred_batch_sizes:
        sizes = ", ".join(map(str, serving.preferred_batch_sizes))
        batching = f"  preferred_batch_size: [ {sizes} ]\n{batching}"
    return (
        f'name: "{model.name}"\nbackend: "onnxruntime"\nmax_batch_size: {serving.max_batch_size}\n'
        f"{tensor_list('input', model.inputs, reshape=True)}{tensor_list('output', model.outputs, reshape=True)}"
        f"dynamic_batching {{\n{batching}}}\n"
        f"instance_group [ {{ kind: KIND_{serving.device.upper()} count: {serving.instances} }} ]\n"
    )


def tensor_list(field: str, tensors: Sequence[Tensor], *, reshape: bool) -> str:
    """Inputs or outputs; what has one number an utterance, (B,), is (B, 1) to clients.

    Triton knows no tensor without a dimension besides the batch: the model gets it by ``reshape``. An ensemble has
    none, as it passes on what its models take from clients.
    """
    lines = []
    for tensor in tensors:
        dims = ", ".join(map(str, tensor.dims or (1,)))
        empty = " reshape { shape: [ ] }" if reshape and not tensor.dims else ""
        lines.append(f'  {{ name: "{tensor.name}" data_type: {tensor.data_type} dims: [ {dims} ]{empty} }}')
    joined = ",\n".join(lines)
    return f"{field} [\n{joined}\n]\n"


def ensemble_config(voice: Model, vocoder: Model, description: Mapping[str, Any], serving: Serving) -> str:
    """The configuration of the ensemble: the voice's inputs to all outputs; clients read the description in it."""
    steps = (
        (voice, {tensor.name: tensor.name for tensor in voice.inputs}),
        (vocoder, {tensor.name: FROM_VOICE[tensor.name] for tensor in vocoder.inputs}),
    )
    # JSON's escapes of an ASCII string are those of protocol-buffer text.
    said = json.dumps(json.dumps(description))
    return (
        f'name: "{ENSEMBLE}"\nplatform: "ensemble"\nmax_batch_size: {serving.max_batch_size}\n'
        f"{tensor_list('input', voice.inputs, reshape=False)}"
        f"{tensor_list('output', (*voice.outputs, *vocoder.outputs), reshape=False)}"
        "ensemble_scheduling {\n  step [\n" + ",\n".join(_step(model, inputs) for model, inputs in steps) + "\n  ]\n}\n"
        f'parameters {{ key: "{METADATA_KEY}" value {{ string_value: {said} }} }}\n'
    )


def _step(model: Model, inputs: Mapping[str, str]) -> str:
    maps = [("input_map", name, tensor) for name, tensor in inputs.items()]
    maps += [("output_map", tensor.name, tensor.name) for tensor in model.outputs]
    lines = "".join(f'      {field} {{ key: "{name}" value: "{tensor}" }}\n' for field, name, tensor in maps)
    return f'    {{\n      model_name: "{model.name}"\n      model_version: -1\n{lines}    }}'


def write_repository(folder: Path, voice: LoadedCheckpoint, vocoder: LoadedCheckpoint, serving: Serving) -> None:
    """Write the three models into an empty folder.

    Raises:
        OptionError: the vocoder takes something that no voice gives.
    """
    voice_model, vocoder_model = (write_model(folder, loaded, serving) for loaded in (voice, vocoder))
    if others := [tensor.name for tensor in vocoder_model.inputs if tensor.name not in FROM_VOICE]:
        raise OptionError(
            f"{vocoder.path}: {vocoder.spec.name} takes {' and '.join(others)} besides mels, which an ensemble cannot "
            "make; use a vocoder that takes mels alone"
        )
    spoken = open_checkpoint(folder / voice_model.name / "1" / "model.onnx", ema=True).exported
    assert spoken is not None
    (folder / ENSEMBLE / "1").mkdir(parents=True)
    # Triton wants the folder of a version; what copies files alone would lose an empty one.
    (folder / ENSEMBLE / "1" / ".keep").touch()
    config = ensemble_config(voice_model, vocoder_model, spoken.description, serving)
    (folder / ENSEMBLE / "config.pbtxt").write_text(config, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Write one repository, whole or not at all."""
    args = parse_args(argv)
    folder = args.folder
    if folder.exists():
        raise OptionError(f"{folder}: exists already; name another FOLDER, or remove it")
    voice, vocoder = opened(args.generator), opened(args.vocoder)
    contract_of(vocoder, voice, accepted=args.accept_audio_differences)
    serving = Serving(
        args.max_batch_size, tuple(args.preferred_batch_sizes), args.max_queue_delay, args.device, args.instances
    )
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # of a run that was killed
    try:
        with writing(folder):
            temporary.mkdir(parents=True)
            write_repository(temporary, voice, vocoder, serving)
            temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    print(f"wrote {folder}: {voice.spec.option}, {vocoder.spec.option} and {ENSEMBLE}, which speaks with both")


if __name__ == "__main__":
    run(main)
