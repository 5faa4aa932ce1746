"""Copy synthesis: utterances whose mels a list gives, as tensors or as the recordings to compute them from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from common.audio import PITCH_LIMITS, MelExtractor, check_wav, load_wav
from common.audio.options import features_config
from common.config import AudioConfig, audio_preset
from common.data import FilelistEntry
from common.data.features import load_mel, recorded_samples
from common.errors import InputError
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput, load_row
from common.synthesis.vocoder import AudioContract


def load_mels_or_recordings(
    phrases: Sequence[Phrase], *, dataset_path: Path, contract: AudioContract | None
) -> tuple[list[SynthesisInput], AudioConfig]:
    """The utterances of a list with the column ``mel`` or ``wav``, and the description of their mels.

    ``contract`` says what the vocoder reads. None: the mels are as the ``audio.json``
    in their folder says, or the default; of recordings the usual mels at their sampling rate are computed.

    Raises:
        InputError: the list has neither column; a mel or a recording is missing, broken, or not what the vocoder
            reads. Names the list's line.
    """
    column = "mel" if phrases[0].wav is None else "wav"
    if getattr(phrases[0], column) is None:
        example = "scripts/copy_list.sh LJSpeech-1.1 copy.tsv makes a list of recordings"
        raise InputError(f"{phrases[0].where}: expected a column mel or wav; {example}")
    entries = [FilelistEntry({column: getattr(phrase, column)}, phrase.where) for phrase in phrases]
    if column == "wav":
        first = check_wav(dataset_path / entries[0].fields["wav"], sampling_rate=None, where=entries[0].where)
        audio = contract.audio if contract else audio_preset(first.sampling_rate)
        extractor = MelExtractor(audio)
        mels = [_mel_of_recording(dataset_path, entry, extractor) for entry in entries]
    else:
        audio = _described(dataset_path, entries, contract) or (contract.audio if contract else AudioConfig())
        mels = [load_mel(dataset_path, entry, n_mels=audio.n_mels) for entry in entries]
    return [SynthesisInput(phrase, mel=mel) for phrase, mel in zip(phrases, mels)], audio


def with_frame_pitch(items: Sequence[SynthesisInput], *, dataset_path: Path) -> list[SynthesisInput]:
    """The utterances with the pitch of each frame, of the list's column ``pitch``, if it has one.

    Raises:
        InputError: a file is missing, of another length, or beyond `PITCH_LIMITS`; names the list's line.
    """
    if items[0].phrase.pitch is None:
        return list(items)
    rows = []
    for item in items:
        path, where = dataset_path / str(item.phrase.pitch), item.phrase.where
        pitch = load_row(path, item.length, each="mel frame", where=where)
        low, high = PITCH_LIMITS
        if wrong := pitch[(pitch != 0) & ((pitch < low) | (pitch > high))].tolist():
            raise InputError(f"{path} ({where}): pitch of {wrong[0]:g} Hz, expected 0 or {low:g} to {high:g}")
        rows.append(replace(item, frame_pitch=pitch))
    return rows


def _described(
    dataset_path: Path, entries: Sequence[FilelistEntry], contract: AudioContract | None
) -> AudioConfig | None:
    """What the ``audio.json`` in the mels' folders says, if any; all must be equal, and fit the vocoder."""
    described = None
    for folder in sorted({(dataset_path / entry.fields["mel"]).parent for entry in entries}):
        if (audio := features_config(folder)) is not None:
            contract = contract or AudioContract(audio, str(folder))
            contract.check(audio, owner=str(folder))
            described = described or audio
    return described


@torch.inference_mode()
def _mel_of_recording(dataset_path: Path, entry: FilelistEntry, extractor: MelExtractor) -> Tensor:
    """mel (n_mels, F) of the recording that a line names."""
    recorded_samples(dataset_path, entry, extractor)  # raises where it is too short
    rate = extractor.config.sampling_rate
    return extractor(load_wav(dataset_path / entry.fields["wav"], sampling_rate=rate, where=entry.where)[None])[0]
