"""Which engine computes the networks of a voice on a CPU: PyTorch, or onnxruntime with files made at the start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from common.checkpoints import Exports, LoadedCheckpoint, load_for_inference, strip_checkpoint
from common.checkpoints.exported import describe, describe_part, open_exported
from common.checkpoints.exporting import part_path, write_onnx, write_quantized
from common.errors import InputError, OptionError
from common.precision import Precision
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput
from common.synthesis.voice import Voice
from common.timing import take_turns

_TEXTS = ("One, two, three, four, five.", "The others come later.")  # to measure by, and to compare by
_CALIBRATION_FRAMES = 100  # of their mels: onnxruntime keeps what every layer makes of them in memory
LARGEST_DISTANCE = 0.05  # mean mel distance at which "auto" takes 8 bits, about 0.4 dB
_TURNS = 3  # the first warms up

Load = Callable[[LoadedCheckpoint, LoadedCheckpoint | None], Voice]


def load_in_engine(
    engine: str, generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, *, precision: Precision, load: Load
) -> Voice:
    """The voice of two checkpoints in an engine; "auto" measures all engines and prints a line on what it takes.

    On a GPU, and where --amp asks for numbers of 16 bits, "auto" is PyTorch; files that are exported already run as
    they are.

    Raises:
        OptionError: "onnx" for a GPU, or for other numbers than float32.
    """
    if engine == "pytorch":
        return load(generator, vocoder)
    if precision.cuda or precision.amp_dtype is not None:
        if engine == "onnx":
            raise OptionError("--engine onnx computes on the CPU in float32; leave out --cuda and --amp, or --engine")
        print(f"engine: PyTorch, as always {'on a GPU' if precision.cuda else 'with --amp'}")
        return load(generator, vocoder)
    with TemporaryDirectory(prefix="engine_") as folder:
        if engine == "auto":
            return _fastest(generator, vocoder, Path(folder), load)
        made = [None if one is None else _forms(one, Path(folder))[-1].loaded for one in (generator, vocoder)]
        return load(made[0] or generator, made[1])


@dataclass(frozen=True)
class _Form:
    """A network as one engine computes it."""

    engine: str
    loaded: LoadedCheckpoint
    distance: float = 0.0  # of the mels that it speaks from PyTorch's


def _forms(loaded: LoadedCheckpoint, folder: Path, mels: Sequence[Tensor] | None = None) -> list[_Form]:
    """The forms of a network: that of the file, one in ONNX files in ``folder``, and, with ``mels`` that show a vocoder
    what it will speak, one of 8-bit integers.
    """
    if loaded.exported is not None or loaded.spec.exports is None or loaded.spec.from_exported is None:
        return [_Form("the file's engine", loaded)]
    network, config = load_for_inference(loaded, device=torch.device("cpu"))
    exports = loaded.spec.exports(network, config, loaded.checkpoint.audio)
    forms = [_Form("PyTorch", loaded), _Form("ONNX", _in_onnxruntime(loaded, exports, folder, write_onnx))]
    if mels is not None and all(part.quantization for part in exports.parts):
        (folder / "int8").mkdir(exist_ok=True)
        distances: list[float] = []

        def write(*given: Any) -> None:
            distances.append(write_quantized(*given, mels=mels, audio=loaded.checkpoint.audio))

        made = _in_onnxruntime(loaded, exports, folder / "int8", write)
        forms.append(_Form("int8", made, max(distances)))
    return forms


def _in_onnxruntime(
    loaded: LoadedCheckpoint, exports: Exports, folder: Path, write: Callable[..., Any]
) -> LoadedCheckpoint:
    """Write a checkpoint's parts to ONNX files in ``folder``, and return the checkpoint with these for its network.

    ``write(path, part, description)`` writes one file.
    """
    description = describe(strip_checkpoint(loaded.checkpoint), context=None)
    path = folder / f"{loaded.spec.option}.onnx"
    for part in exports.parts:
        write(part_path(path, part), part, description | describe_part(exports, part))
    exported, _ = open_exported(part_path(path, exports.parts[0]))
    return replace(loaded, exported=exported)


def _fastest(generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, folder: Path, load: Load) -> Voice:
    """The fastest form of either network, and a line that says which; 8 bits only where the sound stays close."""
    voices = [load(generator, vocoder)]
    items = typical_inputs(voices[0])
    mels = [spoken.mel[:, :_CALIBRATION_FRAMES].cpu() for spoken in voices[0].generate(items)]
    forms = [_forms(one, folder, mels) for one in (generator, vocoder) if one is not None]
    for place in range(1, max(map(len, forms))):
        one = [of_network[min(place, len(of_network) - 1)].loaded for of_network in forms]
        voices.append(load(one[0], one[1] if vocoder is not None else None))
    mel = mels[0][None].to(voices[0].precision.device)
    jobs: list[list[Callable[[], object]]] = [[partial(voice.generate, items[:1]) for voice in voices]]
    if vocoder is not None:
        jobs.append([partial(voice.vocoder.speak, mel, [mel.size(2)]) for voice in voices if voice.vocoder])
    chosen = [_choose(of_network, ways) for of_network, ways in zip(forms, jobs)]
    print(f"engine: {'; '.join(said for _, said in chosen)}")
    return replace(voices[chosen[0][0]], vocoder=voices[chosen[-1][0]].vocoder if vocoder else voices[0].vocoder)


def _choose(forms: Sequence[_Form], jobs: Sequence[Callable[[], object]]) -> tuple[int, str]:
    """The place of the fastest form that is close enough, and what is said of all."""
    name = forms[0].loaded.spec.name
    if len(forms) == 1:
        return 0, f"{name} in {forms[0].engine}"
    seconds = measure(jobs[: len(forms)])
    close = [index for index, form in enumerate(forms) if form.distance <= LARGEST_DISTANCE]
    fastest = min(close, key=lambda index: seconds[index])
    times = []
    for form, spent in zip(forms, seconds):
        cost = f" at mel distance {form.distance:.3f}" if form.engine == "int8" else ""
        times.append(f"{form.engine} {spent:.3f} s{cost}")
    return fastest, f"{name} in {forms[fastest].engine} ({', '.join(times)})"


def measure(ways: Sequence[Callable[[], object]]) -> list[float]:
    """Seconds of each way at its best, in turns."""
    return [min(column) for column in zip(*take_turns(ways, _TURNS)[1:])]


def typical_inputs(voice: Voice) -> list[SynthesisInput]:
    """Two sentences' utterances to measure by; of a voice whose alphabet lacks their letters, some of its symbols."""
    try:
        return [item for text in _TEXTS for item in voice.plan(text)[:1]]
    except InputError:
        names = voice.front_end.symbols
        every = [[index % len(names) for index in range(len(text))] for text in _TEXTS]
        phrase = Phrase("engine", PurePosixPath("speech.wav"))
        return [
            SynthesisInput(phrase, tokens=voice.front_end.inputs(ids), symbols=tuple(names[index] for index in ids))
            for ids in every
        ]
