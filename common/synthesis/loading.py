"""Voices and vocoders, made of checkpoints, or of those that the project ships: the one way to load what speaks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from common.checkpoints import LoadedCheckpoint, load_for_inference, open_checkpoint, precision_for, strip_checkpoint
from common.checkpoints.exported import Exports, describe, describe_part, open_exported
from common.checkpoints.exporting import part_path, write_onnx, write_quantized
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.precision import Precision
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis.acceleration import GRAPH_SHAPES, PaddedShapes, accelerated
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.options import GRIFFIN_LIM_ITERATIONS, SpeakingOptions, VoiceOptions
from common.synthesis.utterances import Phrase, SynthesisInput
from common.synthesis.vocoder import AudioContract, GriffinLimVocoder, NetworkVocoder, Vocoder, VocoderSettings
from common.synthesis.voice import Voice
from common.text import TextFrontEnd, read_lexicon
from common.text.config import TextConfig
from common.text.options import TextOverrides, overridden
from common.timing import take_turns

GRIFFIN_LIM = "no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough"  # if none is shipped
VOICES = Path(__file__).resolve().parents[2] / "voices"
VOICE, VOCODER = "lj-small.pt", "vocoder-small.pt"


def load_voice(
    checkpoint: LoadedCheckpoint | Path | str | None = None,
    vocoder: LoadedCheckpoint | Path | str | None = None,
    *,
    device: str = "auto",
    lexicon: Path | str | None = None,
    vocoder_pitch: str = "mel",
) -> Voice:
    """A voice that speaks: a text-to-mel checkpoint, by default the shipped one, and a vocoder's.

    Without a vocoder it is the shipped one where that reads the voice's mels, else Griffin-Lim.
    ``device`` is "auto" (a GPU where there is one; an ONNX file runs on the CPU), "cpu" or "cuda". ``lexicon`` is a
    file of words and their phones (`read_lexicon`). With ``vocoder_pitch`` "voice" a vocoder that can is told the pitch
    of the symbols, not the mel's. Of checkpoints with EMA weights these are used. `make_voice` takes all options.

    Raises:
        InputError: a checkpoint cannot be read, is of a model that does another job, or lacks what the options need;
            or the vocoder reads other mels than the voice makes, with each field that differs.
        OptionError: there is no such device.
    """
    opened = {
        role: one if isinstance(one, LoadedCheckpoint) else open_checkpoint(Path(one), role=role, ema=True)
        for role, one in (("generator", checkpoint), ("vocoder", vocoder))
        if one is not None
    }
    opened = with_shipped(opened, announce=lambda line: None)
    if "generator" not in opened:
        raise InputError("no checkpoint of a voice is given, and voices/ holds none; name one")
    options = VoiceOptions(
        SpeakingOptions(vocoder_pitch=vocoder_pitch), TextOverrides(lexicon=None if lexicon is None else Path(lexicon))
    )
    precision = precision_for(list(opened.values()), device)
    return make_voice(opened["generator"], opened.get("vocoder"), options, precision=precision)


def make_voice(
    generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, options: VoiceOptions, *, precision: Precision
) -> Voice:
    """The voice of opened checkpoints; without a vocoder it speaks by Griffin-Lim.

    In the engine "onnx" its networks run in onnxruntime, by files made at the start; "auto" measures all engines and
    prints a line on what it takes. On a GPU, and where --amp asks for numbers of 16 bits, "auto" is PyTorch; files that
    are exported already run as they are.

    Raises:
        InputError: the vocoder reads other mels than the generator makes, with each field that differs, or a checkpoint
            lacks what the options need.
        OptionError: the options do not fit the checkpoints, or "onnx" a GPU or numbers of 16 bits.
    """
    if vocoder is not None:
        made, contract = generator.checkpoint, contract_of(vocoder, options.speaking.accept_audio_differences)
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    generator = with_front_end(generator, options.front_end)
    load = partial(_load, options=options, precision=precision)
    load_sound = partial(load_vocoder, options=options, audio=generator.checkpoint.audio, precision=precision)
    plain, engine = load(generator, vocoder=load_sound(vocoder)), options.acceleration.engine
    if engine == "pytorch":
        return plain
    if precision.cuda or precision.amp_dtype is not None:
        if engine == "onnx":
            raise OptionError("--engine onnx computes on the CPU in float32; leave out --cuda and --amp, or --engine")
        print(f"engine: PyTorch, as always {'on a GPU' if precision.cuda else 'with --amp'}")
        return plain
    items = typical_inputs(plain)
    mels = [one.mel[:, :_CALIBRATION_FRAMES] for one in plain.generate(items)] if engine == "auto" else []
    with TemporaryDirectory(prefix="engine_") as folder:
        forms = _forms(generator, Path(folder), mels)
        voices = [plain, *(load(form.loaded, vocoder=plain.vocoder) for form in forms[1:])]
        forms_of_sound = [] if vocoder is None else _forms(vocoder, Path(folder), mels)
        sounds = [plain.vocoder, *(load_sound(form.loaded) for form in forms_of_sound[1:])]
    if engine == "onnx":
        return replace(voices[-1], vocoder=sounds[-1])
    voice, line = _fastest(forms, voices, lambda voice: voice.generate(items[:1]))
    sound = plain.vocoder
    if forms_of_sound:
        mel = mels[0][None]
        sound, more = _fastest(forms_of_sound, sounds, lambda vocoder: vocoder.speak(mel, [mel.size(2)]))
        line = f"{line}; {more}"
    print(f"engine: {line}")
    return replace(voice, vocoder=sound, failures={})  # which measuring may have left


def _load(
    generator: LoadedCheckpoint, *, vocoder: Vocoder | None, options: VoiceOptions, precision: Precision
) -> Voice:
    """The voice of a checkpoint whose text front end is known."""
    inference, stored, speaking = generator.spec.inference, generator.checkpoint, options.speaking
    assert isinstance(inference, GeneratorSpec) and stored.text is not None
    network, config = load_for_inference(generator, device=precision.device)
    precision.cast_weights(network)
    own, front_end = options.models.get("generator") or inference.options(), options.front_end
    lexicon = None if front_end.lexicon is None else read_lexicon(front_end.lexicon, stored.text)
    network, shapes = accelerated(network, generator, options), PaddedShapes.of(options)
    if steps := _recorded_steps(generator, config, options, precision):
        shapes, recorder = shapes or GRAPH_SHAPES, GraphRecorder("--cuda-graphs: the voice")
        for step in steps:
            setattr(network, step, recorder.by_shape(getattr(network, step)))
    return Voice(
        spec=generator.spec,
        network=network,
        audio=stored.audio,
        front_end=TextFrontEnd(
            stored.text, unknown_symbols=front_end.unknown_symbols, lexicon=lexicon, read_emoji=front_end.read_emoji
        ),
        controls=replace(inference.controls(own, network, config, where=generator.path), seed=speaking.seed),
        n_speakers=1 if inference.n_speakers is None else inference.n_speakers(config),
        speaker=speaking.speaker,
        plain=speaking.plain,
        longest=stored.longest.symbols if speaking.split_sentences and stored.longest is not None else None,
        phones_seed=None if front_end.p_arpabet is None else speaking.seed,
        precision=precision,
        vocoder=vocoder,
        vocoder_pitch=speaking.vocoder_pitch,
        fade_out=speaking.fade_out,
        path=generator.path,
        shapes=shapes,
    )


def _recorded_steps(
    generator: LoadedCheckpoint, config: Any, options: VoiceOptions, precision: Precision
) -> tuple[str, ...]:
    """The methods of a generator's network that run as CUDA graphs."""
    wanted, inference = options.acceleration, generator.spec.inference
    assert isinstance(inference, GeneratorSpec)
    if not (wanted.cuda_graphs and precision.cuda) or wanted.compile or wanted.torchscript or generator.exported:
        return ()
    return inference.recordable if generator.spec.training.sees_padding(config) is None else ()


