"""Puts trained models into ``pretrained_models/<model>/``: published ones, or those of a URL or path that you give.

    python -m scripts.download_models fastpitch hifigan-finetuned-fastpitch
    python -m scripts.download_models hifigan --source /media/stick/hifigan.zip
    python -m scripts.download_models hifigan --source https://example.org/g_02500000 https://example.org/config.json

A source is a checkpoint, an archive (zip or tar) or a folder. No checksums of the published models were published: they
are verified by opening them.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common.checkpoints import load_checkpoint
from common.cli import ArgumentParser, run
from common.errors import CheckpointError, InputError, OptionError
from common.files import make_folder, writing
from common.registry import get_model
from scripts.datasets.download import bring


class PublishedModel(NamedTuple):
    """A checkpoint that its owners offer for download."""

    model: str
    address: str
    file: str | None = None  # name of the checkpoint; None: not known


_NGC = "https://api.ngc.nvidia.com/v2/models/nvidia/"
# Name, model, address and, if it is known, file of each.
_PUBLISHED = """
fastpitch FastPitch fastpitch_pyt_fp32_ckpt_v1_1/versions/21.05.0/zip nvidia_fastpitch_210824.pt
fastpitch-cfg FastPitch dle/fastpitch__pyt_ckpt/versions/21.12.1_amp/files/nvidia_fastpitch_210824+cfg.pt \
    nvidia_fastpitch_210824+cfg.pt
fastpitch-1.0 FastPitch fastpitch_pyt_amp_ckpt_v1/versions/20.02.0/zip nvidia_fastpitch_200518.pt
tacotron2 Tacotron2 tacotron2_pyt_ckpt_amp/versions/19.12.0/files/nvidia_tacotron2pyt_fp16.pt \
    nvidia_tacotron2pyt_fp16.pt
hifigan HiFi-GAN dle/hifigan__pyt_ckpt_ds-ljs22khz/versions/21.08.0_amp/zip hifigan_gen_checkpoint_6500.pt
hifigan-finetuned-fastpitch HiFi-GAN dle/hifigan__pyt_ckpt_mode-finetune_ds-ljs22khz/versions/21.08.0_amp/zip \
    hifigan_gen_checkpoint_10000_ft.pt
waveglow WaveGlow waveglow_ckpt_amp_256/versions/20.01.0/zip nvidia_waveglow256pyt_fp16.pt
jasper Jasper jasperpyt_fp16/versions/1/zip
"""
PUBLISHED = {
    name: PublishedModel(model, _NGC + path, *file)
    for name, model, path, *file in map(str.split, _PUBLISHED.strip().splitlines())
}
# Files next to checkpoints that are none.
NO_CHECKPOINT = (".json", ".sha256", ".txt", ".md", ".yaml", ".yml")


def download(sources: Sequence[str], folder: Path, *, model: str, sha256: str | None = None, name: str = "") -> None:
    """Bring ``sources`` into ``folder``, where they stand only once a checkpoint of ``model`` is among them.

    ``sha256`` is the first source's, and ``name`` its file's where its address does not end in it. Raises InputError
    for a source that cannot be read or is not what its checksum says, and as `describe` does.
    """
    make_folder(folder.parent)
    parts = folder.with_name(f".{folder.name}.download")  # what an interrupted download resumes from
    with writing(folder), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        fresh = Path(temporary)
        for number, source in enumerate(sources):
            bring(source, fresh, parts=parts, sha256=None if number else sha256, name="" if number else name)
            config = Path(source).with_name("config.json")
            if Path(source).is_file() and config.is_file():  # the authors' checkpoints need theirs
                shutil.copyfile(config, fresh / config.name)
        describe(fresh, model=model, shown_as=folder)
        shutil.copytree(fresh, folder, dirs_exist_ok=True, copy_function=os.replace)


def describe(folder: Path, *, model: str, shown_as: Path) -> None:
    """Open the checkpoints below ``folder`` and print a line on each; raises CheckpointError if none is ``model``'s."""
    models = set()
    for path in sorted(folder.rglob("[!.]*")):
        if not path.is_file() or path.suffix.lower() in NO_CHECKPOINT:
            continue
        name = shown_as / path.relative_to(folder)
        try:
            checkpoint = load_checkpoint(path)
        except InputError as error:
            print(f"note: {str(error).replace(str(path), str(name))}")
            continue
        models.add(checkpoint.model)
        audio = checkpoint.audio
        mels = f"{audio.sampling_rate} Hz, {audio.n_mels} mels every {audio.hop_length} samples"
        print(f"{name}: {checkpoint.model} ({', '.join(checkpoint.networks)}), {mels}")
    if model not in models:
        raise CheckpointError(f"{shown_as}: no checkpoint of {model}")


def main(argv: Sequence[str] | None = None) -> int:
    """Bring each model, or describe what exists already."""
    parser = ArgumentParser(
        prog="download_models.sh",
        description="Put trained models into pretrained_models/: the published ones, or yours from a URL or path.",
        epilog="Instead of --source and --sha256, set FASTPITCH_SOURCE, HIFIGAN_SOURCE (and ..._SHA256) in the "
        "environment; then several models can be named at once.",
    )
    parser.add_argument("models", nargs="+", choices=tuple(PUBLISHED), metavar="model", help=", ".join(PUBLISHED))
    parser.add_argument(
        "--source", nargs="+", help="URLs or paths: a checkpoint, an archive or a folder; its config.json"
    )
    parser.add_argument("--sha256", help="checksum of the first source, in hexadecimal")
    parser.add_argument("-o", "--output", type=Path, default=Path("pretrained_models"), help="folder of the models")
    args = parser.parse_args(argv)
    if (args.source or args.sha256) and len(args.models) > 1:
        raise OptionError("--source and --sha256 are of one model; name the others in calls of their own")
    for name in args.models:
        published = PUBLISHED[name]
        model, folder = published.model, args.output / get_model(published.model).option  # where the scripts look
        variable = re.sub(r"\W", "_", name).upper()
        sources = args.source or [*filter(None, [os.environ.get(f"{variable}_SOURCE")])]
        sha256 = args.sha256 or os.environ.get(f"{variable}_SHA256") or None
        if sources:
            download(sources, folder, model=model, sha256=sha256)
        elif any(folder.rglob(published.file or "*.pt")):
            describe(folder, model=model, shown_as=folder)
        else:
            print(f"{published.address}: no checksum was published; verified by opening it")
            archive = f"{name}.zip" if published.address.endswith("/zip") else ""
            download([published.address], folder, model=model, sha256=sha256, name=archive)
    return 0


if __name__ == "__main__":
    run(main)
