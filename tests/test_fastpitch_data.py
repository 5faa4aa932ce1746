"""FastPitch's data and options: batches as on the disk, and a clear line for everything that does not fit."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_voice import SMALL as TINY
from training_setup import set_up, values

from common.audio.pitch import PitchStatistics
from common.cli import ArgumentParser
from common.config import AudioConfig, to_plain
from common.errors import InputError
from common.files import write_json, write_text
from common.options import add_options, read_options
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.text.symbols import canonical_phone
from common.torch_file import save_tensor
from fastpitch.arg_parser import InferenceOptions, TrainingOptions
from fastpitch.config import ModelConfig
from fastpitch.custom_transforms import pitch_transform_custom
from fastpitch.data_function import FastPitchDataset, read_list, with_labels
from fastpitch.fine_tuning import set_up_networks
from fastpitch.model import FastPitch
from fastpitch.prosody import PitchTransform

AUDIO = AudioConfig(n_mels=4)
TEXTS = {"a": "Printing", "b": "in the", "c": "a"}  # plain letters: one symbol each
N_FRAMES = {"a": 21, "b": 30, "c": 2}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A data set of three utterances with its list."""
    generator = torch.Generator().manual_seed(0)
    lines = []
    for name, text in TEXTS.items():
        frames = torch.full((len(text),), N_FRAMES[name] // len(text))
        frames[0] += N_FRAMES[name] - frames.sum()
        save_tensor(tmp_path / f"mels/{name}.pt", torch.randn(4, N_FRAMES[name], generator=generator))
        save_tensor(tmp_path / f"durations/{name}.pt", frames)
        # the original's extract_mels.py writes float64
        save_tensor(tmp_path / f"pitch_char/{name}.pt", torch.randn(len(text), generator=generator).double())
        lines.append(f"mels/{name}.pt|durations/{name}.pt|pitch_char/{name}.pt|{text}")
    write_text(tmp_path / "list.txt", "\n".join(lines) + "\n")
    return tmp_path


def dataset(corpus: Path, *, n_speakers: int = 1, text: TextConfig | None = None) -> FastPitchDataset:
    entries = read_list(corpus, corpus / "list.txt", learned_alignment=False)
    options = TrainingOptions(architecture=ModelConfig(n_speakers=n_speakers), dataset_path=corpus)
    return FastPitchDataset(options, entries, audio=AUDIO, text=text or TextConfig())


def refused(corpus: Path, index: int = 0, **options) -> str:
    with pytest.raises(InputError) as caught:
        dataset(corpus, **options)[index]
    return str(caught.value).replace(str(corpus) + "/", "")


def test_a_list_of_recordings_is_read_as_that_of_their_features(corpus: Path):
    lines = (corpus / "list.txt").read_text().splitlines()
    recordings = [f"wavs/{Path(line.split('|')[0]).stem}.wav|{line.split('|')[3]}\n" for line in lines]
    write_text(corpus / "recordings.txt", "".join(recordings))
    of_features, of_recordings = (
        read_list(corpus, corpus / name, learned_alignment=False) for name in ("list.txt", "recordings.txt")
    )
    assert [entry.fields for entry in of_recordings] == [entry.fields for entry in of_features]
    (corpus / "durations/b.pt").unlink()
    (corpus / "pitch_char/b.pt").unlink()
    with pytest.raises(InputError) as refused:
        read_list(corpus, corpus / "recordings.txt", learned_alignment=False)
    message = f"{corpus}/recordings.txt:2: wavs/b.wav has no durations/b.pt, pitch_char/b.pt in {corpus}; make them"
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("symbol_set", ["ipa", "ipa_marked", "espeak", "arpabet"])
def test_a_label_of_an_aligner_is_one_symbol(corpus: Path, symbol_set: str):
    labels = "sil tʃ tʰ aj ɚ n̩ aː pf"  # as many as TEXTS["a"] has letters
    (corpus / "list.txt").write_text(f"mels/a.pt|durations/a.pt|pitch_char/a.pt|{labels}\n", encoding="utf-8")
    entries = read_list(corpus, corpus / "list.txt", learned_alignment=False)
    base = TextConfig("phone", symbol_set, ())
    text = with_labels(base, entries, corpus)
    assert dataset(corpus, text=text)[0].durations.shape == (1, 8)
    assert with_labels(text, entries, corpus) == text and set(text.labels) <= {*canonical_phone(labels).split()}
    save_tensor(corpus / "durations/a.pt", torch.ones(12))  # of letters
    assert with_labels(base, entries, corpus) == base
    assert not with_labels(replace(base, g2p="espeak", symbol_set="ipa"), entries, corpus).labels


def test_a_batch_holds_what_is_on_the_disk_in_the_order_asked_for(corpus: Path):
    data = dataset(corpus)
    batch = data.collate([data[2], data[0], data[1]])
    assert batch.token_lengths.tolist() == [1, 8, 6]
    assert batch.mel_lengths.tolist() == batch.durations.sum(1).tolist() == [2, 21, 30]
    assert batch.n_frames == 53
    assert batch.speakers is None
    assert batch.names[1] == f"mels/a.pt ({corpus}/list.txt:1)"
    for row, name in enumerate("cab"):
        n_frames, n_tokens = N_FRAMES[name], len(TEXTS[name])
        assert torch.equal(batch.mels[row, :, :n_frames], torch.load(corpus / f"mels/{name}.pt"))
        assert not batch.mels[row, :, n_frames:].any()
        assert torch.equal(batch.durations[row, :n_tokens], torch.load(corpus / f"durations/{name}.pt"))
        assert torch.equal(batch.pitch[row, :n_tokens], torch.load(corpus / f"pitch_char/{name}.pt").float())
        assert (batch.tokens[row, :n_tokens] > 0).all()
        for padded in (batch.tokens, batch.durations, batch.pitch):
            assert not padded[row, n_tokens:].any()
    assert (batch.mels.dtype, batch.pitch.dtype, batch.tokens.dtype) == (torch.float32, torch.float32, torch.int64)


def test_words_that_are_drawn_to_be_phones_do_not_fit_durations(corpus: Path):
    text = TextConfig(symbol_set="english_expanded", p_arpabet=0.5)
    assert refused(corpus, text=text).startswith("--p-arpabet 0.5: durations belong to fixed symbols")
    assert dataset(corpus).draw(0, epoch=3).tokens.tolist() == dataset(corpus)[0].tokens.tolist()


def _add_speakers(corpus: Path, *speakers: str) -> None:
    lines = (corpus / "list.txt").read_text().splitlines()
    write_text(corpus / "list.txt", "\n".join(f"{line}|{speaker}" for line, speaker in zip(lines, speakers)))


def test_several_speakers_have_a_column_of_their_numbers(corpus: Path):
    _add_speakers(corpus, "2", "0", "1")
    data = dataset(corpus, n_speakers=3)
    assert data.collate([data[0], data[1], data[2]]).speakers.tolist() == [2, 0, 1]
    assert dataset(corpus)[0].speakers is None  # a model of one voice needs no numbers


def test_speakers_that_the_model_does_not_have_are_refused(corpus: Path):
    assert refused(corpus, n_speakers=3) == "list.txt:1: no speaker column; expected mel|durations|pitch|text|speaker"
    _add_speakers(corpus, "2", "3", "-1")
    assert refused(corpus, n_speakers=3) == "list.txt:2: speaker '3', expected a number from 0 to 2"


@pytest.mark.parametrize(
    ("feature", "tensor", "message"),
    [
        ("mels", torch.zeros(5, 21), "mels/a.pt: shape (5, 21), expected (4, frames)"),
        ("mels", torch.zeros(4, 22), "durations/a.pt: 21 frames in total, but mels/a.pt has 22"),
        ("durations", torch.tensor([21]), "durations/a.pt: shape (1,), expected (8,), "),
        ("pitch_char", torch.zeros(9), "pitch_char/a.pt: shape (9,), expected (8,), "),
    ],
)
def test_features_that_do_not_fit_are_named_with_file_and_line(corpus: Path, feature: str, tensor, message: str):
    save_tensor(corpus / feature / "a.pt", tensor)
    assert (line := refused(corpus)).startswith(message) and line.endswith(" (list.txt:1)")


def test_the_output_of_a_new_network_can_start_from_the_mean_mel_of_the_training_list(corpus: Path):
    data = dataset(corpus)
    small = ModelConfig(n_mel_channels=4, symbols_embedding_dim=8, in_fft_output_size=8, out_fft_output_size=8)
    voice, untouched = FastPitch(small), FastPitch(small)
    before = untouched.proj.bias.clone()
    write_json(corpus / "pitch.json", {"mean": 150.5, "std": 40.25})
    options = TrainingOptions(mean_mel_bias=True, architecture=small, pitch_mean_std_file=corpus / "pitch.json")
    given = {"text": None, "training_set": data, "validation_set": data, "gather": None}
    set_up_networks({"fastpitch": voice}, options, **given, new=True)
    set_up_networks({"fastpitch": untouched}, options, **given, new=False)
    frames = torch.cat([data[index].mels[0] for index in range(3)], dim=1)
    torch.testing.assert_close(voice.proj.bias.detach(), frames.mean(1))
    assert torch.equal(untouched.proj.bias, before)


MEAN, STD = torch.tensor(200.0), torch.tensor(50.0)


def words(folder: Path, *argv: str) -> list[str]:
    """A command line of training on a list of one line in ``folder``."""
    (folder / "train.txt").write_text("mels/a.pt|durations/a.pt|pitch_char/a.pt|Words.\n")
    lists = ["--training-files", f"{folder}/train.txt", "--validation-files", f"{folder}/train.txt"]
    return ["-m", "FastPitch", "-o", "out", "-d", str(folder), *lists, *argv]


def test_without_options_the_published_model_is_trained_by_the_published_recipe(goldens: Path, tmp_path: Path):
    published = json.loads((goldens / "fastpitch_1_0/full_size_keys.json").read_text())["config"]
    config = to_plain(set_up(*words(tmp_path)).options.architecture)
    assert {key: config[key] for key in published} == published
    assert config["mask_convolutions"] is True
    args = values(*words(tmp_path))
    recipe = {"epochs": 1500, "batch_size": 32, "optimizer": "lamb", "learning_rate": 0.1, "weight_decay": 1e-6}
    recipe |= {"grad_clip_thresh": 1000.0, "epochs_per_checkpoint": 50, "warmup_steps": 1000, "ema_decay": 0.0}
    assert {key: args[key] for key in recipe} == recipe


def test_pitch_statistics_travel_with_the_model(tmp_path: Path):
    network = FastPitch(TINY)

    def initialize(*argv: str) -> tuple[float, float]:
        setup = set_up(*words(tmp_path, *argv))
        given = {"text": setup.text, "training_set": None, "validation_set": None, "gather": None}
        assert set_up_networks({"fastpitch": network}, setup.options, **given) == []
        return network.pitch_mean.item(), network.pitch_std.item()

    with pytest.raises(InputError, match=r"pitch_char_stats__train\.json: no such file.*--pitch-mean-std-file"):
        initialize()
    write_json(tmp_path / "pitch_char_stats__train.json", {"mean": 150.5, "std": 40.25})
    assert initialize() == (150.5, 40.25)
    write_json(tmp_path / "other.json", {"mean": 99.0, "std": 10.0})
    assert initialize("--pitch-mean-std-file", str(tmp_path / "other.json")) == (99.0, 10.0)


def transformed(transform: PitchTransform, *, std: torch.Tensor = STD) -> list[float]:
    pitch = torch.tensor([[1.0, -0.5, 0.0], [2.0, 9.0, 9.0]])
    out = transform(pitch, torch.tensor([3, 1]), MEAN, std)
    assert not out[1, 1:].any()  # padding stays silent
    return [*out[0].tolist(), out[1, 0].item()]


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (PitchTransform(), [1.0, -0.5, 0.0, 2.0]),
        (PitchTransform(flatten=True), [0.0, 0.0, 0.0, 0.0]),
        (PitchTransform(invert=True), [-1.0, 0.5, 0.0, -2.0]),
        (PitchTransform(amplify=1.5), [1.5, -0.75, 0.0, 3.0]),
        (PitchTransform(amplify=0.0), [0.0, 0.0, 0.0, 0.0]),
        (PitchTransform(shift=25.0), [1.5, 0.0, 0.5, 2.5]),
        (PitchTransform(flatten=True, shift=-50.0), [-1.0, -1.0, -1.0, -1.0]),
        (PitchTransform(invert=True, amplify=2.0, shift=25.0), [-1.5, 1.5, 0.5, -3.5]),
        # in Hz 250, 175, 200 rise from half to 1.17 times, and 300 alone is halved
        (PitchTransform(custom=pitch_transform_custom, invert=True), [-1.5, -1.0833334, 0.6666667, -1.0]),
    ],
)
def test_pitch_transforms_apply_in_order_to_valid_tokens(transform: PitchTransform, expected: list[float]):
    assert transformed(transform) == pytest.approx(expected, abs=1e-5)


