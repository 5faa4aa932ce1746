"""The settings and the model that features were made with, stored beside them."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from common.audio.options import PITCH_KINDS, SETTINGS, read_audio_config
from common.config import to_plain
from common.errors import InputError
from common.extraction.features import ExtractionPlan, Utterance
from common.extraction.options import FRAME_PITCH, HERTZ
from common.files import read_json, write_json
from common.text.teacher import TEACHER


def prepare_output_folders(plan: ExtractionPlan, utterances: Sequence[Utterance]) -> None:
    """Write the settings next to the features; InputError if a folder has features with other settings or models."""
    options, dataset = plan.options, plan.options.dataset_path
    subfolders = sorted({PurePosixPath(utterance.name).parent for utterance in utterances} | {PurePosixPath()})
    folders = {dataset / name / sub: _settings(name, plan) for name in options.folders for sub in subfolders}
    if options.reads_durations and (dataset / "durations" / SETTINGS).is_file():
        check_settings(dataset / "durations", {SETTINGS: to_plain(plan.audio)})
    for folder, settings in folders.items():
        check_settings(folder, settings)
    for folder, settings in folders.items():
        (folder / TEACHER).unlink(missing_ok=True)
        for file in filter(settings.get, settings):
            write_json(folder / file, settings[file])


def _settings(name: str, plan: ExtractionPlan) -> dict[str, dict[str, Any]]:
    """Return what the features ``name`` depend on besides the recordings, by the files to store next to them."""
    settings = {SETTINGS: to_plain(plan.audio), "trim_silence.json": {"trim_silence": plan.options.trim_silence}}
    if name == FRAME_PITCH or name.removesuffix(HERTZ) in PITCH_KINDS:
        settings["pitch_method.json"] = {
            name: getattr(plan.options, name) for name in ("pitch_method", "pitch_min", "pitch_max")
        }
    return settings | {TEACHER: to_plain(plan.teacher) if name in plan.options.taught else {}}  # {}: no teacher


def check_settings(folder: Path, settings: Mapping[str, dict[str, Any]]) -> None:
    """Raise InputError if a folder or a subfolder has features whose settings differ or are missing."""
    if next(folder.rglob("*.pt"), None) is None:
        return
    if not (folder / SETTINGS).is_file():
        raise InputError(f"{folder}: contains features with unknown settings (no {SETTINGS}); move the folder away")
    wanted = {name: value for values in settings.values() for name, value in values.items()}
    stored: dict[str, Any] = {}
    for path in (folder / file for file in settings if (folder / file).is_file()):
        stored |= to_plain(read_audio_config(path)) if path.name == SETTINGS else read_json(path)
    stored["unknown_symbols"] = wanted.get("unknown_symbols")  # it only decides which clips are refused
    names = [name for name in ("model", *wanted) if stored.get(name) != wanted.get(name)]
    if names:
        names = ["model"] if "model" in names else names
        lines = (f"{name}: {stored.get(name)!r} (there), {wanted.get(name)!r} (options)" for name in names)
        raise InputError(
            f"{folder}: was made with other settings: {'; '.join(lines)}; give the same ones or move the folder away"
        )
