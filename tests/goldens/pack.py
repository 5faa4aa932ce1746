"""Packs a folder of complete goldens into this one: `.venv/bin/python tests/goldens/pack.py ../shared/goldens`."""

import io
import lzma
import sys
import tarfile
from pathlib import Path

from safetensors.torch import load, save

# Recordings, files that hold parts of them, and the largest that are of one kind with others.
LEFT_OUT = """
    *.flac audio/mel.* hifigan/denoiser.* hifigan/discriminators_full.* hifigan/discriminators_small_and_losses.*
    hifigan/mel_spectrogram.* hifigan/train_step.* jasper/features.* jasper/speed_perturbation.*
    waveglow/denoiser.* waveglow/waveglow_forward.*
    fastpitch_1_0/heads2_batch1/* fastpitch_1_1/multi_noenergy/* fastpitch_1_1/heads2_energy/*
    hifigan/checkpoints/nvidia/hifigan_discrim_checkpoint_20.pt hifigan/generator_v2.* layers/ref_1_0/*
    tacotron2/checkpoints/checkpoint_Tacotron2_150_ddp.pt waveglow/checkpoints/checkpoint_WaveGlow_50_ddp.pt
""".split()
RECORDED = {"hifigan/checkpoints_expected.safetensors": "input.y"}  # tensors that are left out of their file
FLOATS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "nice_len": 273, "dict_size": 2**26}]


def pack(folder: Path, target: Path) -> None:
    """Write the files of ``folder`` that are not left out to ``target``, the same bytes at every call."""
    with lzma.open(target, "wb", filters=FLOATS) as compressed, tarfile.open(fileobj=compressed, mode="w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if any(path.match(pattern) for pattern in LEFT_OUT):
                continue
            entry = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
            data = path.read_bytes()
            if entry.name in RECORDED:
                data = save({key: value for key, value in load(data).items() if key != RECORDED[entry.name]})
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    for folder in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
        pack(folder, Path(__file__).with_name(f"{folder.name}.tar.xz"))