def load_vocoder(
    loaded: LoadedCheckpoint | None,
    options: VoiceOptions | None = None,
    *,
    audio: AudioConfig | None = None,
    precision: Precision,
) -> Vocoder:
    """The vocoder of a mel-to-sound checkpoint; without one Griffin-Lim of ``audio``.

    Raises:
        OptionError: the options do not fit the checkpoint.
    """
    options = options or VoiceOptions()
    speaking = options.speaking
    if loaded is None:
        assert audio is not None, "Griffin-Lim takes the description of its mels"
        return GriffinLimVocoder(audio, speaking.seed, speaking.griffin_lim_iters or GRIFFIN_LIM_ITERATIONS)
    inference = loaded.spec.inference
    assert isinstance(inference, VocoderSpec)
    network, config = load_for_inference(loaded, device=precision.device)
    precision.cast_weights(network)
    settings = VocoderSettings()
    if inference.settings is not None:
        own = options.models.get("vocoder") or inference.options()
        settings = inference.settings(own, config, seed=speaking.seed, where=loaded.path)
    context = None if inference.context is None else inference.context(config, loaded.checkpoint.audio)
    cuda_graphs = options.acceleration.cuda_graphs and precision.cuda
    if settings.tracked and loaded.exported is not None:
        settings, context = network.settings_of(settings), None  # of whole mels, in which it finds the track itself
    return NetworkVocoder(
        accelerated(network, loaded, options),
        loaded.checkpoint.audio,
        name=loaded.spec.option,
        path=loaded.path,
        autocast=precision.autocast,
        device=precision.device,
        denoising_strength=speaking.denoising_strength,
        settings=settings,
        context=context,
        takes_pitch=inference.takes_pitch and loaded.exported is None,  # a file finds it itself
        graph_recorder=GraphRecorder("--cuda-graphs: the vocoder") if cuda_graphs else None,
        shapes=PaddedShapes.of(options),
    )


