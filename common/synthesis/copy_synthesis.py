"""Copy synthesis: utterances whose mels a list gives, as tensors or as the recordings to compute them from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from common.audio import MelExtractor, check_wav, load_wav
from common.audio.options import features_config
from common.config import AudioConfig, audio_preset, differences
from common.data import load_fractions
from common.errors import InputError
from common.synthesis.phrases import Phrase
from common.synthesis.utterances import SynthesisInput, check_pitch, load_row
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
    first = phrases[0]
    if first.wav is not None:
        return _load_recordings(phrases, [dataset_path / str(phrase.wav) for phrase in phrases], contract)
    if first.mel is not None:
        return _load_mels(phrases, [dataset_path / str(phrase.mel) for phrase in phrases], contract)
    example = "scripts/copy_list.sh LJSpeech-1.1 copy.tsv makes a list of recordings"
    raise InputError(f"{first.where}: expected a column mel or wav; {example}")


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
        check_pitch(pitch, where=f"{path} ({where})")
        rows.append(replace(item, frame_pitch=pitch))
    return rows


def _load_mels(
    phrases: Sequence[Phrase], paths: Sequence[Path], contract: AudioContract | None
) -> tuple[list[SynthesisInput], AudioConfig]:
    audio = _described(paths, contract) or (contract.audio if contract else AudioConfig())
    utterances = []
    for phrase, path in zip(phrases, paths):
        mel = load_fractions(path, where=phrase.where)
        if mel.dim() != 2 or mel.size(0) != audio.n_mels or mel.size(1) == 0:
            raise InputError(f"{path}: shape {tuple(mel.shape)}, expected ({audio.n_mels}, frames) ({phrase.where})")
        utterances.append(SynthesisInput(phrase, mel=mel))
    return utterances, audio


def _described(paths: Sequence[Path], contract: AudioContract | None) -> AudioConfig | None:
    """What the ``audio.json`` in the mels' folders says, if any; all must be equal, and fit the vocoder."""
    found = [(str(folder), features_config(folder)) for folder in sorted({path.parent for path in paths})]
    described = [(folder, audio) for folder, audio in found if audio is not None]
    if not described:
        return None
    first, audio = described[0]
    if contract is not None:
        contract.check(audio, owner=first)
    for folder, other in described[1:]:
        if lines := differences(other, audio, names=(folder, first)):
            raise InputError(f"{folder} and {first} are of different mel-spectrograms: {'; '.join(lines)}")
    return audio


def _load_recordings(
    phrases: Sequence[Phrase], paths: Sequence[Path], contract: AudioContract | None
) -> tuple[list[SynthesisInput], AudioConfig]:
    if contract is None:
        audio = audio_preset(check_wav(paths[0], sampling_rate=None, where=phrases[0].where).sampling_rate)
    else:
        audio = contract.audio
    extractor = MelExtractor(audio)
    shortest = max(extractor.min_samples, audio.hop_length)
    utterances = []
    for phrase, path in zip(phrases, paths):
        wave = load_wav(path, sampling_rate=audio.sampling_rate, where=phrase.where)
        if len(wave) < shortest:
            raise InputError(f"{path}: {len(wave)} samples, expected at least {shortest} ({phrase.where})")
        with torch.inference_mode():
            utterances.append(SynthesisInput(phrase, mel=extractor(wave[None])[0]))
    return utterances, audio
