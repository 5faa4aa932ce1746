"""Export a voice and its vocoder for Piper: one ONNX file from phones to sound, and its JSON description."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.checkpoints.exported import Exports, ModuleRunner, OnnxRunner, Part
from common.checkpoints.exporting import OPSET, SHAPES, write_onnx
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference
from common.config import AudioConfig
from common.errors import InputError
from common.files import write_atomically, write_text
from common.synthesis.loading import contract_of
from common.synthesis.options import FADE_OUT, SEED
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.text.espeak import espeak_voice
from common.text.front_end import TextFrontEnd
from common.text.symbols import BOUNDARY, CODE_POINTS, EDGE_SILENCE, SILENCES

# Piper's names of symbols that ours have others for: silence at both ends, and the space between words.
_PIPER = {"^": EDGE_SILENCE, "$": EDGE_SILENCE, " ": BOUNDARY}
_SECONDS_OF_NOISE = 12  # stored in the file; longer utterances repeat it

# Piper pads each symbol; remove the padding, which these networks weren't trained with. Ignore Piper's noise scales.
_BEFORE = """
before ({inputs}) => ({outputs})
{{
    row = Slice (input, zero, input_lengths, one)
    ids = Squeeze (row, zero)
    is_padding = Equal (ids, padding)
    is_symbol = Not (is_padding)
    symbols = Compress <axis = 0> (ids, is_symbol)
    voice_tokens = Unsqueeze (symbols, zero)
    voice_lengths = Shape (symbols)
    shape = Shape (voice_tokens)
    length_scale = Slice (scales, one, two, zero)
    rate = Reciprocal (length_scale)
    voice_pace = Expand (rate, shape)
    voice_max_duration = Identity (max_duration)
    voice_durations = Expand (not_given, shape)
    voice_pitch = Expand (not_given, shape)
    voice_energy = Expand (not_given, shape)
    {speaker}
}}
"""
_BETWEEN = """
between (float[1, mels, frames] voice_mel, int64[1] voice_mel_lengths) => (float[1, mels, frames] vocoder_mel)
{
    vocoder_mel = Identity (voice_mel)
    vocoder_lengths = Identity (voice_mel_lengths)
    frames_noise = Mul (voice_mel_lengths, noise_per_frame)
    all_noise = Add (frames_noise, noise_of_none)
    n_noise = Squeeze (all_noise)
    noise_positions = Range (start, n_noise, step)
    noise_places = Mod (noise_positions, n_kept_noise)
    vocoder_noise = Gather <axis = -1> (kept_noise, noise_places)
}
"""
_AFTER = """
after (float[1, samples] vocoder_wave) => (float[1, 1, samples] output)
{
    n_samples = Size (vocoder_wave)
    sample_positions = Range (start, n_samples, step)
    last = Sub (n_samples, step)
    left = Sub (last, sample_positions)
    fade = Min (last, n_faded)
    samples_left = Cast <to = 1> (left)
    fade_samples = Cast <to = 1> (fade)
    rising = Div (samples_left, fade_samples)
    factors = Min (rising, full)
    wave = Mul (vocoder_wave, factors)
    output = Reshape (wave, output_shape)
}
"""


def write_piper(path: Path, generator: LoadedCheckpoint, vocoder: LoadedCheckpoint) -> float:
    """Write a voice with its vocoder: ``path``, and beside it what `companions` names.

    Returns the largest difference of its sound from PyTorch's, for random symbols.

    Raises:
        InputError: the voice reads other symbols than Piper's, or the vocoder other mels than the voice makes.
    """
    stored = generator.checkpoint
    check_symbols(generator)
    contract_of(vocoder).check(stored.audio, owner=str(generator.path), assumed=stored.assumed)
    (voice, config), (sound, _) = (_exports(one) for one in (generator, vocoder))
    if len(voice.parts) > 1:
        raise InputError(f"{generator.path}: {generator.spec.name} is exported as several files, and Piper takes one")
    assert stored.text is not None
    n_speakers = getattr(config, "n_speakers", 1)
    about = describe(stored.text, name=path.stem, sampling_rate=stored.audio.sampling_rate, n_speakers=n_speakers)
    _write_graph(path, voice, sound, about, stored.audio)
    for file, content in zip(companions(path), (json.dumps(about, indent=2, ensure_ascii=False), _tokens(about))):
        write_text(file, content + "\n")
    return _largest_difference(path, voice.parts[0], sound, stored.audio)


def companions(path: Path) -> tuple[Path, Path]:
    """The files beside a voice: Piper's description, and the symbols as sherpa-onnx reads them."""
    return path.with_name(f"{path.name}.json"), path.with_suffix(".tokens.txt")