def speaking(*argv: str, network: FastPitch | None = None) -> Controls:
    parser = ArgumentParser()
    add_options(parser, InferenceOptions)
    options = read_options(parser.parse_args(list(argv)), InferenceOptions)
    return (network or FastPitch(TINY)).controls(options, where=Path("voice.pt"))


def test_inference_options_become_controls(tmp_path: Path):
    assert speaking() == Controls()
    assert speaking("--pace", "1.5", "--max-duration", "20") == Controls(pace=1.5, max_duration=20.0)
    transforms = speaking("--pitch-transform-amplify", "0", "--pitch-transform-invert")
    assert transforms.pitch_transform == PitchTransform(amplify=0.0, invert=True)
    network = FastPitch(TINY)
    write_json(tmp_path / "stats.json", {"mean": 99.0, "std": 10.0})
    given = ("--pitch-mean-std-file", str(tmp_path / "stats.json"))
    example = speaking("--pitch-transform-custom", *given, network=network).pitch_transform
    assert transformed(example) == transformed(PitchTransform(custom=pitch_transform_custom))
    assert (network.pitch_mean.item(), network.pitch_std.item()) == (99.0, 10.0)


def test_transforms_that_cannot_be_applied_are_refused():
    message = r"^voice\.pt: has no pitch statistics.* --pitch-mean-std-file$"
    for option in (["--pitch-transform-shift", "10"], ["--pitch-transform-custom"]):
        with pytest.raises(InputError, match=message):
            speaking(*option)


