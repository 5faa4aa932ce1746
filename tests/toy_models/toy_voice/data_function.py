"""Texts and the mean mel frames of their recordings."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.data.batch import Batch
from common.data.filelist import Filelists, paths_of, read_filelist
from common.data.text_mel import Transcripts
from common.text.config import TextConfig
from toy_voice.options import TrainingOptions


@dataclass(frozen=True)
class ToyBatch(Batch):
    """Texts and mean frames."""

    tokens: Tensor  # (B, L)
    lengths: Tensor  # (B,)
    means: Tensor  # (B, n_mels)

    @property
    def frame_lengths(self) -> Tensor:
        return self.lengths


class ToyDataset:
    """A list of ``wavs/a.wav|text``."""

    def __init__(self, options: TrainingOptions, filelists: Filelists, audio: AudioConfig, text: TextConfig) -> None:
        self._entries = [line for path in paths_of(filelists) for line in read_filelist(path, columns=("wav", "text"))]
        self._texts = Transcripts(self._entries, text, unknown_symbols=options.unknown_symbols)
        self._folder, self._audio = options.dataset_path, audio
        self._mel = MelExtractor(audio)
        self.lengths = [len(self._texts[index]) for index in range(len(self._entries))]

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> tuple[str, Tensor, Tensor]:
        entry = self._entries[index]
        path = self._folder / entry.fields["wav"]
        wave = load_wav(path, sampling_rate=self._audio.sampling_rate, where=entry.where)
        return f"{path} ({entry.where})", torch.tensor(self._texts[index]), self._mel(wave[None])[0].mean(1)

    def draw(self, index: int, *, epoch: int) -> tuple[str, Tensor, Tensor]:
        return self[index]

    def collate(self, items: list[tuple[str, Tensor, Tensor]]) -> ToyBatch:
        names, tokens, means = zip(*items)
        lengths = torch.tensor([len(one) for one in tokens])
        return ToyBatch(names, pad_sequence(list(tokens), batch_first=True), lengths, torch.stack(means))


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: TextConfig, training: bool
) -> ToyDataset:
    """The list's utterances."""
    return ToyDataset(options, filelists, audio, text)
