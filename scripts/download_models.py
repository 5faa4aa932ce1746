"""Puts trained models into ``pretrained_models/<model>/``: published ones, or those of a URL or path that you give.

    python -m scripts.download_models fastpitch hifigan-finetuned-fastpitch
    python -m scripts.download_models hifigan --source /media/stick/hifigan.zip
    python -m scripts.download_models hifigan --source https://example.org/g_02500000 https://example.org/config.json

A source is a checkpoint, an archive (zip or tar) or a folder. Its SHA-256 is taken from --sha256 or from
``<source>.sha256``; none was published for the published models, which are verified by opening them.
"""

import os
import re
import shutil
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.checkpoints import load_checkpoint
from common.cli import ArgumentParser, run
from common.errors import CheckpointError, InputError, OptionError
from common.files import make_folder, writing
from common.options import add_options, option, read_options
from common.registry import get_model
from scripts.datasets.download import TIMEOUT, fetch, is_archive, unpack


@dataclass(frozen=True)
class PublishedModel:
    """A checkpoint that its owners offer for download."""

    model: str
    address: str
    file: str | None = None  # name of the checkpoint; None: not known

    @property
    def is_archive(self) -> bool:
        """Whether the address is of a zip."""
        return self.address.endswith("/zip")


@dataclass(frozen=True)
class SourceOptions:
    """Where a model comes from, and where it goes."""

    source: tuple[str, ...] = option(
        (), "URLs or paths of a checkpoint, an archive or a folder, and of a config.json to it"
    )
    sha256: str | None = option(None, "checksum of the first source, in hexadecimal")
    output: Path = option(Path("pretrained_models"), "folder of the models", names=("-o",), writes=True)


NGC = "https://api.ngc.nvidia.com/v2/models/nvidia"
PUBLISHED = {
    "fastpitch": PublishedModel(
        "FastPitch", f"{NGC}/fastpitch_pyt_fp32_ckpt_v1_1/versions/21.05.0/zip", "nvidia_fastpitch_210824.pt"
    ),
    "fastpitch-cfg": PublishedModel(
        "FastPitch",
        f"{NGC}/dle/fastpitch__pyt_ckpt/versions/21.12.1_amp/files/nvidia_fastpitch_210824+cfg.pt",
        "nvidia_fastpitch_210824+cfg.pt",
    ),
    "fastpitch-1.0": PublishedModel(
        "FastPitch", f"{NGC}/fastpitch_pyt_amp_ckpt_v1/versions/20.02.0/zip", "nvidia_fastpitch_200518.pt"
    ),
    "tacotron2": PublishedModel(
        "Tacotron2",
        f"{NGC}/tacotron2_pyt_ckpt_amp/versions/19.12.0/files/nvidia_tacotron2pyt_fp16.pt",
        "nvidia_tacotron2pyt_fp16.pt",
    ),
    "hifigan": PublishedModel(
        "HiFi-GAN",
        f"{NGC}/dle/hifigan__pyt_ckpt_ds-ljs22khz/versions/21.08.0_amp/zip",
        "hifigan_gen_checkpoint_6500.pt",
    ),
    "hifigan-finetuned-fastpitch": PublishedModel(
        "HiFi-GAN",
        f"{NGC}/dle/hifigan__pyt_ckpt_mode-finetune_ds-ljs22khz/versions/21.08.0_amp/zip",
        "hifigan_gen_checkpoint_10000_ft.pt",
    ),
    "waveglow": PublishedModel(
        "WaveGlow", f"{NGC}/waveglow_ckpt_amp_256/versions/20.01.0/zip", "nvidia_waveglow256pyt_fp16.pt"
    ),
    "jasper": PublishedModel("Jasper", f"{NGC}/jasperpyt_fp16/versions/1/zip"),
}
# Files next to checkpoints that are none.
NO_CHECKPOINT = (".json", ".sha256", ".txt", ".md", ".yaml", ".yml")