def test_a_custom_transform_is_a_function_in_a_file_of_the_users(tmp_path: Path):
    given, voice = tmp_path / "my pitch.py", FastPitch(TINY)
    voice.set_pitch_statistics(PitchStatistics(mean=200.0, std=50.0))
    given.write_text("def pitch_transform_custom(pitch, pitch_lens):\n    pitch += 10\n    return pitch * 2\n")
    transform = speaking("--pitch-transform-custom", str(given), network=voice).pitch_transform
    assert transformed(transform) == pytest.approx([value * 2 + 220 / 50 for value in (1.0, -0.5, 0.0)] + [8.4])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "{path}: no such file"),
        ("pitch_transform = abs\n", "{path}: no function {name}; see the example in fastpitch/custom_"),
        ("{head}return p[:, 1:]\n", "{path}: {name} returned a Tensor (2, 2) of float32, expected finite values in a"),
        ("{head}return p.log() * 1e400\n", "{path}: {name} returned a Tensor (2, 3) of float32, expected finite"),
    ],
)
def test_a_custom_transform_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, content: str, message: str):
    path, voice, name = tmp_path / "mine.py", FastPitch(TINY), "pitch_transform_custom"
    voice.set_pitch_statistics(PitchStatistics(mean=200.0, std=50.0))
    if content is not None:
        path.write_text(content.replace("{head}", "def pitch_transform_custom(p, lengths):\n    "))
    with pytest.raises(InputError) as caught:
        transformed(speaking("--pitch-transform-custom", str(path), network=voice).pitch_transform)
    assert str(caught.value).startswith(message.format(path=path, name=name)) and "\n" not in str(caught.value)
