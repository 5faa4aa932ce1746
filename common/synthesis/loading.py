"""Voices and vocoders, made of checkpoints, or of those that the project ships: the one way to load what speaks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from common.checkpoints import LoadedCheckpoint, load_for_inference, open_checkpoint, precision_for
from common.config import AudioConfig, TextConfig
from common.errors import InputError, OptionError
from common.precision import Precision
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis.acceleration import CudaGraphRecorder, PaddedShapes, accelerated
from common.synthesis.engine import load_in_engine
from common.synthesis.options import SpeakingOptions, VoiceOptions
from common.synthesis.vocoder import NO_SETTINGS, AudioContract, GriffinLimVocoder, NetworkVocoder, Vocoder
from common.synthesis.voice import Voice
from common.text import TextFrontEnd, read_lexicon
from common.text.options import TextOverrides, overridden

GRIFFIN_LIM = "no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough"  # if none is shipped
VOICES = Path(__file__).resolve().parents[2] / "voices"
VOICE, VOCODER = "lj-small.pt", "vocoder-small.pt"
Checkpoint = LoadedCheckpoint | Path | str


def load_voice(
    checkpoint: Checkpoint | None = None,
    vocoder: Checkpoint | Vocoder | None = None,
    *,
    device: str = "auto",
    precision: Precision | None = None,
    lexicon: Path | str | None = None,
    vocoder_pitch: str = "mel",
) -> Voice:
    """A voice that speaks: a text-to-mel checkpoint, by default the shipped one, and a vocoder's.

    Without a vocoder it is the shipped one where that reads the voice's mels, else Griffin-Lim.
    ``device`` is "auto" (a GPU where there is one; an ONNX file runs on the CPU), "cpu" or "cuda"; ``precision`` says
    more, instead. ``lexicon`` is a file of words and their phones (`read_lexicon`). With ``vocoder_pitch`` "voice" a
    vocoder that can is told the pitch of the symbols, instead of the mel's. Of checkpoints with EMA weights these are
    used. `make_voice` takes all options.

    Raises:
        InputError: a checkpoint cannot be read, is of a model that does another job, or lacks what the options need;
            or the vocoder reads other mels than the voice makes, with each field that differs.
        OptionError: there is no such device, or one of the two has nothing to do with ``vocoder_pitch``.
    """
    if isinstance(checkpoint, LoadedCheckpoint):
        generator = checkpoint
    elif checkpoint is not None:
        generator = open_checkpoint(Path(checkpoint), role="generator", ema=True)
    elif (shipped := shipped_voice()) is not None:
        generator = shipped
    else:
        raise InputError("no checkpoint of a voice is given, and voices/ holds none; name one")
    if isinstance(vocoder, Path | str):
        vocoder = open_checkpoint(Path(vocoder), role="vocoder", ema=True)
    elif vocoder is None:
        vocoder = shipped_vocoder(generator.checkpoint.audio, assumed=generator.checkpoint.assumed)
    opened = [one for one in (generator, vocoder) if isinstance(one, LoadedCheckpoint)]
    options = VoiceOptions(
        SpeakingOptions(vocoder_pitch=vocoder_pitch), TextOverrides(lexicon=None if lexicon is None else Path(lexicon))
    )
    return make_voice(generator, vocoder, options, precision=precision or precision_for(opened, device))


def make_voice(
    generator: LoadedCheckpoint,
    vocoder: LoadedCheckpoint | Vocoder | None,
    options: VoiceOptions,
    *,
    precision: Precision,
) -> Voice:
    """The voice of opened checkpoints; without a vocoder it speaks by Griffin-Lim.

    Raises:
        InputError: a checkpoint lacks what the options need, or the vocoder reads other mels.
        OptionError: the options do not fit the checkpoints.
    """
    if isinstance(vocoder, LoadedCheckpoint):
        contract_of(vocoder, generator, accepted=options.speaking.accept_audio_differences)
    generator = with_front_end(generator, options.front_end)
    load = partial(_load, options=options, precision=precision)
    return load_in_engine(options.acceleration.engine, generator, vocoder, precision=precision, load=load)


def _load(
    generator: LoadedCheckpoint,
    vocoder: LoadedCheckpoint | Vocoder | None,
    *,
    options: VoiceOptions,
    precision: Precision,
) -> Voice:
    """The voice of checkpoints, whose text front end is known, as they are."""
    inference, stored, speaking = generator.spec.inference, generator.checkpoint, options.speaking
    assert isinstance(inference, GeneratorSpec) and stored.text is not None
    network, config = load_for_inference(generator, device=precision.device)
    own = options.models.get("generator") or inference.options()
    if vocoder is None or isinstance(vocoder, LoadedCheckpoint):
        vocoder = make_vocoder(vocoder, options, audio=stored.audio, precision=precision)
    lexicon = options.front_end.lexicon
    return Voice(
        spec=generator.spec,
        network=accelerated(network, generator, options),
        audio=stored.audio,
        front_end=TextFrontEnd(
            stored.text,
            unknown_symbols=options.front_end.unknown_symbols,
            lexicon=None if lexicon is None else read_lexicon(lexicon, stored.text),
        ),
        controls=replace(inference.controls(own, network, config, where=generator.path), seed=speaking.seed),
        n_speakers=1 if inference.n_speakers is None else inference.n_speakers(config),
        precision=precision,
        vocoder=vocoder,
        vocoder_pitch=speaking.vocoder_pitch,
        fade_out=speaking.fade_out,
        path=generator.path,
        shapes=PaddedShapes.of(options),
    )


def make_vocoder(
    vocoder: LoadedCheckpoint | None, options: VoiceOptions, *, audio: AudioConfig, precision: Precision
) -> Vocoder:
    """The vocoder of a checkpoint; without one Griffin-Lim of ``audio``."""
    if vocoder is None:
        return GriffinLimVocoder(audio, seed=options.speaking.seed, n_iter=options.speaking.griffin_lim_iters)
    return load_vocoder(vocoder, options, precision=precision)


def load_vocoder(
    loaded: LoadedCheckpoint, options: VoiceOptions | None = None, *, precision: Precision
) -> NetworkVocoder:
    """The vocoder of a mel-to-sound checkpoint.

    Raises:
        OptionError: the options do not fit the checkpoint.
    """
    options = options or VoiceOptions()
    inference, speaking = loaded.spec.inference, options.speaking
    assert isinstance(inference, VocoderSpec)
    if options.acceleration.cuda_graphs and not precision.cuda:
        raise OptionError("--cuda-graphs needs --cuda")
    if speaking.denoising_strength > 0 and not inference.has_noise:
        raise OptionError(f"--denoising-strength: {loaded.spec.name} has no noise of its own; leave it out")
    network, config = load_for_inference(loaded, device=precision.device)
    settings = NO_SETTINGS
    if inference.settings is not None:
        own = options.models.get("vocoder") or inference.options()
        settings = inference.settings(own, config, seed=speaking.seed, where=loaded.path)
    context = None if inference.context is None else inference.context(config, loaded.checkpoint.audio)
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
        graph_recorder=CudaGraphRecorder() if options.acceleration.cuda_graphs else None,
        shapes=PaddedShapes.of(options),
    )


def contract_of(
    vocoder: LoadedCheckpoint, generator: LoadedCheckpoint | None = None, *, accepted: Sequence[str] = ()
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
    return None if contract_of(opened).compare(audio, owner="", assumed=assumed).lines else opened


def shipped_voice() -> LoadedCheckpoint | None:
    """The voice in ``VOICES``; None where there is none."""
    path = VOICES / VOICE
    return open_checkpoint(path, role="generator", ema=True) if path.is_file() else None


def with_shipped(opened: Mapping[str, LoadedCheckpoint], *, with_vocoder: bool) -> dict[str, LoadedCheckpoint]:
    """``opened`` checkpoints by role with the shipped voice where nothing is given, and the shipped vocoder where it is
    wanted and reads the voice's mels; a line says which.
    """
    found = dict(opened)
    if not opened and (voice := shipped_voice()) is not None:
        found["generator"] = voice
    if with_vocoder and "generator" in found and "vocoder" not in found:
        made = found["generator"].checkpoint
        if (vocoder := shipped_vocoder(made.audio, assumed=made.assumed)) is not None:
            found["vocoder"] = vocoder
    if paths := [str(one.path) for role, one in found.items() if role not in opened]:
        given = "vocoder checkpoint is given: the sound is made by " if opened else "checkpoint is given: "
        print(f"no {given}{' speaks through '.join(paths)}")
    return found
