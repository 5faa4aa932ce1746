"""Voices and vocoders, made of the checkpoints that hold them: the one way to load what speaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common.checkpoints import LoadedCheckpoint, load_with_precision, open_checkpoint, precision_for
from common.config import AudioConfig, TextConfig
from common.errors import InputError, OptionError
from common.precision import Precision
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis.compile import accelerated
from common.synthesis.cuda_graphs import CudaGraphRecorder, Recorder
from common.synthesis.engine import load_in_engine
from common.synthesis.options import FADE_OUT, SEED, VoiceOptions
from common.synthesis.padding import PaddedShapes
from common.synthesis.shipped import shipped_vocoder, shipped_voice
from common.synthesis.vocoder import NO_SETTINGS, AudioContract, GriffinLimVocoder, NetworkVocoder, Vocoder
from common.synthesis.voice import Voice
from common.text import TextFrontEnd, read_lexicon
from common.text.options import TextOverrides, overridden

Accelerate = Callable[[Any, LoadedCheckpoint], Any]  # a network and what it is of -> the network, compiled
Checkpoint = LoadedCheckpoint | Path | str


def load_voice(
    checkpoint: Checkpoint | None = None,
    vocoder: Checkpoint | Vocoder | None = None,
    *,
    device: str = "auto",
    precision: Precision | None = None,
    options: Any = None,
    seed: int = SEED,
    unknown_symbols: str = "drop",
    lexicon: Path | str | None = None,
    fade_out: int = FADE_OUT,
    vocoder_pitch: str = "mel",
    accelerate: Accelerate | None = None,
    shapes: PaddedShapes | None = None,
) -> Voice:
    """A voice that speaks: a text-to-mel checkpoint, by default the shipped one, and a vocoder's.

    Without a vocoder it is the shipped one where that reads the voice's mels, else Griffin-Lim.
    ``device`` is "auto" (a GPU where there is one; an ONNX file runs on the CPU), "cpu" or "cuda"; ``precision`` says
    more, instead. ``options`` are the model's inference options (`GeneratorSpec.options`), by default its own;
    ``lexicon`` is a file of words and their phones (`read_lexicon`); batches are padded to ``shapes``. With
    ``vocoder_pitch`` "voice" a vocoder that can is told the pitch of the symbols, instead of the mel's. Of checkpoints
    with EMA weights these are used.

    Raises:
        InputError: a checkpoint cannot be read, is of a model that does another job, or lacks what the options need;
            or the vocoder reads other mels than the voice makes, with each field that differs.
        OptionError: there is no such device, or one of the two has nothing to do with ``vocoder_pitch``.
    """
    loaded = shipped_voice() if checkpoint is None else _open(checkpoint, role="generator")
    if loaded is None:
        raise InputError("no checkpoint of a voice is given, and voices/ holds none; name one")
    if isinstance(vocoder, Path | str):
        vocoder = _open(vocoder, role="vocoder")
    elif vocoder is None:
        vocoder = shipped_vocoder(loaded.checkpoint.audio, assumed=loaded.checkpoint.assumed)
    opened = [one for one in (loaded, vocoder) if isinstance(one, LoadedCheckpoint)]
    precision = precision or precision_for(opened, device)
    inference, text = loaded.spec.inference, loaded.checkpoint.text or TextConfig()
    assert isinstance(inference, GeneratorSpec)
    network, config = load_with_precision(loaded, precision)
    options = inference.options() if options is None else options
    controls = replace(inference.controls(options, network, config, where=loaded.path), seed=seed)
    if vocoder is None:
        vocoder = GriffinLimVocoder(loaded.checkpoint.audio, seed=seed)
    elif isinstance(vocoder, LoadedCheckpoint):
        contract_of(vocoder, loaded, accepted=())
        vocoder = load_vocoder(vocoder, precision=precision, seed=seed)
    return Voice(
        spec=loaded.spec,
        network=network if accelerate is None else accelerate(network, loaded),
        audio=loaded.checkpoint.audio,
        front_end=TextFrontEnd(
            text,
            unknown_symbols=unknown_symbols,
            lexicon=None if lexicon is None else read_lexicon(Path(lexicon), text),
        ),
        controls=controls,
        n_speakers=1 if inference.n_speakers is None else inference.n_speakers(config),
        precision=precision,
        vocoder=vocoder,
        vocoder_pitch=vocoder_pitch,
        fade_out=fade_out,
        path=loaded.path,
        shapes=shapes,
    )


def _open(checkpoint: Checkpoint, *, role: str) -> LoadedCheckpoint:
    """An opened checkpoint, with its EMA weights where it has any."""
    if isinstance(checkpoint, LoadedCheckpoint):
        return checkpoint
    return open_checkpoint(Path(checkpoint), role=role, ema=True)


def load_vocoder(
    loaded: LoadedCheckpoint,
    options: Any = None,
    *,
    precision: Precision,
    seed: int,
    denoising_strength: float = 0.0,
    accelerate: Accelerate | None = None,
    graph_recorder: Recorder | None = None,
    shapes: PaddedShapes | None = None,
) -> NetworkVocoder:
    """The vocoder of a mel-to-sound checkpoint; ``options`` are its model's inference options (`VocoderSpec.options`).

    Its mels are padded to ``shapes``, if they are given.

    Raises:
        OptionError: the options do not fit the checkpoint.
    """
    inference = loaded.spec.inference
    assert isinstance(inference, VocoderSpec)
    if denoising_strength > 0 and not inference.has_noise:
        raise OptionError(f"--denoising-strength: {loaded.spec.name} has no noise of its own; leave it out")
    network, config = load_with_precision(loaded, precision)
    settings = NO_SETTINGS
    if inference.settings is not None:
        options = inference.options() if options is None else options
        settings = inference.settings(options, config, seed=seed, where=loaded.path)
    context = None if inference.context is None else inference.context(config, loaded.checkpoint.audio)
    if settings.tracked and loaded.exported is not None:
        settings, context = network.settings_of(settings), None  # of whole mels, in which it finds the track itself
    return NetworkVocoder(
        network if accelerate is None else accelerate(network, loaded),
        loaded.checkpoint.audio,
        name=loaded.spec.option,
        path=loaded.path,
        autocast=precision.autocast,
        device=precision.device,
        denoising_strength=denoising_strength,
        settings=settings,
        context=context,
        takes_pitch=inference.takes_pitch and loaded.exported is None,  # a file finds it itself
        graph_recorder=graph_recorder,
        shapes=shapes,
    )


def contract_of(
    vocoder: LoadedCheckpoint, generator: LoadedCheckpoint | None, *, accepted: Sequence[str]
) -> AudioContract:
    """What mels a vocoder reads; those that the generator makes must be such.

    Raises:
        InputError: lists each field that differs, and what to do.
    """
    checkpoint = vocoder.checkpoint
    contract = AudioContract(checkpoint.audio, str(vocoder.path), checkpoint.assumed, tuple(accepted))
    if generator is not None:
        made = generator.checkpoint
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    return contract


def make_voice(
    generator: LoadedCheckpoint,
    vocoder: LoadedCheckpoint | None,
    options: VoiceOptions,
    *,
    precision: Precision,
    with_sound: bool = True,
) -> Voice:
    """The voice of opened checkpoints; without a vocoder's it speaks by Griffin-Lim, or makes mels alone.

    Raises:
        InputError: a checkpoint lacks what the options need, or the vocoder reads other mels.
    """
    speaking, front_end, acceleration = options.speaking, options.front_end, options.acceleration
    audio = generator.checkpoint.audio
    if vocoder is not None:
        contract_of(vocoder, generator, accepted=speaking.accept_audio_differences)
    griffin_lim = None
    if vocoder is None and with_sound:
        griffin_lim = make_vocoder(None, options, audio=audio, precision=precision)

    def load(generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None) -> Voice:
        own = griffin_lim if vocoder is None else make_vocoder(vocoder, options, audio=audio, precision=precision)
        return load_voice(
            generator,
            own,
            precision=precision,
            options=options.models["generator"],
            seed=speaking.seed,
            unknown_symbols=front_end.unknown_symbols,
            lexicon=front_end.lexicon,
            fade_out=speaking.fade_out,
            vocoder_pitch=speaking.vocoder_pitch,
            accelerate=_accelerate(options),
            shapes=PaddedShapes.of(acceleration.length_buckets, options.batch_size),
        )

    generator = with_front_end(generator, front_end)
    voice = load_in_engine(acceleration.engine, generator, vocoder, precision=precision, load=load)
    return voice if with_sound else replace(voice, vocoder=None)


def make_vocoder(
    vocoder: LoadedCheckpoint | None, options: VoiceOptions, *, audio: AudioConfig, precision: Precision
) -> Vocoder:
    """The vocoder of a checkpoint; without one Griffin-Lim of ``audio``, with a line that says so."""
    speaking, acceleration = options.speaking, options.acceleration
    if acceleration.cuda_graphs and not precision.cuda:
        raise OptionError("--cuda-graphs needs --cuda")
    if vocoder is None:
        print("no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough")
        return GriffinLimVocoder(audio, seed=speaking.seed, n_iter=speaking.griffin_lim_iters)
    return load_vocoder(
        vocoder,
        options.models.get("vocoder"),
        precision=precision,
        seed=speaking.seed,
        denoising_strength=speaking.denoising_strength,
        accelerate=_accelerate(options),
        graph_recorder=CudaGraphRecorder() if acceleration.cuda_graphs else None,
        shapes=PaddedShapes.of(acceleration.length_buckets, options.batch_size),
    )


def _accelerate(options: VoiceOptions) -> Accelerate:
    acceleration = options.acceleration
    shapes = PaddedShapes.of(acceleration.length_buckets, options.batch_size)
    return partial(accelerated, torchscript=acceleration.torchscript, compile=acceleration.compile, shapes=shapes)


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