def contract_of(vocoder: LoadedCheckpoint, accepted: Sequence[str] = ()) -> AudioContract:
    """What mels a vocoder's checkpoint reads, whose fields ``accepted`` may differ."""
    checkpoint = vocoder.checkpoint
    return AudioContract(checkpoint.audio, str(vocoder.path), checkpoint.assumed, tuple(accepted))


def with_front_end(loaded: LoadedCheckpoint, overrides: TextOverrides) -> LoadedCheckpoint:
    """A generator's checkpoint with the overrides in place of fields of its text front end.

    A checkpoint of a published layout may not say how its text was read; then a line on stdout says what is assumed.
    """
    stored = loaded.checkpoint.text
    text = overridden(stored or TextConfig(), overrides)
    if stored is None:
        print(
            f"{loaded.path} does not say how its text was read; taken to be --input-type {text.input_type} "
            f"--symbol-set {text.symbol_set} --text-cleaners {' '.join(text.cleaners)}"
        )
    return replace(loaded, checkpoint=replace(loaded.checkpoint, text=text))


def shipped_vocoder(audio: AudioConfig, *, assumed: tuple[str, ...] = ()) -> LoadedCheckpoint | None:
    """The vocoder in ``VOICES``; None where there is none, or where it reads other mels than ``audio``.

    Fields of these that are ``assumed`` may differ, as in `AudioContract`.
    """
    path = VOICES / VOCODER
    if not path.is_file():
        return None
    opened = open_checkpoint(path, role="vocoder", ema=True)
    return None if contract_of(opened).differences(audio, assumed=assumed) else opened


def with_shipped(
    opened: Mapping[str, LoadedCheckpoint], *, with_vocoder: bool = True, announce: Callable[[str], object] = print
) -> dict[str, LoadedCheckpoint]:
    """``opened`` checkpoints by role with the shipped voice where none is given, and the shipped vocoder where it is
    wanted, none is given, and it reads the voice's mels; a line says which.
    """
    found, path = dict(opened), VOICES / VOICE
    if "generator" not in opened and path.is_file():
        found["generator"] = open_checkpoint(path, role="generator", ema=True)
    if with_vocoder and "generator" in found and "vocoder" not in found:
        made = found["generator"].checkpoint
        if (vocoder := shipped_vocoder(made.audio, assumed=made.assumed)) is not None:
            found["vocoder"] = vocoder
    if paths := [str(one.path) for role, one in found.items() if role not in opened]:
        given = "vocoder checkpoint is given: the sound is made by" if "generator" in opened else "checkpoint is given:"
        if "vocoder" in opened:
            given, paths = "voice is given:", [*paths, str(opened["vocoder"].path)]
        announce(f"no {given} {' speaks through '.join(paths)}")
    return found