def check_symbols(generator: LoadedCheckpoint) -> None:
    """Refuse by InputError a voice that does not read Piper's symbols."""
    text = generator.checkpoint.text
    if text is None or (text.symbol_set, text.g2p) != (CODE_POINTS, "espeak"):
        read = "no symbols" if text is None else f"{text.symbol_set!r}{' without g2p' if text.g2p is None else ''}"
        how = f"--from-checkpoint with --symbol-set {CODE_POINTS} --g2p espeak"
        raise InputError(f"{generator.path}: reads {read}, and Piper {CODE_POINTS!r}; fine-tune it: train.py {how}")


def describe(text: TextConfig, *, name: str, sampling_rate: int, n_speakers: int) -> dict[str, Any]:
    """Piper's description of a voice. Its quality is "medium", Piper's name for 22050 Hz."""
    symbols = TextFrontEnd(text).symbols
    ids = {symbol: [index] for index, symbol in enumerate(symbols) if symbol not in (*SILENCES, BOUNDARY)}
    family, _, region = text.g2p_language.partition("-")
    voice, language = espeak_voice(text.g2p_language)
    return {
        "dataset": name,
        "audio": {"sample_rate": sampling_rate, "quality": "medium"},
        "espeak": {"voice": voice},
        "language": {
            "code": f"{family}_{region.upper()}" if region else family,
            "family": family,
            "region": region.upper(),
            "name_english": language,
        },
        "inference": {"noise_scale": 0.0, "length_scale": 1.0, "noise_w": 0.0},
        "phoneme_type": "espeak",
        "phoneme_map": {},
        "phoneme_id_map": ids | {theirs: [symbols.index(own)] for theirs, own in _PIPER.items()},
        "num_symbols": len(symbols),
        "num_speakers": n_speakers,
        "speaker_id_map": {speaker: index for index, speaker in enumerate(text.speakers)} if n_speakers > 1 else {},
    }


def _tokens(about: Mapping[str, Any]) -> str:
    """Lines of a symbol and its id, for sherpa-onnx."""
    return "\n".join(f"{symbol} {ids[0]}" for symbol, ids in about["phoneme_id_map"].items())


def _exports(loaded: LoadedCheckpoint) -> tuple[Exports, Any]:
    """The network of a checkpoint as it is exported, and its configuration."""
    if loaded.exported is not None or loaded.spec.find("export", "exports") is None:
        raise InputError(f"{loaded.path}: a checkpoint of {loaded.spec.name} that can be exported is expected")
    network, config = load_for_inference(loaded, device="cpu")
    return loaded.spec.export.exports(network, config, loaded.checkpoint.audio), config


def _constants(sound: Exports, audio: AudioConfig) -> dict[str, np.ndarray]:
    """Constants of the graph around the networks, by name."""
    constants: dict[str, Any] = {"zero": [0], "one": [1], "two": [2], "padding": [0], "start": 0, "step": 1}
    constants |= {"n_faded": FADE_OUT * audio.hop_length - 1, "full": np.float32(1), "output_shape": [1, 1, -1]}
    for name, number in (("not_given", math.nan), ("max_duration", Controls.max_duration)):
        constants[name] = np.full(1, number, np.float32)
    if sound.noise is not None:
        n_frames = _SECONDS_OF_NOISE * audio.sampling_rate // audio.hop_length
        kept = sound.noise(n_frames, SEED)
        per_frame = kept.size(-1) - sound.noise(n_frames - 1, SEED).size(-1)
        of_none = kept.size(-1) - n_frames * per_frame
        constants |= {"kept_noise": kept.numpy(), "n_kept_noise": kept.size(-1)}
        constants |= {"noise_per_frame": [per_frame], "noise_of_none": [of_none]}
    return {name: np.asarray(value) for name, value in constants.items()}


