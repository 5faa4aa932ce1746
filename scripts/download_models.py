"""Puts trained models into ``pretrained_models/<model>/``: published ones, or those of a URL or path that you give.

    python -m scripts.download_models fastpitch hifigan-finetuned-fastpitch
    python -m scripts.download_models hifigan --source /media/stick/hifigan.zip
    python -m scripts.download_models hifigan --source https://example.org/g_02500000 https://example.org/config.json

A source is a checkpoint, an archive (zip or tar) or a folder. Its SHA-256 is taken from --sha256 or from
``<source>.sha256``; none was published for the published models, which are verified by opening them.
"""

import argparse
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.checkpoints import Checkpoint, load_checkpoint
from common.cli import ArgumentParser, run
from common.errors import CheckpointError, InputError, OptionError
from common.files import make_folder, writing
from common.registry import get_model
from scripts.datasets.download import TIMEOUT, fetch, is_archive, unpack


@dataclass(frozen=True)
class PublishedModel:
    """A checkpoint that its owners offer for download."""

    model: str
    address: str
    archive: str | None = None  # name of the file at the address, where that does not end in it
    file: str | None = None  # name of the checkpoint; None: not known


NGC = "https://api.ngc.nvidia.com/v2/models/nvidia"
PUBLISHED = {
    "fastpitch": PublishedModel(
        "FastPitch",
        f"{NGC}/fastpitch_pyt_fp32_ckpt_v1_1/versions/21.05.0/zip",
        "fastpitch_pyt_fp32_ckpt_v1_1_21.05.0.zip",
        "nvidia_fastpitch_210824.pt",
    ),
    "fastpitch-cfg": PublishedModel(
        "FastPitch",
        f"{NGC}/dle/fastpitch__pyt_ckpt/versions/21.12.1_amp/files/nvidia_fastpitch_210824+cfg.pt",
        file="nvidia_fastpitch_210824+cfg.pt",
    ),
    "fastpitch-1.0": PublishedModel(
        "FastPitch",
        f"{NGC}/fastpitch_pyt_amp_ckpt_v1/versions/20.02.0/zip",
        "nvidia_fastpitch_200518.zip",
        "nvidia_fastpitch_200518.pt",
    ),
    "tacotron2": PublishedModel(
        "Tacotron2",
        f"{NGC}/tacotron2_pyt_ckpt_amp/versions/19.12.0/files/nvidia_tacotron2pyt_fp16.pt",
        file="nvidia_tacotron2pyt_fp16.pt",
    ),
    "hifigan": PublishedModel(
        "HiFi-GAN",
        f"{NGC}/dle/hifigan__pyt_ckpt_ds-ljs22khz/versions/21.08.0_amp/zip",
        "hifigan__pyt_ckpt_ds-ljs22khz_21.08.0_amp.zip",
        "hifigan_gen_checkpoint_6500.pt",
    ),
    "hifigan-finetuned-fastpitch": PublishedModel(
        "HiFi-GAN",
        f"{NGC}/dle/hifigan__pyt_ckpt_mode-finetune_ds-ljs22khz/versions/21.08.0_amp/zip",
        "hifigan__pyt_ckpt_mode-finetune_ds-ljs22khz_21.08.0_amp.zip",
        "hifigan_gen_checkpoint_10000_ft.pt",
    ),
    "waveglow": PublishedModel(
        "WaveGlow",
        f"{NGC}/waveglow_ckpt_amp_256/versions/20.01.0/zip",
        "waveglow_ckpt_amp_256_20.01.0.zip",
        "nvidia_waveglow256pyt_fp16.pt",
    ),
    "jasper": PublishedModel("Jasper", f"{NGC}/jasperpyt_fp16/versions/1/zip", "jasperpyt_fp16.zip"),
}
# Files next to checkpoints that are none.
NO_CHECKPOINT = (".json", ".sha256", ".txt", ".md", ".yaml", ".yml")


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(
        prog="download_models.sh",
        description="Put trained models into pretrained_models/: the published ones, or yours from a URL or path.",
        epilog="Instead of --source and --sha256, set FASTPITCH_SOURCE, HIFIGAN_SOURCE (and ..._SHA256) in the "
        "environment; then several models can be named at once.",
    )
    parser.add_argument("models", nargs="+", choices=tuple(PUBLISHED), metavar="model", help=", ".join(PUBLISHED))
    parser.add_argument(
        "--source", nargs="+", help="URLs or paths of a checkpoint, an archive or a folder, and of a config.json to it"
    )
    parser.add_argument("--sha256", help="checksum of the first source, in hexadecimal")
    parser.add_argument("-o", "--output", type=Path, default=Path("pretrained_models"), help="folder of the models")
    args = parser.parse_args(argv)
    if args.source is not None and len(args.models) > 1:
        raise OptionError("--source gives one model; name the others in calls of their own")
    if args.sha256 is not None and args.source is None:
        raise OptionError("--sha256 is the checksum of --source; give that too")
    return args


def download(
    sources: Sequence[str], folder: Path, *, model: str, sha256: str | None = None, archive: str | None = None
) -> None:
    """Fetch ``sources`` into ``folder``, unpacked; they stand there only once a checkpoint of ``model`` is among them.

    ``archive`` names the first source's file, where its address does not.

    Raises InputError for a source that cannot be read or is not what its checksum says, and as `describe` does.
    """
    make_folder(folder.parent)
    parts = folder.with_name(f".{folder.name}.download")  # what an interrupted download resumes from
    with writing(folder), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as name:
        fresh = Path(name)
        for number, source in enumerate(sources):
            first = number == 0
            _bring(source, fresh, parts=parts, sha256=sha256 if first else None, name=archive if first else None)
        describe(fresh, model=model, shown_as=folder)
        folder.mkdir(exist_ok=True)
        for path in sorted(fresh.iterdir()):
            target = folder / path.name
            if target.is_dir():
                shutil.rmtree(target)
            shutil.move(path, target)
    shutil.rmtree(parts, ignore_errors=True)


