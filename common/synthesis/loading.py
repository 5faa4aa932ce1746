"""Load voices and vocoders from checkpoints, including the shipped ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.checkpoints.command_line import models_with
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference, open_checkpoint, precision_for
from common.config import AudioConfig
from common.errors import OptionError
from common.precision import Precision
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.options import GRIFFIN_LIM_ITERATIONS, AccelerationOptions, VoiceOptions
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.vocoder import AudioContract, GriffinLimVocoder, NetworkVocoder, Vocoder
from common.synthesis.voice import Voice
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.lexicon import read_lexicon
from common.text.options import TextOverrides, overridden

GRIFFIN_LIM = "no vocoder checkpoint is given: using Griffin-Lim, which sounds clear but rough"  # if none is shipped
VOICES = Path(__file__).resolve().parents[2] / "voices"
VOICE, VOCODER = "en-small.pt", "vocoder-small.pt"


def load_voice(
    checkpoint: LoadedCheckpoint | Path | str | None = None,
    vocoder: LoadedCheckpoint | Path | str | None = None,
    *,
    device: str = "auto",
    lexicon: Path | str | None = None,
) -> Voice:
    """Load a voice from a text-to-mel checkpoint (default: the shipped one) and a vocoder checkpoint.

    The default vocoder is the shipped one if it reads the voice's mels, otherwise Griffin-Lim. ``device`` is "auto" (a
    GPU if there is one; ONNX files run on the CPU), "cpu" or "cuda". ``lexicon`` is a file of words and their phones
    (`read_lexicon`). EMA weights are used if there are any. `make_voice` takes all options. Raises InputError if a
    checkpoint can't be read, has another role, or lacks what the options need, or if the vocoder doesn't read the
    voice's mels, with each field that differs; OptionError if there is no such device.
    """
    opened = {
        role: one if isinstance(one, LoadedCheckpoint) else open_checkpoint(Path(one), role=role, ema=True)
        for role, one in (("generator", checkpoint), ("vocoder", vocoder))
        if one is not None
    }
    opened = with_shipped(opened, quiet=True)
    text = TextOverrides(lexicon=None if lexicon is None else Path(lexicon))
    precision = precision_for(list(opened.values()), device)
    return make_voice(opened["generator"], opened.get("vocoder"), VoiceOptions(front_end=text), precision=precision)


def make_voice(
    generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None, options: VoiceOptions, *, precision: Precision
) -> Voice:
    """Build a voice from opened checkpoints; without a vocoder, Griffin-Lim is used.

    Raises InputError if the vocoder doesn't read the generator's mels, with each field that differs, or a checkpoint
    lacks what the options need; OptionError if the options don't fit the checkpoints.
    """
    if vocoder is not None and generator.spec.makes_wave:
        raise OptionError(f"{generator.path}: {generator.spec.name} needs no vocoder; leave out {vocoder.path}")
    if vocoder is not None:
        made, contract = generator.checkpoint, contract_of(vocoder, options.speaking.accept_audio_differences)
        contract.check(made.audio, owner=str(generator.path), assumed=made.assumed)
    generator = with_front_end(generator, options.front_end)
    spec, stored, speaking, wanted = generator.spec, generator.checkpoint, options.speaking, options.acceleration
    assert stored.text is not None
    network, config = load_for_inference(generator, device=precision.device)
    precision.cast_weights(network)
    own, front_end = options.models.get("generator") or spec.arg_parser.InferenceOptions(), options.front_end
    controls = network.controls(own, where=generator.path)
    network = _accelerate(network, generator, wanted)
    is_plain = not (wanted.compile or wanted.torchscript or generator.exported)
    has_graphs = wanted.cuda_graphs and precision.cuda and is_plain and config.sees_padding is None
    if has_graphs:
        recorder = GraphRecorder("--cuda-graphs: the voice")
        for step in spec.recordable:
            setattr(network, step, recorder.by_shape(getattr(network, step)))
    synthesizer = Synthesizer(
        audio=stored.audio,
        precision=precision,
        network=network,
        vocoder=None if spec.makes_wave else load_vocoder(vocoder, options, audio=stored.audio, precision=precision),
        controls=replace(controls, seed=speaking.seed),
        fade_out=speaking.fade_out,
        has_graphs=has_graphs,
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
        longest=None if stored.longest is None else stored.longest.symbols,
        phones_seed=None if front_end.p_arpabet is None else speaking.seed,
    )


def _accelerate(network: Any, loaded: LoadedCheckpoint, wanted: AccelerationOptions) -> Any:
    """Compile the network for ``--torchscript`` or ``--compile`` if its model supports that."""
    if loaded.exported is not None:
        return network
    if wanted.torchscript and (to_torchscript := loaded.spec.find("model", "to_torchscript")) is not None:
        return to_torchscript(network)
    if wanted.compile and loaded.spec.compilable:
        # If compiling fails, for example without a C++ compiler, PyTorch says so and runs the network as it is.
        torch._dynamo.config.suppress_errors = True
        network.infer = torch.compile(network.infer, dynamic=True)
    return network


def load_vocoder(
    loaded: LoadedCheckpoint | None, options: VoiceOptions, *, audio: AudioConfig, precision: Precision
) -> Vocoder:
    """Build the vocoder of a checkpoint, or Griffin-Lim for mels of ``audio``.

    Raises OptionError if the options don't fit the checkpoint.
    """
    speaking = options.speaking
    if loaded is None:
        return GriffinLimVocoder(audio, speaking.seed, speaking.griffin_lim_iters or GRIFFIN_LIM_ITERATIONS)
    network, _ = load_for_inference(loaded, device=precision.device)
    precision.cast_weights(network)
    own = options.models.get("vocoder") or loaded.spec.arg_parser.InferenceOptions()
    graphs = options.acceleration.cuda_graphs and precision.cuda
    return NetworkVocoder(
        _accelerate(network, loaded, options.acceleration),
        loaded.checkpoint.audio,
        name=loaded.spec.option,
        path=loaded.path,
        precision=precision,
        denoising_strength=speaking.denoising_strength,
        settings=network.settings(own, seed=speaking.seed, where=loaded.path),
        graph_recorder=GraphRecorder("--cuda-graphs: the vocoder") if graphs else None,
    )


def contract_of(vocoder: LoadedCheckpoint, accepted: Sequence[str] = ()) -> AudioContract:
    """Describe the mels that a vocoder's checkpoint reads; ``accepted`` fields may differ."""
    checkpoint = vocoder.checkpoint
    return AudioContract(checkpoint.audio, str(vocoder.path), checkpoint.assumed, tuple(accepted))


