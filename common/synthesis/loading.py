"""Voices and vocoders, made of checkpoints, or of those that the project ships: the one way to load what speaks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from common.checkpoints import LoadedCheckpoint, load_for_inference, open_checkpoint, precision_for
from common.config import AudioConfig, TextConfig
from common.errors import InputError
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


def load_voice(
    checkpoint: LoadedCheckpoint | Path | str | None = None,
    vocoder: LoadedCheckpoint | Path | str | None = None,
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
        OptionError: there is no such device.
    """
    given = {"generator": checkpoint, "vocoder": vocoder}
    opened = {
        role: one if isinstance(one, LoadedCheckpoint) else open_checkpoint(Path(one), role=role, ema=True)
        for role, one in given.items()
        if one is not None
    }
    vocoders = {role: one for role, one in opened.items() if role == "vocoder"}
    voices = {role: one for role, one in opened.items() if role == "generator"}
    opened = with_shipped(voices, with_vocoder=not vocoders, announce=lambda line: None) | vocoders
    if "generator" not in opened:
        raise InputError("no checkpoint of a voice is given, and voices/ holds none; name one")
    options = VoiceOptions(
        SpeakingOptions(vocoder_pitch=vocoder_pitch), TextOverrides(lexicon=None if lexicon is None else Path(lexicon))
    )
    precision = precision or precision_for(list(opened.values()), device)
    return make_voice(opened["generator"], opened.get("vocoder"), options, precision=precision)


def make_voice(
    generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, options: VoiceOptions, *, precision: Precision
) -> Voice:
    """The voice of opened checkpoints; without a vocoder it speaks by Griffin-Lim.

    Raises:
        InputError: the vocoder reads other mels than the generator makes, with each field that differs, or a checkpoint
            lacks what the options need.
        OptionError: the options do not fit the checkpoints.
    """
    if vocoder is not None:
        made, contract = generator.checkpoint, contract_of(vocoder, options.speaking.accept_audio_differences)
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    generator = with_front_end(generator, options.front_end)
    load = partial(_load, options=options, precision=precision)
    return load_in_engine(options.acceleration.engine, generator, vocoder, precision=precision, load=load)


def _load(
    generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, *, options: VoiceOptions, precision: Precision
) -> Voice:
    """The voice of checkpoints, whose text front end is known, as they are."""
    inference, stored, speaking = generator.spec.inference, generator.checkpoint, options.speaking
    assert isinstance(inference, GeneratorSpec) and stored.text is not None
    network, config = load_for_inference(generator, device=precision.device)
    own, front_end = options.models.get("generator") or inference.options(), options.front_end
    lexicon = None if front_end.lexicon is None else read_lexicon(front_end.lexicon, stored.text)
    return Voice(
        spec=generator.spec,
        network=accelerated(network, generator, options),
        audio=stored.audio,
        front_end=TextFrontEnd(stored.text, unknown_symbols=front_end.unknown_symbols, lexicon=lexicon),
        controls=replace(inference.controls(own, network, config, where=generator.path), seed=speaking.seed),
        n_speakers=1 if inference.n_speakers is None else inference.n_speakers(config),
        speaker=speaking.speaker,
        phones_seed=None if front_end.p_arpabet is None else speaking.seed,
        precision=precision,
        vocoder=load_vocoder(vocoder, options, audio=stored.audio, precision=precision),
        vocoder_pitch=speaking.vocoder_pitch,
        fade_out=speaking.fade_out,
        path=generator.path,
        shapes=PaddedShapes.of(options),
    )


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
        return GriffinLimVocoder(audio, seed=speaking.seed, n_iter=speaking.griffin_lim_iters)
    inference = loaded.spec.inference
    assert isinstance(inference, VocoderSpec)
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
        graph_recorder=CudaGraphRecorder() if options.acceleration.cuda_graphs and precision.cuda else None,
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
    opened: Mapping[str, LoadedCheckpoint], *, with_vocoder: bool, announce: Callable[[str], object] = print
) -> dict[str, LoadedCheckpoint]:
    """``opened`` checkpoints by role with the shipped voice where nothing is given, and the shipped vocoder where it is
    wanted and reads the voice's mels; a line says which.
    """
    found, path = dict(opened), VOICES / VOICE
    if not opened and path.is_file():
        found["generator"] = open_checkpoint(path, role="generator", ema=True)
    if with_vocoder and "generator" in found and "vocoder" not in found:
        made = found["generator"].checkpoint
        if (vocoder := shipped_vocoder(made.audio, assumed=made.assumed)) is not None:
            found["vocoder"] = vocoder
    if paths := [str(one.path) for role, one in found.items() if role not in opened]:
        given = "vocoder checkpoint is given: the sound is made by " if opened else "checkpoint is given: "
        announce(f"no {given}{' speaks through '.join(paths)}")
    return found
