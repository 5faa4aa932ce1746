"""What is stored with features: the settings they were made with, and the model that made them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from common.audio.options import SETTINGS, read_audio_config
from common.audio.pitch import KINDS, METHODS
from common.config import differences, to_plain
from common.errors import InputError
from common.extraction.features import ExtractionPlan, Utterance
from common.extraction.options import FRAME_PITCH, HERTZ
from common.files import read_json, write_json
from common.text.teacher import TEACHER, StoredTeacher, read_teacher

# Of the files trim_silence.json and pitch_method.json beside audio.json, where there is none.
_DEFAULTS = {"trim_silence": None, "pitch_method": METHODS[0]}


def prepare_output_folders(plan: ExtractionPlan, utterances: Sequence[Utterance]) -> None:
    """Refuse to mix features of different settings in one folder; write the settings next to the features.

    Raises:
        InputError: a folder holds features of other settings or of another model.
    """
    subfolders = sorted({PurePosixPath(utterance.name).parent for utterance in utterances} | {PurePosixPath()})
    options, dataset = plan.options, plan.options.dataset_path
    folders = [(dataset / name / sub, name) for name in options.folders for sub in subfolders]
    for folder, name in folders:
        _check_settings(folder, name, plan)
        _check_teacher(folder, plan.teacher if name in options.taught else None)
    if options.reads_durations and (dataset / "durations" / SETTINGS).is_file():
        _refuse_differences(dataset / "durations", plan)
    for folder, name in folders:
        if name in options.taught:
            write_json(folder / TEACHER, to_plain(plan.teacher))
        else:
            (folder / TEACHER).unlink(missing_ok=True)
        if not (folder / SETTINGS).is_file():
            for setting, value in _settings(name, plan).items():
                write_json(folder / f"{setting}.json", {setting: value})
            write_json(folder / SETTINGS, to_plain(plan.audio))


def _settings(name: str, plan: ExtractionPlan) -> dict[str, Any]:
    """What the features of a folder of that name depend on besides the mel-spectrograms."""
    of_pitch = name == FRAME_PITCH or name.removesuffix(HERTZ) in KINDS
    return {one: getattr(plan.options, one) for one in ("trim_silence", *["pitch_method"] * of_pitch)}


def _check_settings(folder: Path, name: str, plan: ExtractionPlan) -> None:
    """Refuse a folder of features that were made with other settings, or with unknown ones."""
    if (folder / SETTINGS).is_file():
        lines = []
        for setting, value in _settings(name, plan).items():
            path = folder / f"{setting}.json"
            stored = (read_json(path) if path.is_file() else _DEFAULTS).get(setting)
            lines += [f"{setting}: {stored!r} (there), {value!r} (options)"] * (stored != value)
        _refuse_differences(folder, plan, *lines)
    elif _holds_features(folder):
        raise InputError(f"{folder}: holds features of unknown settings (no {SETTINGS}); move the folder away")


def _refuse_differences(folder: Path, plan: ExtractionPlan, *others: str) -> None:
    """Refuse a folder of other mel-spectrograms than the plan's, or where there are other differences."""
    stored = read_audio_config(folder / SETTINGS)
    if lines := [*differences(stored, plan.audio, names=("there", "options")), *others]:
        raise InputError(
            f"{folder}: was made with other settings: {'; '.join(lines)}; give the same ones or move the folder away"
        )


def _check_teacher(folder: Path, teacher: StoredTeacher | None) -> None:
    """Refuse a folder of features that another teacher made, or none."""
    stored = read_teacher(folder / TEACHER) if (folder / TEACHER).is_file() else None
    if stored is not None and teacher is not None:  # older folders do not say what became of unknown symbols
        stored = replace(stored, unknown_symbols=teacher.unknown_symbols)
    if stored != teacher and _holds_features(folder):
        models = [one.model if one else "no model" for one in (stored, teacher)]
        other = " with other weights or another text front end" if models[0] == models[1] else ""
        raise InputError(
            f"{folder}: holds features that {models[0]}{other} made, and now {models[1]} would; move the folder away"
        )


def _holds_features(folder: Path) -> bool:
    return next(folder.glob("*.pt"), None) is not None
