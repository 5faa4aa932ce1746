"""The networks of a new training: initial weights from another voice by name, and given pitch statistics."""

from collections.abc import Collection, Mapping
from pathlib import Path

import torch

from common.audio.pitch import read_pitch_statistics
from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import load_weights
from common.errors import InputError
from common.nn.layers import rows_by_name
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from fastpitch.arg_parser import TrainingOptions
from fastpitch.data_function import FastPitchDataset
from fastpitch.initial_voice import InitialVoice, voice_of
from fastpitch.model import FastPitch

_SYMBOLS = "encoder.word_emb.weight"
_SPEAKERS = "speaker_emb.weight"
_OPTIONAL_PARTS = ("attention", "energy_predictor", "energy_emb")  # all others are in every FastPitch


def set_up_networks(
    networks: Mapping[str, FastPitch],
    options: TrainingOptions,
    *,
    text: TextConfig,
    training_set: FastPitchDataset,
    initial: tuple[Path, Checkpoint] | None,
    new: bool,
) -> list[str]:
    """Give a ``new`` model the weights of the voice to start from, and the pitch statistics that are given.

    With a learned alignment, statistics that are not given are measured later. Returns lines that say what is new;
    raises InputError where there are no statistics, or the weights do not fit.
    """
    if not new:
        return []
    network, file = networks["fastpitch"], options.pitch_mean_std_file
    lines = []
    if initial is not None:
        voice = voice_of(*initial)
        speaking = {entry.fields.get("speaker", "") for entry in training_set.entries}
        weights = f"{'EMA ' if voice.checkpoint.has_ema else ''}weights"
        lines = [f"starting from the {weights} of {voice.path}"]
        lines += start_from(network, voice, text=text, speaking=speaking)
    if file is not None or not options.architecture.learned_alignment:
        network.set_pitch_statistics(read_pitch_statistics(file or _find_pitch_statistics(options)))
    return lines


def _find_pitch_statistics(options: TrainingOptions) -> Path:
    """The statistics of the training lists, or the only ones of the dataset, whose lists may have been renamed."""
    named = [options.dataset_path / f"pitch_char_stats__{path.stem}.json" for path in options.training_files]
    found = [path for path in named if path.is_file()] or sorted(options.dataset_path.glob("pitch_char_stats__*.json"))
    if len({read_pitch_statistics(path) for path in found}) == 1:
        return found[0]
    there = f"differ: {', '.join(path.name for path in found)}" if found else "no such file"
    raise InputError(
        f"{named[0]}: {there}; name those of the voice with --pitch-mean-std-file, or make them by extract_mels.py "
        "--extract-pitch-char"
    )


def start_from(network: FastPitch, voice: InitialVoice, *, text: TextConfig, speaking: Collection[str]) -> list[str]:
    """Load the weights of a voice into a new network of ``text``'s symbols and speakers.

    A symbol or speaker that the voice knows keeps its vector, whatever its new id is; a new one gets the mean of the
    others. Parts that the voice has not keep their new weights. EMA weights are taken where there are any.
    Speakers who are not in ``speaking``, the training list's, keep their pitch statistics; those of the others are
    left to be measured. Returns lines that say what is new; raises CheckpointError where weights do not fit.
    """
    given = (voice.checkpoint.ema or voice.checkpoint.networks)["fastpitch"]
    new = network.state_dict()
    parts_given, parts_new = ({key.split(".")[0] for key in weights} for weights in (given, new))
    absent = [part for part in _OPTIONAL_PARTS if part in parts_new - parts_given]
    lines = [f"{part} is not in {voice.path} and begins with new weights" for part in absent]
    left_out = set(_OPTIONAL_PARTS) - parts_new
    state = {key: value for key, value in given.items() if key.split(".")[0] not in left_out}
    state |= {key: value for key, value in new.items() if key.split(".")[0] in absent}
    before, after = TextFrontEnd(voice.text), TextFrontEnd(text)
    state[_SYMBOLS], new_symbols = rows_by_name(
        given[_SYMBOLS],
        after.symbols,
        known=before.symbols,
        what="symbols, from the mean of the others",
        leave_out=before.padding_id,
    )
    state[_SYMBOLS][after.padding_id] = 0.0
    lines += new_symbols
    known, table = voice.speaker_names, state.pop(_SPEAKERS, None)
    if _SPEAKERS in new and table is not None:
        unnamed = [""] * (len(new[_SPEAKERS]) - len(text.speakers))
        state[_SPEAKERS], new_speakers = rows_by_name(table, [*text.speakers, *unnamed], known=known, what="speakers")
        lines += new_speakers
    elif _SPEAKERS in new:  # a voice without a table speaks as with a vector of zeros
        state[_SPEAKERS] = torch.zeros_like(new[_SPEAKERS])
        lines.append(f"a table of {len(new[_SPEAKERS])} speakers begins with zeros")
    for key in ("pitch_mean", "pitch_std"):
        state[key] = torch.zeros_like(new[key])  # not known
        for place, name in enumerate(text.speakers if len(new[key]) > 1 else ()):
            if name in known and name not in speaking:
                state[key][place] = given[key][known.index(name) if len(given[key]) > 1 else 0]
    load_weights({"fastpitch": network}, {"fastpitch": state}, where=str(voice.path))
    return lines