_TEXTS = ("One, two, three, four, five.", "The others come later.")  # to measure by, and to compare by
_CALIBRATION_FRAMES = 100  # of their mels: onnxruntime keeps what every layer makes of them in memory
LARGEST_DISTANCE = 0.05  # mean mel distance at which "auto" takes 8 bits, about 0.4 dB
_TURNS = 3  # the first warms up


@dataclass(frozen=True)
class _Form:
    """A network as one engine computes it."""

    engine: str
    loaded: LoadedCheckpoint
    distance: float = 0.0  # of the mels that it speaks from PyTorch's


def _forms(loaded: LoadedCheckpoint, folder: Path, mels: Sequence[Tensor]) -> list[_Form]:
    """The forms of a network: that of the file, one in ONNX files in ``folder``, and, with ``mels`` that show a vocoder
    what it will speak, one of 8-bit integers.
    """
    spec = loaded.spec
    if loaded.exported is not None or spec.exports is None or spec.from_exported is None:
        return [_Form("the file's engine", loaded)]
    network, config = load_for_inference(loaded, device=torch.device("cpu"))
    exports = spec.exports(network, config, loaded.checkpoint.audio)
    forms = [_Form("PyTorch", loaded), _exported("ONNX", loaded, exports, folder / f"{spec.option}.onnx", write_onnx)]
    if mels and all(part.quantization for part in exports.parts):
        write = partial(write_quantized, mels=mels, audio=loaded.checkpoint.audio)
        forms.append(_exported("int8", loaded, exports, folder / f"{spec.option}_int8.onnx", write))
    return forms


def _exported(
    engine: str, loaded: LoadedCheckpoint, exports: Exports, path: Path, write: Callable[..., float | None]
) -> _Form:
    """A checkpoint with its parts in ONNX files, ``path`` and beside it, for its network.

    ``write(path, part, description)`` writes one file, and may return its mel distance.
    """
    description = describe(strip_checkpoint(loaded.checkpoint), context=None)
    distances = [
        write(part_path(path, part), part, description | describe_part(exports, part)) or 0.0 for part in exports.parts
    ]
    exported, _ = open_exported(part_path(path, exports.parts[0]))
    return _Form(engine, replace(loaded, exported=exported), max(distances))


def _fastest(forms: Sequence[_Form], made: Sequence[Any], run: Callable[[Any], object]) -> tuple[Any, str]:
    """What is ``made`` of the fastest of a network's ``forms`` that stay close, and a line about all of them."""
    name = forms[0].loaded.spec.name
    if len(forms) == 1:
        return made[0], f"{name} in {forms[0].engine}"
    seconds = measure([partial(run, one) for one in made])
    close = [index for index, form in enumerate(forms) if form.distance <= LARGEST_DISTANCE]
    fastest = min(close, key=lambda index: seconds[index])
    costs = [f" at mel distance {form.distance:.3f}" if form.engine == "int8" else "" for form in forms]
    times = [f"{form.engine} {spent:.3f} s{cost}" for form, spent, cost in zip(forms, seconds, costs)]
    return made[fastest], f"{name} in {forms[fastest].engine} ({', '.join(times)})"


def measure(ways: Sequence[Callable[[], object]]) -> list[float]:
    """Seconds of each way at its best, in turns."""
    return [min(column) for column in zip(*take_turns(ways, _TURNS)[1:])]


def typical_inputs(voice: Voice) -> list[SynthesisInput]:
    """Two sentences' utterances to measure by; of a voice whose alphabet lacks their letters, some of its symbols."""
    try:
        return [item for text in _TEXTS for item in voice.plan(text)[:1]]
    except InputError:
        names = voice.front_end.symbols
        ids = [index % len(names) for index in range(len(_TEXTS[0]))]
        symbols = tuple(names[index] for index in ids)
        phrase = Phrase("engine", PurePosixPath("speech.wav"))
        return [SynthesisInput(phrase, tokens=voice.front_end.inputs(ids), symbols=symbols)] * 2