def with_front_end(loaded: LoadedCheckpoint, overrides: TextOverrides) -> LoadedCheckpoint:
    """Return a generator's checkpoint with ``overrides`` applied to its text front end.

    A published checkpoint may not record its text front end; then a note on stdout says what is assumed.
    """
    stored = loaded.checkpoint.text
    text = overridden(stored or TextConfig(), overrides)
    if stored is None:
        print(
            f"{loaded.path} does not record its text front end; assuming --input-type {text.input_type} "
            f"--symbol-set {text.symbol_set} --text-cleaners {' '.join(text.cleaners)}"
        )
    return replace(loaded, checkpoint=replace(loaded.checkpoint, text=text))


def shipped_vocoder(
    audio: AudioConfig, *, assumed: tuple[str, ...] = (), quiet: bool = False
) -> LoadedCheckpoint | None:
    """Open the vocoder in ``VOICES``, with a note on stdout unless ``quiet``.

    Returns None if there is none, or if it doesn't read ``audio``'s mels, apart from ``assumed`` fields.
    """
    path = VOICES / VOCODER
    if not path.is_file():
        return None
    opened = open_checkpoint(path, role="vocoder", ema=True)
    if contract_of(opened).differences(audio, assumed=assumed):
        return None
    if not quiet:
        print(f"no vocoder checkpoint is given: using {path}")
    return opened


def with_shipped(
    opened: Mapping[str, LoadedCheckpoint], *, with_vocoder: bool = True, quiet: bool = False, advice: str = ""
) -> dict[str, LoadedCheckpoint]:
    """Add the shipped voice to ``opened`` checkpoints (by role) if none is given, and the shipped vocoder if it's
    wanted, none is given, and it reads the voice's mels; notes say which, unless ``quiet``. Raises an OptionError
    that ends with ``advice`` if there is no voice.
    """
    found, path = dict(opened), VOICES / VOICE
    if "generator" not in opened:
        if not path.is_file():
            models = " or ".join(f"{spec.name} (--{spec.option})" for spec in models_with("generator"))
            raise OptionError(f"no voice for text; give a checkpoint of {models}{advice}")
        found["generator"] = open_checkpoint(path, role="generator", ema=True)
        if not quiet:
            print(f"no voice is given: using {path}")
    if with_vocoder and "vocoder" not in found and not found["generator"].spec.makes_wave:
        made = found["generator"].checkpoint
        if (vocoder := shipped_vocoder(made.audio, assumed=made.assumed, quiet=quiet)) is not None:
            found["vocoder"] = vocoder
    return found
