"""Voices and vocoders, made of checkpoints, or of those that the project ships: the one way to load what speaks."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from torch import Tensor

from common.checkpoints.checkpoint import strip_checkpoint
from common.checkpoints.exported import METADATA_KEY, describe, describe_part, open_exported, part_path
from common.checkpoints.exporting import write_onnx, write_quantized
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference, open_checkpoint, precision_for
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.precision import Precision
from common.synthesis.acceleration import GRAPH_SHAPES, PaddedShapes, accelerated
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.options import GRIFFIN_LIM_ITERATIONS, SpeakingOptions, VoiceOptions
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.utterances import Phrase, SynthesisInput
from common.synthesis.vocoder import AudioContract, GriffinLimVocoder, NetworkVocoder, Vocoder
from common.synthesis.voice import Voice
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.lexicon import read_lexicon
from common.text.options import TextOverrides, overridden

GRIFFIN_LIM = "no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough"  # if none is shipped
VOICES = Path(__file__).resolve().parents[2] / "voices"
VOICE, VOCODER = "en-small.pt", "vocoder-small.pt"
_TEXTS = ("One, two, three, four, five.", "The others come later.")  # to calibrate with
_CALIBRATION_FRAMES = 100  # of their mels: onnxruntime keeps what every layer makes of them in memory


def load_voice(
    checkpoint: LoadedCheckpoint | Path | str | None = None,
    vocoder: LoadedCheckpoint | Path | str | None = None,
    *,
    device: str = "auto",
    lexicon: Path | str | None = None,
    vocoder_pitch: str = "mel",
) -> Voice:
    """A voice that speaks: a text-to-mel checkpoint, by default the shipped one, and a vocoder's.

    Without a vocoder it is the shipped one where that reads the voice's mels, else Griffin-Lim. ``device`` is "auto" (a
    GPU where there is one; an ONNX file runs on the CPU), "cpu" or "cuda". ``lexicon`` is a file of words and their
    phones (`read_lexicon`). With ``vocoder_pitch`` "voice" a vocoder that can is told the pitch of the symbols, not the
    mel's. EMA weights are used where there are any. `make_voice` takes all options. Raises InputError if a checkpoint
    cannot be read, is of a model that does another job, or lacks what the options need; or the vocoder reads other mels
    than the voice makes, with each field that differs; OptionError if there is no such device.
    """
    opened = {
        role: one if isinstance(one, LoadedCheckpoint) else open_checkpoint(Path(one), role=role, ema=True)
        for role, one in (("generator", checkpoint), ("vocoder", vocoder))
        if one is not None
    }
    opened = with_shipped(opened, announce=None)
    if "generator" not in opened:
        raise InputError("no checkpoint of a voice is given, and voices/ holds none; name one")
    text = TextOverrides(lexicon=None if lexicon is None else Path(lexicon))
    options = VoiceOptions(SpeakingOptions(vocoder_pitch=vocoder_pitch), text)
    precision = precision_for(list(opened.values()), device)
    return make_voice(opened["generator"], opened.get("vocoder"), options, precision=precision)


def make_voice(
    generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, options: VoiceOptions, *, precision: Precision
) -> Voice:
    """The voice of opened checkpoints; without a vocoder it speaks by Griffin-Lim.

    With the engine "onnx" its networks are exported at the start and run in onnxruntime; with "int8" as 8-bit integers
    where the network can be quantized, and a line gives the mel distance. Exported files run as they are. Raises
    InputError if the vocoder reads other mels than the generator makes, with each field that differs, or a checkpoint
    lacks what the options need; OptionError if the options do not fit the checkpoints, or the engine a GPU or mixed
    precision.
    """
    if vocoder is not None and generator.spec.makes_wave:
        raise OptionError(f"{generator.path}: {generator.spec.name} needs no vocoder; leave out {vocoder.path}")
    if vocoder is not None:
        made, contract = generator.checkpoint, contract_of(vocoder, options.speaking.accept_audio_differences)
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    generator, engine = with_front_end(generator, options.front_end), options.acceleration.engine
    if engine == "pytorch":
        return _load(generator, vocoder, options, precision)
    if precision.cuda or precision.amp_dtype is not None:
        raise OptionError(f"--engine {engine} computes on the CPU in float32; leave out --cuda and --amp, or --engine")
    mels: list[Tensor] = []
    if engine == "int8":
        plain = _load(generator, vocoder, options, precision)
        mels = [one.mel[:, :_CALIBRATION_FRAMES] for one in plain.synthesizer.generate(typical_inputs(plain))]
    with TemporaryDirectory(prefix="engine_") as folder:
        generator = _exported(generator, Path(folder), mels)
        vocoder = None if vocoder is None else _exported(vocoder, Path(folder), mels)
        return _load(generator, vocoder, options, precision)


def _load(
    generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, options: VoiceOptions, precision: Precision
) -> Voice:
    """The voice of a checkpoint whose text front end is known."""
    spec, stored, speaking = generator.spec, generator.checkpoint, options.speaking
    assert stored.text is not None
    network, config = load_for_inference(generator, device=precision.device)
    precision.cast_weights(network)
    own, front_end, wanted = options.models.get("generator"), options.front_end, options.acceleration
    controls = network.controls(own or spec.arg_parser.InferenceOptions(), where=generator.path)
    network, shapes = accelerated(network, generator, options), PaddedShapes.of(options)
    is_plain = not (wanted.compile or wanted.torchscript or generator.exported)
    if wanted.cuda_graphs and precision.cuda and is_plain and config.sees_padding is None:
        shapes, recorder = shapes or GRAPH_SHAPES, GraphRecorder("--cuda-graphs: the voice")
        for step in spec.recordable:
            setattr(network, step, recorder.by_shape(getattr(network, step)))
    synthesizer = Synthesizer(
        audio=stored.audio,
        precision=precision,
        network=network,
        vocoder=None if spec.makes_wave else load_vocoder(vocoder, options, audio=stored.audio, precision=precision),
        controls=replace(controls, seed=speaking.seed),
        vocoder_pitch=speaking.vocoder_pitch,
        fade_out=speaking.fade_out,
        shapes=shapes,
        path=generator.path,
    )
    lexicon = None if front_end.lexicon is None else read_lexicon(front_end.lexicon, stored.text)
    return Voice(
        spec=spec,
        synthesizer=synthesizer,
        front_end=TextFrontEnd(stored.text, unknown_symbols=front_end.unknown_symbols, lexicon=lexicon),
        n_speakers=getattr(config, "n_speakers", 1),
        speaker=speaking.speaker,
        plain=speaking.plain,
        longest=stored.longest.symbols if speaking.split_sentences and stored.longest is not None else None,
        phones_seed=None if front_end.p_arpabet is None else speaking.seed,
    )


def load_vocoder(
    loaded: LoadedCheckpoint | None,
    options: VoiceOptions | None = None,
    *,
    audio: AudioConfig | None = None,
    precision: Precision,
) -> Vocoder:
    """The vocoder of a mel-to-sound checkpoint; without one Griffin-Lim of ``audio``.

    Raises OptionError if the options do not fit the checkpoint.
    """
    options = options or VoiceOptions()
    speaking = options.speaking
    if loaded is None:
        assert audio is not None, "Griffin-Lim takes the description of its mels"
        return GriffinLimVocoder(audio, speaking.seed, speaking.griffin_lim_iters or GRIFFIN_LIM_ITERATIONS)
    spec, audio = loaded.spec, loaded.checkpoint.audio
    network, _ = load_for_inference(loaded, device=precision.device)
    precision.cast_weights(network)
    own = options.models.get("vocoder") or spec.arg_parser.InferenceOptions()
    settings = network.settings(own, seed=speaking.seed, where=loaded.path)
    graphs = options.acceleration.cuda_graphs and precision.cuda
    return NetworkVocoder(
        accelerated(network, loaded, options),
        audio,
        name=spec.option,
        path=loaded.path,
        autocast=precision.autocast,
        device=precision.device,
        denoising_strength=speaking.denoising_strength,
        settings=settings,
        takes_pitch=spec.takes_pitch and loaded.exported is None,  # a file finds it itself
        graph_recorder=GraphRecorder("--cuda-graphs: the vocoder") if graphs else None,
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
    opened: Mapping[str, LoadedCheckpoint],
    *,
    with_vocoder: bool = True,
    announce: Callable[[str], object] | None = print,
) -> dict[str, LoadedCheckpoint]:
    """``opened`` checkpoints by role with the shipped voice where none is given, and the shipped vocoder where it is
    wanted, none is given, and it reads the voice's mels; lines say which.
    """
    found, path = dict(opened), VOICES / VOICE
    if "generator" not in opened and path.is_file():
        found["generator"] = open_checkpoint(path, role="generator", ema=True)
    if with_vocoder and "generator" in found and "vocoder" not in found and not found["generator"].spec.makes_wave:
        made = found["generator"].checkpoint
        if (vocoder := shipped_vocoder(made.audio, assumed=made.assumed)) is not None:
            found["vocoder"] = vocoder
    for role, one in found.items():
        if announce is not None and role not in opened:
            what = "vocoder checkpoint is given: the sound is made by" if role == "vocoder" else "voice is given:"
            announce(f"no {what} {one.path}")
    return found


def _exported(loaded: LoadedCheckpoint, folder: Path, mels: Sequence[Tensor]) -> LoadedCheckpoint:
    """A checkpoint whose network runs in onnxruntime, from files in ``folder``; exported files stay as they are.

    With ``mels`` (n_mels, F) for calibration it computes in 8-bit integers where it can.
    """
    spec = loaded.spec
    if loaded.exported is not None or spec.find("export", "ExportedNetwork") is None:
        return loaded
    audio, path = loaded.checkpoint.audio, folder / f"{spec.option}.onnx"
    exports = spec.export.exports(*load_for_inference(loaded, device="cpu"), audio)
    description, distances = describe(strip_checkpoint(loaded.checkpoint), exports), []
    is_quantized = bool(mels) and all(part.quantization for part in exports.parts)
    for part in exports.parts:
        file, about = part_path(path, part.name), description | describe_part(exports, part)
        if is_quantized:
            distances.append(write_quantized(file, part, about, mels=mels, audio=audio))
        else:
            write_onnx(file, part, {METADATA_KEY: json.dumps(about)})
    if distances:
        print(f"{spec.name} in 8 bits: mel distance {max(distances):.3f}")
    return replace(loaded, exported=open_exported(part_path(path, exports.parts[0].name))[0])


def typical_inputs(voice: Voice) -> list[SynthesisInput]:
    """Two sentences to try a voice with; of a voice whose alphabet lacks their letters, some of its symbols."""
    try:
        return [item for text in _TEXTS for item in voice.plan(text)[:1]]
    except InputError:
        names = voice.front_end.symbols
        ids = [index % len(names) for index in range(len(_TEXTS[0]))]
        tokens, symbols = voice.front_end.inputs(ids), tuple(names[index] for index in ids)
        return [SynthesisInput(Phrase("engine", PurePosixPath("speech.wav")), tokens=tokens, symbols=symbols)] * 2
