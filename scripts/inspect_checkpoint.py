"""Says what a checkpoint or an exported file is, and which vocoders or voices it fits.

python -m scripts.inspect_checkpoint output/FastPitch_checkpoint_1500.pt --json
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.options import add_options, option, read_options
from common.registry import available_models, get_model

if TYPE_CHECKING:
    from common.checkpoints import Checkpoint

_FOLDERS = (Path("output"), Path("pretrained_models"))
_PARTNER = {"generator": "vocoder", "vocoder": "generator"}
_FORMATS = {"onnx": "ONNX", "safetensors": "safetensors"}


@dataclass(frozen=True)
class InspectionOptions:
    """How a checkpoint is shown, and what it is compared with."""

    json: bool = option(False, "print one JSON object")
    beside: tuple[Path, ...] = option(
        (),
        "folders with the vocoders or voices to compare with, and their folders (default: the folder of FILE, ./output "
        "and ./pretrained_models)",
        metavar="FOLDER",
    )


def checkpoints_in(folders: Sequence[Path], *, role: str) -> Iterator[tuple[Path, "Checkpoint"]]:
    """The checkpoints with a role in some folders; of a training the last one alone."""
    seen: set[Path] = set()
    for folder in dict.fromkeys(folders):
        earlier = {
            path for model in available_models(role) for path in checkpoints.saved_checkpoints(folder, model)[:-1]
        }
        for path in sorted(filter(Path.is_file, folder.iterdir())):
            if path in earlier or path.resolve() in seen:
                continue
            seen.add(path.resolve())
            with suppress(InputError, OSError):  # any other file
                _, checkpoint = checkpoints.read_model(path)
                if get_model(checkpoint.model).role == role:
                    yield path, checkpoint


def folders_of(file: Path, beside: Sequence[Path]) -> list[Path]:
    """Where partners of a file are looked for."""
    given = beside or [folder for folder in _FOLDERS if folder.is_dir()]
    within = [one for folder in given for one in (folder, *sorted(filter(Path.is_dir, folder.iterdir())))]
    return within if beside else [file.parent, *within]


def fits(checkpoint: "Checkpoint", folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Each partner with whether its mels are this checkpoint's, the fields that differ, and those taken to be equal."""
    role = get_model(checkpoint.model).role
    found = []
    for path, other in checkpoints_in(folders, role=_PARTNER[role]) if role in _PARTNER else ():
        voice, vocoder = (checkpoint, other) if role == "generator" else (other, checkpoint)
        contract = synthesis.AudioContract(vocoder.audio, "vocoder", vocoder.assumed)
        lines = contract.differences(voice.audio, owner="voice", assumed=voice.assumed)
        fact = {"file": str(path), "model": other.model, "fits": not lines, "differs": lines}
        found.append(fact | {"taken_to_be_equal": contract.unrecorded(voice.audio, assumed=voice.assumed)})
    return found


def table(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts as rows for people."""
    yield "file", f"{facts['file']}, {facts['bytes'] / 1e6:.1f} MB"
    kind = f"{_FORMATS.get(facts['layout'], 'checkpoint')} of this toolkit"
    stripped = facts["stripped"]
    held = f", stripped for inference ({stripped['dtype']})" if stripped and facts["layout"] not in _FORMATS else ""
    yield "what", f"{facts['model']} ({facts['role']}), {'published checkpoint' if facts['foreign'] else kind}{held}"
    if facts["foreign"]:
        yield "layout", facts["layout"]
    for name, count in facts["parameters"].items():
        yield "parameters", f"{name} {count:,}"
    if facts["dtypes"]:
        yield "stored as", ", ".join(f"{name} ({count:,} numbers)" for name, count in facts["dtypes"].items())
    if facts.get("part"):
        yield "part", facts["part"]
    for name in ("inputs", "outputs"):
        for tensor, about in facts.get(name, {}).items():
            yield name, f"{tensor} ({', '.join(map(str, about['shape']))})"
    yield "EMA weights", "yes" if facts["ema"] else "no"
    yield "training", "none: it serves inference alone" if facts["layout"] == "onnx" else _training(facts["training"])
    for title, name in (("architecture", "config"), ("audio", "audio"), ("text", "text")):
        assumed = facts.get(f"assumed_{name}", ())
        for field, value in (facts[name] or {}).items():
            shown = f"{value.count(chr(10))} lines" if isinstance(value, str) and "\n" in value else value
            yield title, f"{field} {shown}{' (assumed: the file does not record it)' if field in assumed else ''}"
    if facts["text"] is None and facts["role"] == "generator":
        yield "text", "not recorded"
    if facts["role"] in _PARTNER and not facts["fits"]:
        yield "fits", f"no {_PARTNER[facts['role']]}'s checkpoint found in {', '.join(facts['searched'])}"
    for one in facts["fits"]:
        equal = f" (if {' and '.join(names)} are the same)" if (names := one["taken_to_be_equal"]) else ""
        differs = f": {'; '.join(one['differs'])}"
        yield (
            "fits" if one["fits"] else "does not fit",
            f"{one['file']} ({one['model']}){equal if one['fits'] else differs}",
        )


def _training(state: dict[str, Any] | None) -> str:
    if state is None:
        return "no state: it serves inference, and to begin new trainings with"
    if "unreadable" in state:
        return f"its state cannot be read: {state['unreadable']}"
    return f"epoch {state['epoch']}, update {state['iteration']}, optimizers of {', '.join(state['optimizers'])}"


def main(argv: Sequence[str] | None = None) -> None:
    """Inspect one checkpoint."""
    parser = ArgumentParser(prog="inspect_checkpoint.sh", description="Say what a checkpoint is, and what fits it.")
    parser.add_argument("file", type=Path, help="checkpoint, ours or published, or exported file of ours")
    add_options(parser, InspectionOptions)
    args = parser.parse_args(argv)
    options = read_options(args, InspectionOptions)
    checkpoint, facts = checkpoints.inspect_checkpoint(args.file)
    folders = folders_of(args.file, options.beside)
    facts |= {"fits": fits(checkpoint, folders), "searched": [str(folder) for folder in folders]}
    if options.json:
        print(json.dumps(facts))
        return
    last = ""
    for name, value in table(facts):
        print(f"{name if name != last else '':<13} {value}".rstrip())
        last = name


if __name__ == "__main__":
    run(main)
