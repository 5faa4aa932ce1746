"""Tacotron 2 from the command line: data, options, logs of attention, and errors in one line."""

from pathlib import Path

import pytest
import torch
from golden_files import group, read_case
from tiny import make_corpus
from tiny_tacotron2 import make_wavs
from training_setup import parsed, set_up

from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.data.batch import join_batches
from common.errors import InputError
from common.text.config import TextConfig
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Batch, Tacotron2Dataset
from tacotron2.model import ModelConfig
from tacotron2.training_setup import model_config

TEXT = TextConfig(cleaners=("english_cleaners",))


def read(folder: Path, *lines: str, mels: bool = False, audio: AudioConfig | None = None) -> Tacotron2Dataset:
    path = folder / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    options = TrainingOptions(dataset_path=folder, load_mel_from_disk=mels)
    return Tacotron2Dataset(options, path, audio=audio or AudioConfig(), text=TEXT)


@pytest.fixture
def wavs(tmp_path: Path) -> Path:
    return make_wavs(tmp_path)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "data", count=12)


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


@pytest.mark.parametrize(
    ("line", "from_disk", "message"),
    [
        ("wavs/none.wav|Hello.", False, r"none\.wav: no such file \(.*list\.txt:1\)"),
        ('wavs/c0.wav|Hello "you".', False, r"not in symbol set english_basic"),
        ("wavs/short.wav|Hello.", False, r"short\.wav: 300 samples, a mel needs at least 513 .*list\.txt:1"),
        ("mels/a.pt|Hello.", False, r"list\.txt: begins with mels/a\.pt; --load-mel-from-disk is only for"),
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


def parse(*extra: str):
    """Arguments and what training takes of them."""
    lists = ["--training-files", "a", "--validation-files", "b"]
    words = ["-m", "Tacotron2", "-o", "out", *lists, *extra]
    return parsed(words), set_up(*words)


def test_options_default_to_the_published_model_and_recipe():
    args, setup = parse()
    assert model_config(setup.options, AudioConfig(), setup.text) == ModelConfig()
    assert (args.optimizer, args.learning_rate, args.weight_decay) == ("adam", 1e-3, 1e-6)
    assert (args.grad_clip_thresh, args.epochs, args.epochs_per_checkpoint, args.batch_size) == (1.0, 1501, 50, 48)
    optimization = setup.optimization
    assert (optimization.betas, optimization.eps) == ((0.9, 0.999), 1e-8)
    assert setup.audio == AudioConfig()
    for extra, rate in (((), 1e-4), (("--amp",), 3e-4), (("--amp", "--anneal-factor", "0.1"), 1e-4)):
        assert parse(*extra)[1].optimization.schedule(1, 501) == pytest.approx(rate)
