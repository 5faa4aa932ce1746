"""Tacotron 2's data: recordings or mels from the disk, batches as the published ones, and bad input in one line."""

from pathlib import Path

import pytest
import torch
from golden_files import group, read_case
from tiny import make_corpus
from tiny_tacotron2 import make_wavs

from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.data.batch import join_batches
from common.errors import InputError
from common.text.config import TextConfig
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Batch, Tacotron2Dataset

TEXT = TextConfig(cleaners=("english_cleaners",))


def read(folder: Path, *lines: str, mels: bool = False, audio: AudioConfig | None = None) -> Tacotron2Dataset:
    path = folder / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    options = TrainingOptions(dataset_path=folder, load_mel_from_disk=mels)
    return Tacotron2Dataset(options, path, audio=audio or AudioConfig(), text=TEXT)


@pytest.fixture
def wavs(tmp_path: Path) -> Path:
    return make_wavs(tmp_path)


@pytest.fixture
def mels(tmp_path: Path) -> Path:
    return make_corpus(tmp_path / "corpus", count=6)


def test_a_batch_holds_what_the_published_collation_gives(goldens: Path):
    about, tensors = read_case(goldens / "tacotron2", "tacotron2_collate")
    items = [
        Tacotron2Batch.of_one(f"u{index}", tensors[f"item.{index}.text"], tensors[f"item.{index}.mel"])
        for index in range(about["items"])
    ]
    batch, expected = join_batches(items), group(tensors, "output")
    order = torch.argsort(batch.token_lengths, descending=True)  # the original sorts by the text's length
    assert torch.equal(batch.tokens[order], expected["text_padded"])
    assert torch.equal(batch.token_lengths[order], expected["input_lengths"])
    assert torch.equal(batch.mels[order], expected["mel_padded"])
    assert torch.equal(batch.mel_lengths[order], expected["output_lengths"])
    assert torch.equal(batch.gate_targets[order], expected["gate_padded"])
    assert int(batch.n_frames) == int(expected["output_lengths"].sum())


def test_mels_of_recordings_are_computed_as_the_audio_says(wavs: Path):
    audio = AudioConfig(hop_length=200, win_length=800)
    dataset = read(wavs, "wavs/c1.wav|Hello you.", audio=audio)
    wave = load_wav(wavs / "wavs/c1.wav", sampling_rate=22050)
    item = dataset[0]
    torch.testing.assert_close(item.mels, MelExtractor(audio)(wave[None]))
    assert item.names[0] == f"wavs/c1.wav ({wavs / 'list.txt'}:1)"
    assert item.tokens.size(1) == len("hello you.")


@pytest.mark.parametrize("columns", ["", "|durations/u1.pt", "|durations/u1.pt|pitch_char/u1.pt"])
@pytest.mark.parametrize("speaker", ["", "|0"])
def test_mels_come_from_the_disk_whatever_else_the_list_has(mels: Path, columns: str, speaker: str):
    item = read(mels, f"mels/u1.pt{columns}|the rain{speaker}", mels=True)[0]
    assert torch.equal(item.mels[0], torch.load(mels / "mels" / "u1.pt"))
    assert item.tokens.size(1) == len("the rain")


@pytest.mark.parametrize(
    ("line", "from_disk", "message"),
    [
        ("wavs/none.wav|Hello.", False, r"none\.wav: no such file \(.*list\.txt:1\)"),
        ('wavs/c0.wav|Hello "you".', False, r"not in symbol set english_basic"),
        ("wavs/short.wav|Hello.", False, r"short\.wav: 300 samples, a mel needs at least 513 .*list\.txt:1"),
        ("mels/a.pt|Hello.", False, r"list\.txt: begins with mels/a\.pt; --load-mel-from-disk is for"),
        ("wavs/c0.wav|Hello.", True, r"list\.txt: begins with wavs/c0\.wav; --load-mel"),
        ("mels/none.pt|Hello.", True, r"none\.pt: no such file .*run extract_mels\.py first"),
        ("wavs/c0.wav", False, r"list\.txt:1: 1 columns, expected wav\|text"),
        ("wavs/c0.wav|", False, r"list\.txt:1: the text column is empty"),
    ],
)
def test_bad_lists_and_files_are_refused_before_training(wavs: Path, line: str, from_disk: bool, message: str):
    import soundfile

    soundfile.write(wavs / "wavs" / "short.wav", torch.zeros(300).numpy(), 22050)
    with pytest.raises(InputError, match=message):
        read(wavs, line, mels=from_disk)
