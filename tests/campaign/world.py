"""What malformed inputs are made of: small valid models, corpora and lists, and commands that accept them."""

import json
from dataclasses import dataclass
from pathlib import Path

import corpus
import foreign
import tiny
import tiny_jasper
import tiny_vocoder
import tiny_voice
import torch
from sung_words import make_sung_corpus

from common.checkpoints import Checkpoint, save_checkpoint
from common.config import to_plain

RUN = "--epochs 1 --validation-interval 99 --samples-interval 99 -bs 2".split()


@dataclass(frozen=True)
class World:
    """A folder of valid inputs, and the commands that take them; a command writes into ``out``."""

    folder: Path

    @property
    def voice(self) -> Path:
        return self.folder / "voice.pt"

    @property
    def vocoder(self) -> Path:
        return self.folder / "vocoder.pt"

    def speak(self, checkpoint: Path, option: str = "--fastpitch") -> list[str]:
        """Words after inference.py that speak with a voice, or turn a recording into sound or text."""
        if option == "--jasper":
            return ["--jasper", str(checkpoint), "-i", str(self.folder / "sung" / "0.wav")]
        if option in ("--hifigan", "--waveglow"):
            rows = ["-i", str(self.folder / "mels.tsv"), "--dataset-path", str(self.folder)]
            return [option, str(checkpoint), "-o", "out", *rows]
        return [option, str(checkpoint), "--text", "Go on.", "-o", "out", "--no-audio", "--save-mels"]

    def train_voice(self, dataset: Path, *words: str) -> list[str]:
        """Words after train.py that train FastPitch on a folder with train.txt."""
        lists = ["--training-files", str(dataset / "train.txt"), "--validation-files", str(dataset / "val.txt")]
        return ["-o", "out", "-d", str(dataset), *lists, *tiny.TINY_OPTIONS, *RUN, "--cpu", *words]

    def train_vocoder(self, dataset: Path, *words: str) -> list[str]:
        """Words after train.py that train HiFi-GAN."""
        lists = ["--training-files", str(dataset / "list.txt"), "--validation-files", str(dataset / "list.txt")]
        return ["-o", "out", "-d", str(dataset), *lists, *tiny_vocoder.TINY_OPTIONS, *RUN, *words]

    def train_recognizer(self, dataset: Path, config: Path, *words: str, training: str = "train.txt") -> list[str]:
        """Words after train.py that train Jasper."""
        lists = ["--training-files", str(dataset / training), "--validation-files", str(dataset / "val.txt")]
        own = (
            "-m Jasper --gradient-accumulation-steps 1 --lr-policy polynomial --warmup-epochs 0 --hold-epochs 0".split()
        )
        return [*own, "-o", "out", "-d", str(dataset), "--model-config", str(config), *lists, *RUN, *words]

    def extract(self, dataset: Path, *words: str) -> list[str]:
        """Words after extract_mels.py."""
        own = ["-d", str(dataset), "--wav-text-filelist", str(dataset / "list.txt"), "--num-workers", "1"]
        return [*own, *(words or ("--extract-mels",))]


def make_world(folder: Path) -> None:
    """Fill ``folder``."""
    tiny_voice.save_voice(folder / "voice.pt")
    tiny_voice.save_vocoder(folder / "vocoder.pt")
    networks = {"jasper": tiny_jasper.small_network().state_dict()}
    audio = tiny_jasper.SMALL.features.audio
    save_checkpoint(folder / "jasper.pt", Checkpoint("Jasper", to_plain(tiny_jasper.SMALL), audio, None, networks))
    torch.save(foreign.fastpitch_1_1(), folder / "fastpitch_1_1.pt")
    foreign.save_authors_hifigan(folder / "authors")
    tiny.make_corpus(folder / "features", count=6, val=2)
    corpus.make_corpus(folder / "wavs", 2, seconds=0.5)
    (folder / "wavs" / "train.txt").rename(folder / "wavs" / "list.txt")
    make_sung_corpus(folder / "sung")
    torch.save(torch.randn(16, 20), folder / "mel.pt")
    (folder / "audio.json").write_text(json.dumps(to_plain(tiny_voice.AUDIO)))
    (folder / "mels.tsv").write_text("output\tmel\na.wav\tmel.pt\n")
