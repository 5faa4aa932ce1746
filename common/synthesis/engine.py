"""Which engine computes the networks of a voice on a CPU: PyTorch, or onnxruntime with files made at the start."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import torch

from common.checkpoints import LoadedCheckpoint, load_for_inference, strip_checkpoint
from common.checkpoints.exported import describe, describe_part, open_exported
from common.checkpoints.exporting import part_path, write_onnx
from common.errors import InputError, OptionError
from common.precision import Precision
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput
from common.synthesis.vocoder import Vocoder
from common.synthesis.voice import Voice

ENGINE_OPTION: dict[str, Any] = {
    "choices": ("auto", "pytorch", "onnx"),
    "default": "pytorch",
    "help": "what computes the networks on the CPU: onnx exports them at the start and runs them in onnxruntime; auto "
    "measures both and takes the faster for each network",
}
_TEXT = "One, two, three, four, five."  # to measure by
_TURNS = 3  # the first warms up

Load = Callable[[LoadedCheckpoint, LoadedCheckpoint | None], Voice]


def check_engine(engine: str, *, precision: Precision, torchscript: bool, compile: bool) -> None:
    """Refuse options that an engine cannot follow.

    Raises:
        OptionError: names the option.
    """
    if engine == "pytorch":
        return
    if torchscript or compile:
        option = "--torchscript" if torchscript else "--compile"
        raise OptionError(f"--engine {engine}: {option} is for PyTorch; leave one of them out")
    if engine == "onnx" and precision.cuda:
        raise OptionError("--engine onnx: ONNX files are run on the CPU; leave out --cuda or --engine")
    if engine == "onnx" and precision.amp_dtype is not None:
        raise OptionError("--engine onnx computes in float32; leave out --amp or --engine")


def load_in_engine(
    engine: str, generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, *, precision: Precision, load: Load
) -> Voice:
    """The voice of two checkpoints in an engine; "auto" measures both engines and prints a line on what it takes.

    On a GPU, and where --amp asks for numbers of 16 bits, "auto" is PyTorch; files that are exported already run as
    they are.

    Raises:
        OptionError: "onnx" for a model that has no ONNX form to speak with, or for a TorchScript file.
    """
    if engine == "pytorch":
        return load(generator, vocoder)
    if engine == "auto" and (precision.cuda or precision.amp_dtype is not None):
        print(f"engine: PyTorch, as always {'on a GPU' if precision.cuda else 'with --amp'}")
        return load(generator, vocoder)
    given = [one for one in (generator, vocoder) if one is not None]
    if engine == "onnx":
        for one in given:
            _check_onnx(one)
    with TemporaryDirectory(prefix="engine_") as folder:
        made = [_in_onnxruntime(one, Path(folder)) if _has_onnx(one) else one for one in given]
        if engine == "onnx":
            return load(made[0], made[1] if vocoder is not None else None)
        if all(one is other for one, other in zip(given, made)):
            print("engine: that of the files; there is no other to compare with")
            return load(generator, vocoder)
        return _faster(load(generator, vocoder), load(made[0], made[1] if vocoder is not None else None), given, made)


def _has_onnx(loaded: LoadedCheckpoint) -> bool:
    """Whether an ONNX file can be made of it, that speaks."""
    return loaded.exported is None and loaded.spec.exports is not None and loaded.spec.from_exported is not None


def _check_onnx(loaded: LoadedCheckpoint) -> None:
    if loaded.exported is not None and loaded.exported.format != "onnx":
        raise OptionError(f"--engine onnx: {loaded.path} is a {loaded.exported.format} file; give the checkpoint")
    if loaded.exported is None and not _has_onnx(loaded):
        raise OptionError(f"--engine onnx: {loaded.spec.name} has no ONNX form to speak with; use pytorch or auto")


def _in_onnxruntime(loaded: LoadedCheckpoint, folder: Path) -> LoadedCheckpoint:
    """The same checkpoint, with ONNX files in ``folder`` that run in its network's place."""
    spec, checkpoint = loaded.spec, loaded.checkpoint
    assert spec.exports is not None
    network, config = load_for_inference(loaded, device=torch.device("cpu"))
    exports = spec.exports(network, config, checkpoint.audio)
    description = describe(strip_checkpoint(checkpoint), context=None)
    path = folder / f"{spec.option}.onnx"
    for part in exports.parts:
        write_onnx(part_path(path, part), part, description | describe_part(exports, part))
    exported, _ = open_exported(part_path(path, exports.parts[0]), "onnx")
    return replace(loaded, exported=exported)


def _faster(
    in_pytorch: Voice, in_onnx: Voice, given: Sequence[LoadedCheckpoint], made: Sequence[LoadedCheckpoint]
) -> Voice:
    """The faster of two text-to-mel networks with the faster of two vocoders, and a line that says which."""
    items = _typical(in_pytorch)
    (spoken,) = in_pytorch.synthesizer.generate(items)
    mel = spoken.mel[None].to(in_pytorch.precision.device)
    voices = (in_pytorch, in_onnx)
    jobs: list[list[Callable[[], object]]] = [
        [partial(voice.synthesizer.generate, items) for voice in voices],
        [partial(_vocoder(voice).speak, mel, [mel.size(2)]) for voice in voices if len(given) > 1],
    ]
    chosen, said = [0, 0], []
    for index, (before, after) in enumerate(zip(given, made)):
        if before is after:
            said.append(f"{before.spec.name} as it is")
            continue
        seconds = measure(jobs[index])
        chosen[index] = seconds.index(min(seconds))
        times = f"PyTorch {seconds[0]:.3f} s, ONNX {seconds[1]:.3f} s"
        said.append(f"{before.spec.name} in {('PyTorch', 'onnxruntime')[chosen[index]]} ({times})")
    print(f"engine: {'; '.join(said)}")
    return replace(voices[chosen[0]], vocoder=voices[chosen[1]].vocoder)


def _vocoder(voice: Voice) -> Vocoder:
    assert voice.vocoder is not None
    return voice.vocoder


def measure(ways: Sequence[Callable[[], object]]) -> list[float]:
    """Seconds of each way at its best, in turns."""
    turns = []
    for _ in range(_TURNS):
        seconds = []
        for way in ways:
            started = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - started)
        turns.append(seconds)
    return [min(column) for column in zip(*turns[1:])]


def _typical(voice: Voice) -> list[SynthesisInput]:
    """A sentence's utterance to measure by; of a voice whose alphabet lacks its letters, some of its symbols."""
    try:
        return voice.plan(_TEXT)[:1]
    except InputError:
        names = voice.front_end.symbols
        ids = [index % len(names) for index in range(len(_TEXT))]
        phrase = Phrase("engine", PurePosixPath("speech.wav"))
        symbols = tuple(names[index] for index in ids)
        return [SynthesisInput(phrase, tokens=voice.front_end.inputs(ids), symbols=symbols)]