def _bring(source: str, folder: Path, *, parts: Path, sha256: str | None, name: str | None) -> None:
    """Put what ``source``, a file called ``name`` where that is given, holds into ``folder``."""
    if Path(source).is_dir():
        if sha256 is not None:
            raise OptionError(f"--sha256: {source} is a folder, which has no checksum")
        shutil.copytree(source, folder, dirs_exist_ok=True)
        return
    is_url = "://" in source
    is_published = source in {published.address for published in PUBLISHED.values()}
    name = name or Path(urllib.parse.unquote(urllib.parse.urlparse(source).path) if is_url else source).name
    if not name:
        raise InputError(f"{source}: names no file")
    expected = sha256 or (None if is_published else _checksum_beside(source))
    if is_published:
        print(f"{source}: no checksum was published; verified by opening it")
    elif expected is None:
        print(f"note: {source} comes without a checksum (--sha256, or a file {name}.sha256 beside it): not verified")
    target = parts / name
    fetch(source, target, sha256=expected)
    if is_archive(name):
        try:
            unpack(target, folder)
        finally:
            target.unlink()  # a broken one would never unpack
    else:
        shutil.move(target, folder / name)
        config = Path(source).with_name("config.json")
        if not is_url and config.is_file() and config != Path(source):  # the authors' checkpoints need theirs
            shutil.copyfile(config, folder / config.name)


def _checksum_beside(source: str) -> str | None:
    """The SHA-256 in ``<source>.sha256``, as sha256sum writes it; None where there is no such file."""
    if "://" in source:
        try:
            with urllib.request.urlopen(f"{source}.sha256", timeout=TIMEOUT) as response:
                text = response.read(1000).decode("ascii", errors="replace")
        except (OSError, ValueError, urllib.error.URLError):
            return None  # the file itself will say whether its server can be reached
    else:
        path = Path(f"{source}.sha256")
        if not path.is_file():
            return None
        text = path.read_text(encoding="utf-8", errors="replace")
    found = re.match(r"\s*([0-9a-fA-F]{64})\b", text)
    if found is None:
        if "://" in source:
            return None  # some servers answer every address with a page
        raise InputError(f"{source}.sha256: holds no SHA-256, expected 64 hexadecimal digits")
    return found.group(1)


def describe(folder: Path, *, model: str, shown_as: Path) -> None:
    """Open the checkpoints below ``folder`` and print a line on each; raises CheckpointError if none is ``model``'s."""
    is_there, problems = False, []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix.lower() in NO_CHECKPOINT or path.name.startswith("."):
            continue
        name = shown_as / path.relative_to(folder)
        try:
            checkpoint = load_checkpoint(path)
        except InputError as error:
            problems.append(str(error).replace(str(path), str(name)))
            continue
        is_there |= checkpoint.model == model
        print(f"{name}: {summary(checkpoint)}")
    if not is_there:
        reason = "; ".join(problems) or "no such file among them"
        raise CheckpointError(f"{shown_as}: no checkpoint of {model} ({reason})")
    for problem in problems:
        print(f"note: {problem}")


def summary(checkpoint: Checkpoint) -> str:
    """What a checkpoint is, in one line."""
    audio = checkpoint.audio
    n_weights = sum(value.numel() for state in checkpoint.networks.values() for value in state.values())
    words = [
        f"{checkpoint.model} ({', '.join(checkpoint.networks)})",
        f"{n_weights / 1e6:.1f} M weights",
        f"{audio.sampling_rate} Hz, {audio.n_mels} mels every {audio.hop_length} samples",
    ]
    if checkpoint.has_ema:
        words.append("with EMA weights")
    if checkpoint.training is not None:
        words.append(f"training state of epoch {checkpoint.training.get('epoch', '?')}")
    return ", ".join(words)


def download_published(published: PublishedModel, folder: Path) -> None:
    """Fetch a published checkpoint into ``folder``. Raises InputError, which says how to give the file instead."""
    try:
        download([published.address], folder, model=published.model, archive=published.archive)
    except CheckpointError:
        raise
    except InputError as error:
        raise InputError(f"{error}; --source takes a file that you have") from error


def is_there(published: PublishedModel, folder: Path) -> bool:
    """Whether a published checkpoint, or where its file's name is not known any file, is in ``folder``."""
    return any(folder.rglob(published.file or "*.pt"))


def main(argv: Sequence[str] | None = None) -> int:
    """Bring each model, or describe what exists already."""
    args = parse_args(argv)
    for option in args.models:
        published = PUBLISHED[option]
        folder = args.output / get_model(published.model).option  # the scripts look for all of a model here
        variable = re.sub(r"\W", "_", option).upper()
        source = args.source or ([os.environ[f"{variable}_SOURCE"]] if os.environ.get(f"{variable}_SOURCE") else None)
        if source is not None:
            sha256 = args.sha256 if args.source else os.environ.get(f"{variable}_SHA256") or None
            download(source, folder, model=published.model, sha256=sha256)
        elif is_there(published, folder):
            describe(folder, model=published.model, shown_as=folder)
        else:
            download_published(published, folder)
    return 0


if __name__ == "__main__":
    run(main)
