"""The checkpoints that scripts find where none is named: the newest voice, and a vocoder that fits it."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from common import checkpoints, synthesis  # whose functions are imported when they are used: --help needs no PyTorch
from common.errors import InputError
from common.registry import get_model
from scripts.launch import dry_run, given, note
from scripts.variables import Variables

VOICE = "fastpitch tacotron2 hifigan waveglow harmonic"  # fields of `Variables`
VOCODERS = {"HiFi-GAN": "hifigan", "WaveGlow": "waveglow", "Harmonic": "harmonic"}
_SHIPPED = {"FastPitch": Path("voices/lj-small.pt"), "Harmonic": Path("voices/vocoder-small.pt")}


def voice_of(own: Variables) -> Path | None:
    """The checkpoint of the voice that variables name."""
    return own.tacotron2 or own.fastpitch


def vocoder_of(own: Variables) -> str | None:
    """The checkpoint of the vocoder that variables name."""
    return own.hifigan or own.waveglow or own.harmonic


def voice_words(own: Variables) -> list[str | Path]:
    """Options of inference.py and serve.py that name the checkpoints."""
    return given(**{name: getattr(own, name) for name in VOICE.split()})


def find_newest(model: str) -> Path:
    """The newest checkpoint of a model in ./output, else in ./pretrained_models, else the shipped one.

    Raises:
        InputError: there is none.
    """
    trained = [*Path("output").glob(f"{model}_checkpoint_*.pt")]
    found = max(trained or downloaded(model), key=lambda path: path.stat().st_mtime, default=None)
    if found is None and dry_run():
        return Path(f"output/{model}_checkpoint_NEWEST.pt")
    found = found or _SHIPPED.get(model)
    if found is None or not found.is_file():
        name = get_model(model).option.upper()
        raise InputError(
            f"no {model} checkpoint in ./output or ./pretrained_models; set {name}, or train one: "
            f"MODEL={model} bash scripts/train.sh"
        )
    return found


def find_voice(own: Variables, words: Sequence[str], *, audio: bool = True) -> Variables:
    """The variables with the newest voice where none is named, and a vocoder that fits it.

    A list of phrases with a column of mels or recordings needs no voice; without ``audio`` there is no vocoder.
    """
    if own.model == "Tacotron2" and own.tacotron2 is None:
        own = replace(own, tacotron2=find_newest("Tacotron2"))
    if voice_of(own) is None and not _gives_sound(own.phrases):
        own = replace(own, fastpitch=find_newest("FastPitch"))
    name = VOCODERS.get(own.model)
    if name and getattr(own, name) is None:
        own = replace(own, **{name: str(find_newest(own.model))})
    given = re.compile("--(hifigan|waveglow|harmonic|no-audio|griffin-lim-iters)")
    if audio and (voice := voice_of(own)) and not vocoder_of(own) and not any(map(given.match, words)):
        own = replace(own, **_find_vocoder(voice, torchscript=own.torchscript or "--torchscript" in words))
    return own


def _gives_sound(phrases: Path | None) -> bool:
    """Whether a list names a column of mel-spectrograms or recordings."""
    if phrases is None or not phrases.is_file():
        return False
    with phrases.open(encoding="utf-8", errors="replace") as file:
        columns = re.split(r"[|\t]", file.readline())
    return any(column.rstrip() in ("mel", "wav") for column in columns)


def _find_vocoder(voice: Path, *, torchscript: bool) -> dict[str, str]:
    """The variable with a downloaded vocoder that reads the voice's mels, or else with the shipped one."""
    candidates = [("hifigan", path) for path in downloaded("HiFi-GAN")]
    if not torchscript:  # which the others do not have
        candidates += [("waveglow", path) for path in downloaded("WaveGlow")]
        candidates += [("harmonic", _SHIPPED["Harmonic"])] * (_SHIPPED["Harmonic"].is_file() and not dry_run())
    for name, path in candidates:
        if dry_run() or _fits(voice, path):  # a dry run reads no checkpoint
            note(f"note: {path} makes the sound; HIFIGAN, WAVEGLOW or HARMONIC names another vocoder")
            return {name: str(path)}
    unfit = "".join(f"; {path} does not fit {voice}" for _, path in candidates)
    note(f"note: Griffin-Lim makes the sound{unfit}; HIFIGAN, WAVEGLOW or HARMONIC names a vocoder")
    return {}


def _fits(voice: Path, vocoder: Path) -> bool:
    """Whether a vocoder reads a voice's mels; False where a file cannot be read, which the command will say."""
    with suppress(InputError, OSError):
        speaking, sounding = checkpoints.read_model(voice)[1], checkpoints.read_model(vocoder)[1]
        if get_model(sounding.model).role == "vocoder":
            contract = synthesis.AudioContract(sounding.audio, "vocoder", sounding.assumed)
            return not contract.differences(speaking.audio, assumed=speaking.assumed)
    return False


def downloaded(model: str) -> list[Path]:
    """The checkpoints of a model that scripts/download_models.sh has put into ./pretrained_models, the newest first."""
    folder = Path("pretrained_models") / get_model(model).option
    kinds = (path for kind in ("*.pt", "g_*", "nvidia_*") for path in folder.rglob(kind))
    found = {path for path in kinds if path.is_file() and "discrim" not in path.name}
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