def download(sources: Sequence[str], folder: Path, *, model: str, sha256: str | None = None, name: str = "") -> None:
    """Fetch ``sources`` into ``folder``, unpacked; they stand there only once a checkpoint of ``model`` is among them.

    ``sha256`` is the first source's ("": not known), and ``name`` its file's where its address does not end in it.

    Raises InputError for a source that cannot be read or is not what its checksum says, and as `describe` does.
    """
    make_folder(folder.parent)
    parts = folder.with_name(f".{folder.name}.download")  # what an interrupted download resumes from
    with writing(folder), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        fresh = Path(temporary)
        _bring(sources[0], fresh, parts=parts, sha256=sha256, name=name)
        for source in sources[1:]:
            _bring(source, fresh, parts=parts)
        describe(fresh, model=model, shown_as=folder)
        shutil.copytree(fresh, folder, dirs_exist_ok=True, copy_function=os.replace)
    shutil.rmtree(parts, ignore_errors=True)


def _bring(source: str, folder: Path, *, parts: Path, sha256: str | None = None, name: str = "") -> None:
    """Put what ``source``, a file called ``name`` where that is given, holds into ``folder``."""
    if Path(source).is_dir():
        shutil.copytree(source, folder, dirs_exist_ok=True)
        return
    is_url = "://" in source
    name = name or Path(urllib.parse.unquote(urllib.parse.urlparse(source).path) if is_url else source).name
    expected = _checksum_beside(source) if sha256 is None else sha256
    if expected is None:
        print(f"note: {source} comes without a checksum (--sha256, or a file {name}.sha256 beside it): not verified")
    target = parts / name
    fetch(source, target, sha256=expected or None)
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
    address = f"{source}.sha256" if "://" in source else Path(f"{source}.sha256").absolute().as_uri()
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as response:
            found = re.match(rb"\s*([0-9a-fA-F]{64})\b", response.read(1000))
    except OSError:
        return None  # the file itself will say whether its server can be reached
    return found.group(1).decode() if found else None  # some servers answer every address with a page


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
        n_weights = sum(value.numel() for state in checkpoint.networks.values() for value in state.values())
        audio = checkpoint.audio
        print(
            f"{name}: {checkpoint.model} ({', '.join(checkpoint.networks)}), {n_weights / 1e6:.1f} M weights, "
            f"{audio.sampling_rate} Hz, {audio.n_mels} mels every {audio.hop_length} samples"
        )
    if not is_there:
        reason = "; ".join(problems) or "no such file among them"
        raise CheckpointError(f"{shown_as}: no checkpoint of {model} ({reason})")
    for problem in problems:
        print(f"note: {problem}")


def main(argv: Sequence[str] | None = None) -> int:
    """Bring each model, or describe what exists already."""
    parser = ArgumentParser(
        prog="download_models.sh",
        description="Put trained models into pretrained_models/: the published ones, or yours from a URL or path.",
        epilog="Instead of --source and --sha256, set FASTPITCH_SOURCE, HIFIGAN_SOURCE (and ..._SHA256) in the "
        "environment; then several models can be named at once.",
    )
    parser.add_argument("models", nargs="+", choices=tuple(PUBLISHED), metavar="model", help=", ".join(PUBLISHED))
    add_options(parser, SourceOptions)
    args = parser.parse_args(argv)
    given: SourceOptions = read_options(args, SourceOptions)
    if (given.source or given.sha256) and len(args.models) > 1:
        raise OptionError("--source and --sha256 are of one model; name the others in calls of their own")
    for option_name in args.models:
        published = PUBLISHED[option_name]
        model, folder = published.model, given.output / get_model(published.model).option  # where the scripts look
        variable = re.sub(r"\W", "_", option_name).upper()
        sources = given.source or tuple(filter(None, [os.environ.get(f"{variable}_SOURCE")]))
        sha256 = given.sha256 or (os.environ.get(f"{variable}_SHA256") or None if sources else None)
        if sources:
            download(sources, folder, model=model, sha256=sha256)
        elif any(folder.rglob(published.file or "*.pt")):
            describe(folder, model=model, shown_as=folder)
        else:
            print(f"{published.address}: no checksum was published; verified by opening it")
            try:
                name = f"{option_name}.zip" * published.is_archive
                download([published.address], folder, model=model, sha256=sha256 or "", name=name)
            except InputError as error:
                raise type(error)(f"{error}; --source takes a file that you have") from error
    return 0


if __name__ == "__main__":
    run(main)
