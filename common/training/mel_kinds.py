"""What a training says at its start: what its mel-spectrograms are, and which voices or vocoders they fit."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from common.audio.options import corpus_note
from common.checkpoints import load_checkpoint, saved_checkpoints
from common.config import AudioConfig
from common.errors import CheckpointError
from common.registry import ModelSpec, available_models, get_model

_ADAPTABLE = frozenset({"framing", "peak"})  # to what fine-tuning on a voice's mels can adapt a vocoder
_OTHERS = {"generator": ("vocoder", "vocoders"), "vocoder": ("generator", "voices")}


def mel_lines(
    spec: ModelSpec, audio: AudioConfig, *, output: Path, corpus: tuple[Path, AudioConfig] | None
) -> list[str]:
    """The kind of the mels, and which models of the other role it fits: published ones, and the last checkpoints in
    ``output``; a second line where it is not what ``corpus``, a file and its contents, says. None for recognizers.
    """
    if spec.role not in _OTHERS:
        return []
    role, others = _OTHERS[spec.role]
    differing = {name: _differing(audio, theirs, unrecorded) for name, theirs, unrecorded in _known(role, output)}
    fitting = [name for name, names in differing.items() if not names]
    others_differ = [f"{name} ({', '.join(names)})" for name, names in differing.items() if names]
    line = f"mels: {_described(audio)}; they fit {others} trained on the same"
    line += f", as {_listed(fitting)}" if fitting else ""
    line += f"; other mels have {_listed(others_differ)}" if others_differ else ""
    wanted = [*differing.values(), *([] if corpus is None else [_differing(audio, corpus[1], ())])]
    if spec.role == "vocoder" and not fitting and any(_ADAPTABLE.issuperset(names) for names in wanted if names):
        line += "; for such a voice, fine-tune it (scripts/extract_fine_tune_mels.sh, scripts/fine_tune.sh)"
    return [line, *corpus_note(audio, corpus)]


def _differing(audio: AudioConfig, other: AudioConfig, unrecorded: Sequence[str]) -> list[str]:
    """Names of the fields that differ, of those that are recorded."""
    names = [field.name for field in fields(AudioConfig) if field.name not in unrecorded]
    return [name for name in names if getattr(audio, name) != getattr(other, name)]


def _known(role: str, output: Path) -> list[tuple[str, AudioConfig, tuple[str, ...]]]:
    """Name, mels, and fields that are not recorded, of the models with that role."""
    found: list[tuple[str, AudioConfig, tuple[str, ...]]] = []
    for name in available_models(role):
        if (published := get_model(name).published_audio) is not None:
            found.append((f"published {name}", published, ()))
        for path in saved_checkpoints(output, name)[-1:]:
            with suppress(CheckpointError):  # a damaged one is reported where it is used
                checkpoint = load_checkpoint(path, training=False)
                found.append((str(path), checkpoint.audio, checkpoint.assumed))
    return found


def _described(audio: AudioConfig) -> str:
    top = audio.sampling_rate / 2 if audio.mel_fmax is None else audio.mel_fmax
    band = f"{audio.n_mels} channels from {audio.mel_fmin:g} to {top:g} Hz"
    peak = "" if audio.peak is None else f", peak {audio.peak:g}"
    return f"{audio.sampling_rate} Hz, {band}, window {audio.win_length}, hop {audio.hop_length}, {audio.framing}{peak}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
