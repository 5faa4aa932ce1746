"""What is stored with features: the settings they were made with, and the model that made them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

from common.audio.options import SETTINGS
from common.audio.pitch import KINDS, METHODS
from common.config import AudioConfig, differences, from_plain, to_plain
from common.errors import InputError
from common.extraction.features import FRAME_PITCH, FROM_FILES, HERTZ, ExtractionPlan, Utterance
from common.files import read_json, write_json
from common.text.teacher import TEACHER, StoredTeacher, read_teacher

TRIMMING = "trim_silence.json"  # {"trim_silence": seconds or null}
METHOD = "pitch_method.json"  # {"pitch_method": how pitch was estimated}; without this file: the first of METHODS


@dataclass(frozen=True)
class _Settings:
    """What the two files beside audio.json say, each of one."""

    trim_silence: float | None = None
    pitch_method: str = METHODS[0]


def prepare_output_folders(plan: ExtractionPlan, utterances: Sequence[Utterance]) -> None:
    """Refuse to mix features of different settings in one folder; write the settings next to the features.

    Raises:
        InputError: a folder holds features of other settings or of another model.
    """
    subfolders = sorted({PurePosixPath(utterance.name).parent for utterance in utterances} | {PurePosixPath()})
    folders = [(plan.dataset_path / name / sub, name) for name in plan.folders for sub in subfolders]
    for folder, name in folders:
        _check(folder, name, plan)
    if plan.durations_from == FROM_FILES and (plan.dataset_path / "durations" / SETTINGS).is_file():
        _check_audio(plan.dataset_path / "durations", plan)
    for folder, name in folders:
        if teacher := _teacher(name, plan):
            write_json(folder / TEACHER, teacher)
        else:
            (folder / TEACHER).unlink(missing_ok=True)
        if not (folder / SETTINGS).is_file():
            if _holds_pitch(name):
                write_json(folder / METHOD, {"pitch_method": plan.pitch_method})
            write_json(folder / TRIMMING, {"trim_silence": plan.trim_silence})
            write_json(folder / SETTINGS, to_plain(plan.audio))


def _check(folder: Path, name: str, plan: ExtractionPlan) -> None:
    """Refuse a folder that holds features of other settings or of another teacher."""
    holds_features = next(folder.glob("*.pt"), None) is not None
    if (folder / SETTINGS).is_file():
        seconds = _stored(_Settings, folder / TRIMMING).trim_silence
        same = seconds == plan.trim_silence
        _check_audio(folder, plan, *[] if same else [f"trim_silence: {seconds} (there), {plan.trim_silence} (options)"])
        method = _stored(_Settings, folder / METHOD).pitch_method
        if _holds_pitch(name) and method != plan.pitch_method:
            raise InputError(
                f"{folder}: was made with --pitch-method {method}, not {plan.pitch_method}; give the same one or move "
                "the folder away"
            )
    elif holds_features:
        raise InputError(f"{folder}: holds features of unknown settings (no {SETTINGS}); move the folder away")
    teacher = _teacher(name, plan)
    stored = to_plain(read_teacher(folder / TEACHER)) if (folder / TEACHER).is_file() else {}
    if holds_features and _identity(stored) != _identity(teacher):
        models = [one.get("model", "no model") for one in (stored, teacher)]
        other = " with other weights or another text front end" if models[0] == models[1] else ""
        raise InputError(
            f"{folder}: holds features that {models[0]}{other} made, and now {models[1]} would; move the folder away"
        )


def _check_audio(folder: Path, plan: ExtractionPlan, *others: str) -> None:
    path = folder / SETTINGS
    stored = from_plain(AudioConfig, read_json(path), where=str(path))
    if lines := [*differences(stored, plan.audio, names=("there", "options")), *others]:
        raise InputError(
            f"{folder}: was made with other settings: {'; '.join(lines)}; give the same ones or move the folder away"
        )


def _stored(kind: type, path: Path) -> Any:
    return from_plain(kind, read_json(path) if path.is_file() else {}, where=str(path))


def _teacher(name: str, plan: ExtractionPlan) -> dict[str, Any]:
    """The teacher that makes the files of the feature ``name``, as it is stored; {} for none."""
    if plan.teacher is None or name not in plan.taught:
        return {}
    named = {field.name: getattr(plan.teacher, field.name) for field in fields(StoredTeacher)}
    return to_plain(StoredTeacher(**named))


def _identity(teacher: dict[str, Any]) -> dict[str, Any]:
    """What must be the same in all of a folder, whose older ones do not say what became of unknown symbols."""
    return {name: value for name, value in teacher.items() if name != "unknown_symbols"}


def _holds_pitch(name: str) -> bool:
    return name == FRAME_PITCH or name.removesuffix(HERTZ) in KINDS
