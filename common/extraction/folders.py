"""What is stored with features: the settings they were made with, and the model that made them."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from common.audio.pitch import KINDS, METHODS
from common.config import AudioConfig, differences, from_plain, to_plain
from common.errors import InputError
from common.extraction.features import FRAME_PITCH, FROM_FILES, HERTZ, ExtractionPlan, Utterance
from common.files import read_json, write_json

SETTINGS = "audio.json"  # the AudioConfig
TRIMMING = "trim_silence.json"  # {"trim_silence": seconds or null}
METHOD = "pitch_method.json"  # {"pitch_method": how pitch was estimated}; without this file: the first of METHODS
TEACHER = "follower.json"  # the teacher that made the files, with its weights and text front end; else absent


def prepare_output_folders(plan: ExtractionPlan, utterances: Sequence[Utterance]) -> None:
    """Refuse to mix features of different settings in one folder; write the settings next to the features.

    Raises:
        InputError: a folder holds features of other settings or of another model.
    """
    subfolders = sorted({PurePosixPath(utterance.name).parent for utterance in utterances} | {PurePosixPath()})
    folders = [(plan.dataset_path / name / sub, name) for name in plan.folders for sub in subfolders]
    for folder, _ in folders:
        _check_settings(folder, plan)
    if plan.durations_from == FROM_FILES and (plan.dataset_path / "durations" / SETTINGS).is_file():
        _check_audio(plan.dataset_path / "durations", plan)
    for folder, name in folders:
        if _holds_pitch(name):
            _check_method(folder, plan)
    for folder, name in folders:
        _prepare_for_teacher(folder, plan.teacher.to_plain() if plan.teacher and name in plan.taught else None)
        if not (folder / SETTINGS).is_file():
            if _holds_pitch(name):
                write_json(folder / METHOD, {"pitch_method": plan.pitch_method})
            write_json(folder / TRIMMING, {"trim_silence": plan.trim_silence})
            write_json(folder / SETTINGS, to_plain(plan.audio))


def holds_features(folder: Path) -> bool:
    """Whether any tensor lies in a folder."""
    return next(folder.glob("*.pt"), None) is not None


def _check_settings(folder: Path, plan: ExtractionPlan) -> None:
    if (folder / SETTINGS).is_file():
        trimming = folder / TRIMMING
        seconds = read_json(trimming).get("trim_silence") if trimming.is_file() else None
        same = seconds == plan.trim_silence
        _check_audio(folder, plan, *[] if same else [f"trim_silence: {seconds} (there), {plan.trim_silence} (options)"])
    elif holds_features(folder):
        raise InputError(f"{folder}: holds features of unknown settings (no {SETTINGS}); move the folder away")


def _check_audio(folder: Path, plan: ExtractionPlan, *others: str) -> None:
    path = folder / SETTINGS
    stored = from_plain(AudioConfig, read_json(path), where=str(path))
    if lines := [*differences(stored, plan.audio, names=("there", "options")), *others]:
        raise InputError(
            f"{folder}: was made with other settings: {'; '.join(lines)}; give the same ones or move the folder away"
        )


def _holds_pitch(name: str) -> bool:
    return name == FRAME_PITCH or name.removesuffix(HERTZ) in KINDS


def _check_method(folder: Path, plan: ExtractionPlan) -> None:
    path = folder / METHOD
    stored = read_json(path).get("pitch_method") if path.is_file() else METHODS[0]
    if (folder / SETTINGS).is_file() and stored != plan.pitch_method:
        raise InputError(
            f"{folder}: was made with --pitch-method {stored}, not {plan.pitch_method}; give the same one or move the "
            "folder away"
        )


def _prepare_for_teacher(folder: Path, teacher: dict[str, Any] | None) -> None:
    """Store which teacher makes the files in ``folder``, or that none does."""
    path = folder / TEACHER
    stored = read_json(path) if path.is_file() else None
    if stored == teacher:
        return
    if holds_features(folder):
        models = ["no model" if one is None else one["model"] for one in (stored, teacher)]
        other = " with other weights or another text front end" if models[0] == models[1] else ""
        raise InputError(
            f"{folder}: holds features that {models[0]}{other} made, and now {models[1]} would; move the folder away"
        )
    if teacher is None:
        path.unlink()
    else:
        write_json(path, teacher)
