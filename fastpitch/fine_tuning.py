"""Starting a voice from another one: weights by name, symbols and speakers by theirs, whatever their order was."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints.checkpoint import Checkpoint, load_checkpoint
from common.config import AudioConfig, TextConfig, from_plain
from common.errors import CheckpointError
from common.text.arguments import options_of_text
from common.text.front_end import TextFrontEnd
from fastpitch.model import ModelConfig

_SYMBOLS = "encoder.word_emb.weight"
_SPEAKERS = "speaker_emb.weight"
_STATISTICS = ("pitch_mean", "pitch_std")
# Parts that a voice has or has not; all else is in every FastPitch.
_OPTIONAL_PARTS = ("attention", "energy_predictor", "energy_emb")
# What data decide, not options.
_NOT_OPTIONS = (
    "n_mel_channels",
    "symbol_type",
    "n_symbols",
    "padding_idx",
    "n_speakers",
    "pitch_statistics_per_speaker",
)
_LONGEST_LIST = 6  # differing weights named in an error


def read_voice(path: Path) -> tuple[Checkpoint, ModelConfig]:
    """A FastPitch checkpoint, ours or published, without its training state, and its ModelConfig.

    Raises:
        CheckpointError: it cannot be read, is of another model, or does not say how its text was read.
    """
    checkpoint = load_checkpoint(path, training=False)
    if checkpoint.model != "FastPitch":
        raise CheckpointError(f"{path}: a checkpoint of {checkpoint.model}, expected one of FastPitch")
    config = from_plain(ModelConfig, checkpoint.config, where=str(path))
    if checkpoint.text is None or checkpoint.text.input_type == "pf":
        raise CheckpointError(f"{path}: its symbols have no names here, by which another voice could take them over")
    n_named = TextFrontEnd(checkpoint.text).n_symbols
    if n_named != config.n_symbols:
        raise CheckpointError(f"{path}: reads {config.n_symbols} symbols, its symbol set has {n_named}")
    return checkpoint, config


def describe_voice(path: Path) -> tuple[Checkpoint, ModelConfig]:
    """As `read_voice`, without the weights: these take seconds to read, and options ask for the rest many times."""
    try:
        state = path.stat()
    except OSError:  # which reading it explains
        return read_voice(path)
    return _describe_voice(path, (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=1)
def _describe_voice(path: Path, state: tuple[int, int]) -> tuple[Checkpoint, ModelConfig]:
    """``state`` tells the file from one that takes its place."""
    checkpoint, config = read_voice(path)
    return replace(checkpoint, networks={}, ema=None), config


def options_of_voice(path: Path) -> dict[str, Any]:
    """Architecture and text front end of a checkpoint as defaults of options, by destination."""
    checkpoint, config = describe_voice(path)
    architecture = {name: value for name, value in vars(config).items() if name not in _NOT_OPTIONS}
    return architecture | options_of_text(checkpoint.text)


def known_speakers(checkpoint: Checkpoint, config: ModelConfig) -> tuple[str, ...]:
    """Names of a voice's speakers in order of their ids; those that had numbers alone are named by these."""
    names = checkpoint.text.speakers
    if config.n_speakers == 1:
        return names[:1]
    return (*names, *(str(number) for number in range(len(names), config.n_speakers)))


def check_audio(checkpoint: Checkpoint, audio: AudioConfig, *, where: Path) -> None:
    """Refuse to go on from a voice that makes other mel-spectrograms, listing each field that differs.

    Raises:
        CheckpointError: they differ in more than what the checkpoint does not record.
    """
    differing = [
        f"{name}: {theirs} ({where}), {ours} (these options and data)"
        for name, theirs, ours in (
            (name, getattr(checkpoint.audio, name), value) for name, value in vars(audio).items()
        )
        if theirs != ours and name not in checkpoint.assumed
    ]
    if differing:
        raise CheckpointError(f"{where} makes other mel-spectrograms: {'; '.join(differing)}")