def _write_graph(path: Path, voice: Exports, sound: Exports, about: Mapping[str, Any], audio: AudioConfig) -> None:
    """Write the networks in ONNX, joined, with the metadata that sherpa-onnx reads."""
    import onnx  # takes long to import
    from onnx import compose, helper, numpy_helper, parser

    graphs = {}
    with TemporaryDirectory(prefix="piper_") as folder:
        for name, exports in (("voice", voice), ("vocoder", sound)):
            write_onnx(file := Path(folder) / name, exports.parts[0], {})
            graphs[name] = compose.add_prefix(onnx.load(file), f"{name}_").graph
    inputs = "int64[1, phones] input, int64[1] input_lengths, float[3] scales"
    speaker = ""
    if "speaker" in voice.parts[0].inputs:
        inputs, speaker = f"{inputs}, int64[1] sid", "voice_speaker = Identity (sid)"
    tokens = "int64[1, tokens] voice_tokens"
    before = parser.parse_graph(_BEFORE.format(inputs=inputs, outputs=tokens, speaker=speaker))
    between, after = parser.parse_graph(_BETWEEN), parser.parse_graph(_AFTER)
    if sound.noise is None:
        del between.node[2:]
    steps = (before, graphs["voice"], between, graphs["vocoder"], after)
    constants = [numpy_helper.from_array(value, name) for name, value in _constants(sound, audio).items()]
    weights = [weight for graph in graphs.values() for weight in graph.initializer]
    nodes = [node for graph in steps for node in graph.node]
    graph = helper.make_graph(nodes, "speak", before.input, after.output, [*constants, *weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    metadata = {"model_type": "vits", "comment": "piper", "has_espeak": 1, "n_speakers": about["num_speakers"]}
    metadata |= {"language": about["language"]["name_english"], "voice": about["espeak"]["voice"]}
    metadata |= {"sample_rate": about["audio"]["sample_rate"]}
    helper.set_model_props(model, {name: str(value) for name, value in metadata.items()})
    onnx.checker.check_model(model)
    write_atomically(path, lambda file: file.write(model.SerializeToString()))


def _largest_difference(path: Path, voice: Part, sound: Exports, audio: AudioConfig) -> float:
    """Largest difference between the file's sound and PyTorch's for random symbols; 1 is full scale."""
    run = OnnxRunner(path, ["output"])
    speak = ModuleRunner(voice.module, list(voice.outputs))
    vocode = ModuleRunner(sound.parts[0].module, ["wave"])
    differences = []
    for _, length in SHAPES:
        drawn = voice.examples(1, length, torch.Generator().manual_seed(SEED + length))
        given = dict(zip(voice.inputs, drawn))
        predicted = {"durations", "pitch", "energy"} & given.keys()
        given |= {name: torch.full_like(given[name], math.nan) for name in predicted}
        given |= {"tokens": given["tokens"].clamp(min=1), "pace": torch.ones_like(given["pace"])}
        made = speak(given)
        inputs = {"mel": made["mel"], "lengths": made["mel_lengths"]}
        if sound.noise is not None:
            inputs["noise"] = sound.noise(made["mel"].size(2), SEED)
        expected = vocode(inputs)["wave"][0]
        n_faded = min(FADE_OUT * audio.hop_length, len(expected))
        expected[len(expected) - n_faded :] *= torch.linspace(1, 0, n_faded)
        wave = run(_inputs(given["tokens"][0].tolist(), given.get("speaker")))["output"].flatten()
        if wave.shape != expected.shape:
            raise InputError(f"{path}: {len(wave)} samples, expected {len(expected)}")
        differences.append(float((wave - expected).abs().max()))
    return max(differences, key=lambda one: (math.isnan(one), one))


def _inputs(ids: Sequence[int], speaker: Tensor | None) -> dict[str, Tensor]:
    """Piper's inputs for symbols: padding between them, and its noise scales."""
    padded = torch.tensor([[number for one in ids for number in (one, 0)]])
    inputs = {"input": padded, "input_lengths": torch.tensor([padded.size(1)])}
    inputs["scales"] = torch.tensor([0.667, 1.0, 0.8])
    return inputs if speaker is None else inputs | {"sid": speaker[:1]}
