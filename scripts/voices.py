"""The checkpoints that scripts find where none is named: the newest voice, and a vocoder that fits it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.errors import InputError
from common.options import read_switch, read_variables
from common.registry import get_model
from scripts.launch import dry_run, given, note, variable


@dataclass(frozen=True)
class VoiceFiles:
    """Checkpoints that speak."""

    fastpitch: Path | None = variable("FASTPITCH", None, "checkpoint of the voice; empty: the newest")
    tacotron2: Path | None = variable("TACOTRON2", None, "checkpoint of a voice, instead of FASTPITCH")
    hifigan: str | None = variable("HIFIGAN", None, "checkpoint of the vocoder; empty: one that fits")
    waveglow: str | None = variable("WAVEGLOW", None, "checkpoint of a vocoder, instead of HIFIGAN")
    harmonic: str | None = variable("HARMONIC", None, "checkpoint of a vocoder, instead of HIFIGAN")

    @property
    def voice(self) -> Path | None:
        return self.tacotron2 or self.fastpitch

    @property
    def vocoder(self) -> str | None:
        return self.hifigan or self.waveglow or self.harmonic

    def words(self) -> list[str | Path]:
        """Options of inference.py and serve.py."""
        return given(
            fastpitch=self.fastpitch,
            tacotron2=self.tacotron2,
            hifigan=self.hifigan,
            waveglow=self.waveglow,
            harmonic=self.harmonic,
        )


def find_newest(name: str, model: str, *, train: str, shipped: Path | None = None) -> Path:
    """The newest checkpoint of a model, or else the ``shipped`` one.

    Raises:
        InputError: there is none; names the variable ``name`` and the script that trains one.
    """
    found = newest_checkpoint(model)
    if found is None and dry_run():
        return Path(f"output/{model}_checkpoint_NEWEST.pt")
    if found is None and shipped is not None and shipped.is_file():
        found = shipped
    if found is None:
        raise InputError(
            f"no {model} checkpoint in ./output or ./pretrained_models; train one (scripts/{train}), or set {name}"
        )
    return found


def find_voice(
    environ: Mapping[str, str], words: Sequence[str], *, phrases: Path | None = None, audio: bool = True
) -> VoiceFiles:
    """The checkpoints that variables name, with the newest voice where none is named, and a vocoder that fits it.

    A list of ``phrases`` with a column of mels or recordings needs no voice; without ``audio`` there is no vocoder.
    """
    found: VoiceFiles = read_variables(VoiceFiles, environ)
    model = environ.get("MODEL")
    if model == "Tacotron2" and found.tacotron2 is None:
        found = replace(found, tacotron2=find_newest("TACOTRON2", "Tacotron2", train="train_tacotron2.sh"))
    if found.voice is None and not _gives_sound(phrases):
        shipped = Path("voices/lj-small.pt")
        found = replace(found, fastpitch=find_newest("FASTPITCH", "FastPitch", train="train.sh", shipped=shipped))
    for vocoder, name, train in (
        ("HiFi-GAN", "hifigan", "train_lj22khz.sh"),
        ("WaveGlow", "waveglow", "train_waveglow.sh"),
        ("Harmonic", "harmonic", "train.sh"),
    ):
        if model == vocoder and getattr(found, name) is None:
            shipped = Path("voices/vocoder-small.pt") if vocoder == "Harmonic" else None
            newest = find_newest(name.upper(), vocoder, train=train, shipped=shipped)
            found = replace(found, **{name: str(newest)})
    own = re.compile("--(hifigan|waveglow|harmonic|no-audio|griffin-lim-iters)")
    if audio and found.voice and not found.vocoder and not any(map(own.match, words)):
        torchscript = read_switch("TORCHSCRIPT", environ.get("TORCHSCRIPT") or "0") or "--torchscript" in words
        found = replace(found, **_find_vocoder(found.voice, torchscript=torchscript))
    return found


def _gives_sound(phrases: Path | None) -> bool:
    """Whether a list names a column of mel-spectrograms or recordings."""
    if phrases is None or not phrases.is_file():
        return False
    with phrases.open(encoding="utf-8", errors="replace") as file:
        columns = re.split(r"[|\t]", file.readline())
    return any(column.rstrip() in ("mel", "wav") for column in columns)


def _find_vocoder(voice: Path, *, torchscript: bool) -> dict[str, str]:
    """The field of `VoiceFiles` with a downloaded vocoder that reads the voice's mels, or else with the shipped one."""
    candidates = [("hifigan", path) for path in downloaded("HiFi-GAN")]
    if not torchscript:  # which the others do not have
        candidates += [("waveglow", path) for path in downloaded("WaveGlow")]
        candidates += [("harmonic", Path("voices/vocoder-small.pt"))] * (not dry_run())
    found, others = {}, ""
    for name, path in candidates:
        if not path.is_file():
            continue
        if dry_run() or _fits(voice, path):  # a dry run reads no checkpoint
            found = {name: str(path)}
            break
        others += f"; {path} does not fit {voice}"
    chosen = next(iter(found.values()), "Griffin-Lim")
    note(f"note: {chosen} makes the sound{others}; HIFIGAN, WAVEGLOW or HARMONIC names another vocoder")
    return found


def _fits(voice: Path, vocoder: Path) -> bool:
    """Whether a vocoder reads a voice's mels; False where a file cannot be read, which the command will say."""
    with suppress(InputError, OSError):
        speaking, sounding = checkpoints.read_model(voice)[1], checkpoints.read_model(vocoder)[1]
        if get_model(sounding.model).role == "vocoder":
            contract = synthesis.AudioContract(sounding.audio, "vocoder", sounding.assumed)
            return not contract.differences(speaking.audio, assumed=speaking.assumed)
    return False


def newest_checkpoint(model: str) -> Path | None:
    """The newest checkpoint of a model in ./output, else in ./pretrained_models; None where there is none."""
    trained = [*Path("output").glob(f"{model}_checkpoint_*.pt")]
    return max(trained or downloaded(model), key=lambda path: path.stat().st_mtime, default=None)


def downloaded(model: str) -> list[Path]:
    """The checkpoints of a model that scripts/download_models.sh has put into ./pretrained_models, the newest first."""
    folder = Path("pretrained_models") / get_model(model).option
    kinds = (path for kind in ("*.pt", "g_*", "nvidia_*") for path in folder.rglob(kind))
    found = {path for path in kinds if path.is_file() and "discrim" not in path.name}
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
