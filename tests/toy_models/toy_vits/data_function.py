"""Lists of ``wavs/a.wav|text``."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from common.config import AudioConfig
from common.data.filelist import Filelists, paths_of, read_filelist
from common.data.text_mel import TextMelBatch, TextMelDataset
from common.text.config import TextConfig
from toy_vits.arg_parser import TrainingOptions


@dataclass(frozen=True)
class VitsBatch(TextMelBatch):
    """Texts and recordings with their mels."""

    waves: Tensor  # (B, F * hop)


class VitsDataset(TextMelDataset):
    """Texts and recordings, zero-padded to whole frames."""

    def utterance(self, index: int, tokens: Tensor) -> VitsBatch:
        wave = self.load_wave(index)
        mel = self.load_mel(index, wave)
        padded = F.pad(wave, (0, mel.size(1) * self.extractor.config.hop_length - len(wave)))
        return VitsBatch.of_one(self.name(index), tokens, mel, waves=padded[None])


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: TextConfig, training: bool
) -> VitsDataset:
    """The utterances of lists."""
    entries = [line for path in paths_of(filelists) for line in read_filelist(path, columns=("wav", "text"))]
    return VitsDataset(options.dataset_path, entries, audio=audio, text=text)
