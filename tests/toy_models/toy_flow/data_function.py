"""Lists of ``wavs/a.wav|text``."""

from torch import Tensor

from common.config import AudioConfig
from common.data.filelist import Filelists, paths_of, read_filelist
from common.data.text_mel import TextMelBatch, TextMelDataset
from common.text.config import TextConfig
from toy_flow.arg_parser import TrainingOptions


class FlowDataset(TextMelDataset):
    """Texts and the mels of their recordings."""

    def utterance(self, index: int, tokens: Tensor) -> TextMelBatch:
        return TextMelBatch.of_one(self.name(index), tokens, self.load_mel(index))


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: TextConfig, training: bool
) -> FlowDataset:
    """The utterances of lists."""
    entries = [line for path in paths_of(filelists) for line in read_filelist(path, columns=("wav", "text"))]
    return FlowDataset(options.dataset_path, entries, audio=audio, text=text)
