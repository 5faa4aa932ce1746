"""Says what a checkpoint or an exported file is, and which vocoders or voices it fits.

python -m scripts.inspect_checkpoint output/FastPitch_checkpoint_1500.pt --json
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.registry import available_models, get_model

if TYPE_CHECKING:
    from common.checkpoints import Checkpoint

_PARTNER = {"generator": "vocoder", "vocoder": "generator"}


def checkpoints_in(folders: Sequence[Path], *, role: str) -> Iterator[tuple[Path, "Checkpoint"]]:
    """The checkpoints with a role in some folders; of a training the last one alone."""
    for folder in {one.resolve(): one for one in folders if one.is_dir()}.values():
        saved = {path for model in available_models(role) for path in checkpoints.saved_checkpoints(folder, model)[:-1]}
        for path in sorted(set(filter(Path.is_file, folder.iterdir())) - saved):
            with suppress(InputError, OSError):  # any other file
                _, checkpoint = checkpoints.read_model(path)
                if get_model(checkpoint.model).role == role:
                    yield path, checkpoint


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


def shortened(value: Any) -> Any:
    """A value in whose place, where it is a text of several lines, such as a dictionary, stands their number."""
    if isinstance(value, dict):
        return {name: shortened(one) for name, one in value.items()}
    return f"{value.count(chr(10))} lines" if isinstance(value, str) and "\n" in value else value


def main(argv: Sequence[str] | None = None) -> None:
    """Inspect one checkpoint."""
    parser = ArgumentParser(prog="inspect_checkpoint.sh", description="Say what a checkpoint is, and what fits it.")
    parser.add_argument("file", type=Path, help="checkpoint, ours or published, or exported file of ours")
    parser.add_argument("--json", action="store_true", help="print one JSON object, not YAML")
    text = "folders with the vocoders or voices to compare with, and their folders (default: the folder of FILE, "
    text += "./output and ./pretrained_models)"
    parser.add_argument("--beside", type=Path, nargs="+", metavar="FOLDER", help=text)
    args = parser.parse_args(argv)
    checkpoint, facts = checkpoints.inspect_checkpoint(args.file)
    named = args.beside or [folder for folder in map(Path, ("output", "pretrained_models")) if folder.is_dir()]
    within = [one for folder in named for one in (folder, *sorted(folder.iterdir()))]
    facts["fits"] = fits(checkpoint, within if args.beside else [args.file.parent, *within])
    print(json.dumps(facts) if args.json else yaml.safe_dump(shortened(facts), sort_keys=False, width=120).rstrip())


if __name__ == "__main__":
    run(main)