def start_from(network: nn.Module, path: Path, *, text: TextConfig, speaking: Collection[str]) -> list[str]:
    """Load the weights of the voice in ``path`` into a new network of ``text``'s symbols and speakers.

    A symbol or speaker that the voice knows keeps its vector, wherever it stands in the new order; a new one starts
    from the mean of the others. Parts that the voice has not begin with the new weights they have. The averaged
    weights are taken where there are any. Speakers who are not in ``speaking``, the training list's, keep their
    pitch statistics; those of the others are left to be measured. Returns lines that say what is new.

    Raises:
        CheckpointError: its weights do not fit.
    """
    checkpoint, config = read_voice(path)
    given = (checkpoint.ema or checkpoint.networks)["fastpitch"]
    state = network.state_dict()
    lines: list[str] = []
    _check_fits(state, given, where=path)
    for key in state:
        if key in given and key not in (_SYMBOLS, _SPEAKERS, *_STATISTICS):
            state[key] = given[key]
    absent = [part for part in _OPTIONAL_PARTS if _has(state, part) and not _has(given, part)]
    lines += [f"{part} is not in {path} and begins with new weights" for part in absent]
    old, new = TextFrontEnd(checkpoint.text), TextFrontEnd(text)
    ids = _sources(new.symbols, old.symbols)
    state[_SYMBOLS] = _rows(given[_SYMBOLS], ids, leave_out=old.padding_id)
    state[_SYMBOLS][new.padding_id] = 0.0
    lines += _new_names("symbols", [name for name, source in zip(new.symbols, ids) if source is None])
    known = known_speakers(checkpoint, config)
    ids = _sources(text.speakers, known)
    if _SPEAKERS in state and _SPEAKERS in given:
        state[_SPEAKERS] = _rows(given[_SPEAKERS], _filled(ids, len(state[_SPEAKERS])))
        lines += _new_names("speakers", [name for name, source in zip(text.speakers, ids) if source is None])
    elif _SPEAKERS in state:  # a voice without a table speaks as with a vector of zeros
        state[_SPEAKERS] = torch.zeros_like(state[_SPEAKERS])
        lines.append(f"a table of {len(state[_SPEAKERS])} speakers begins with zeros")
    for key in _STATISTICS:
        state[key] = _statistics(given[key], state[key], ids, silent=[name not in speaking for name in text.speakers])
    network.load_state_dict(state)
    return lines


def _check_fits(state: dict[str, Tensor], given: dict[str, Tensor], *, where: Path) -> None:
    lines = []
    for key in {**state, **given}:
        part = key.split(".")[0]
        if key in (_SYMBOLS, _SPEAKERS, *_STATISTICS) or (
            part in _OPTIONAL_PARTS and not (_has(state, part) and _has(given, part))
        ):
            continue
        if key not in given or key not in state:
            lines.append(f"{'missing' if key not in given else 'unexpected'} {key}")
        elif given[key].shape != state[key].shape:
            lines.append(f"{key} is {tuple(given[key].shape)}, expected {tuple(state[key].shape)}")
    for key in (_SYMBOLS, _SPEAKERS):
        if key in state and key in given and given[key].shape[1] != state[key].shape[1]:
            lines.append(f"{key} has {given[key].shape[1]} channels, expected {state[key].shape[1]}")
    if lines:
        rest = f"; and {len(lines) - _LONGEST_LIST} more" if len(lines) > _LONGEST_LIST else ""
        raise CheckpointError(f"{where}: its weights do not fit the options: {'; '.join(lines[:_LONGEST_LIST])}{rest}")


def _has(state: dict[str, Tensor], part: str) -> bool:
    return any(key.startswith(f"{part}.") for key in state)


def _sources(names: Sequence[str], known: Sequence[str]) -> list[int | None]:
    """Where each of ``names`` stands among the ``known``; None where it does not."""
    places = {name: place for place, name in reversed(list(enumerate(known)))}
    return [places.get(name) for name in names]


def _filled(ids: list[int | None], n: int) -> list[int | None]:
    return [*ids, *[None] * (n - len(ids))]


def _rows(table: Tensor, ids: Sequence[int | None], *, leave_out: int | None = None) -> Tensor:
    """table (N, C) -> (len(ids), C): its rows, or where there is none the mean of all but ``leave_out``."""
    others = torch.ones(len(table), dtype=torch.bool)
    if leave_out is not None:
        others[leave_out] = False
    mean = table[others].double().mean(0).to(table.dtype)
    return torch.stack([mean if index is None else table[index] for index in ids])


def _statistics(given: Tensor, like: Tensor, ids: Sequence[int | None], *, silent: Sequence[bool]) -> Tensor:
    """A voice's statistics for the speakers who keep them, and 0, which means unknown, for the others."""
    kept = torch.zeros_like(like)
    if len(like) == 1:
        return kept
    for place, (source, is_silent) in enumerate(zip(ids, silent)):
        if source is not None and is_silent:
            kept[place] = given[source if len(given) > 1 else 0]
    return kept


def _new_names(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(map(repr, names[:_LONGEST_LIST]))
    rest = f" and {len(names) - _LONGEST_LIST} more" if len(names) > _LONGEST_LIST else ""
    return [f"new {what}, from the mean of the others: {shown}{rest}"]
