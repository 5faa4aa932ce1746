"""HiFi-GAN trained by train.py: mels from the disk, fine-tuning, samples, and real speech."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import MODELS, Runs, logged
from tiny_vocoder import ALIGNED, train_options

import train
from common.audio.mel import MelExtractor
from common.audio.wav import load_wav
from common.checkpoints.checkpoint import save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig, to_plain
from hifigan.loss_function import HifiganObjective

EXAMPLES = HifiganObjective.examples
HIFIGAN = next(model for model in MODELS if model.name == "HiFi-GAN")


@pytest.fixture(scope="module", autouse=True)
def without_pictures() -> Iterator[None]:
    """Drawing takes longer than all else here; the test of the pictures takes it up again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HifiganObjective, "examples", lambda *_: [])
        yield


@pytest.fixture
def corpus(corpora: Path) -> Path:
    return corpora / "recordings"


@pytest.fixture
def runs(make_once, corpora: Path) -> Runs:
    return Runs(make_once, corpora, HIFIGAN)


def run_train(corpus: Path, output: Path, *extra: str) -> int:
    return train.main(train_options(corpus, output, *extra))


@pytest.fixture
def whole_run(runs: Runs, tmp_path: Path) -> Path:
    """The last checkpoint of a run of 3 epochs that nothing interrupts, as if its mels had been HiFi-GAN's own."""
    path = tmp_path / "whole" / "HiFi-GAN_checkpoint_3.pt"
    save_checkpoint(path, replace(load_checkpoint(HIFIGAN.checkpoint(runs.plain, 3)), audio=ALIGNED))
    return path


def write_mels(corpus: Path, folder: Path, audio: AudioConfig) -> Path:
    """The mels of all recordings, with their description."""
    extract = MelExtractor(audio)
    folder.mkdir()
    for path in sorted((corpus / "wavs").glob("*.wav")):
        mel = extract(load_wav(path, sampling_rate=audio.sampling_rate)[None])[0]
        torch.save(mel.clone(), folder / f"{path.stem}.pt")
    (folder / "audio.json").write_text(json.dumps(to_plain(audio)))
    return folder


@pytest.mark.parametrize(
    ("audio", "words"), [(ALIGNED, ("--framing", "aligned", "--peak", "0.95")), (AudioConfig(), ())]
)
def test_training_on_mels_from_the_disk_equals_training_on_the_fly(
    audio: AudioConfig, words: tuple[str, ...], corpus: Path, tmp_path: Path
):
    """Not by the samples of a segment, whose edges differ, but by the whole recordings of validation."""
    mels = write_mels(corpus, tmp_path / "mels", audio)
    options = ("--epochs", "1", "--validation-interval", "1", "-lr", "1e-12", "--weight-decay", "0")
    assert run_train(corpus, tmp_path / "disk", *options, "--input-mels-dir", str(mels)) == 0
    assert run_train(corpus, tmp_path / "fly", *options, *words) == 0
    on_disk, on_the_fly = (logged(tmp_path / name, "val_mel_loss") for name in ("disk", "fly"))
    assert on_disk == pytest.approx(on_the_fly, rel=1e-3)
    for name in ("disk", "fly"):
        assert load_checkpoint(tmp_path / name / "HiFi-GAN_checkpoint_1.pt").audio == audio


@pytest.fixture
def centered_mels(corpus: Path, tmp_path: Path) -> Path:
    """Mels as a generator makes them: centered, of recordings as they are."""
    return write_mels(corpus, tmp_path / "centered", AudioConfig())


def test_fine_tuning_resumes_from_a_trained_vocoder(
    corpus: Path, whole_run: Path, centered_mels: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """Its epochs and its schedule continue; framing and peak become those of the mels."""
    words = ("--fine_tuning", "--input_mels_dir", str(centered_mels), "--checkpoint-path", str(whole_run))
    assert run_train(corpus, tmp_path, *words, "--fine_tune_lr_factor", "3", "--epochs", "4") == 0
    assert "HiFi-GAN_checkpoint_3.pt: epoch 3, iteration 12" in capsys.readouterr().out
    checkpoint = load_checkpoint(tmp_path / "HiFi-GAN_checkpoint_4.pt")
    assert checkpoint.training["iteration"] == 16
    assert checkpoint.audio == AudioConfig()
    rates = logged(tmp_path, "train_lrate_generator")
    assert rates == pytest.approx([9e-4 * 0.9998**3] * 4, rel=1e-9)
    assert run_train(corpus, tmp_path, *words[:3], "--resume", "--epochs", "5") == 0


# A few channels, segments of a fifth of a second, and a rate that falls soon: what a few hundred updates make of them.
_REAL = (
    "-m HiFi-GAN --preset v3 --upsample-initial-channel 32 --mpd-periods 2 5 --mpd-channels 4 8 8 8 8 "
    "--msd-channels 4 4 8 8 8 8 8 --msd-groups 1 1 2 2 2 2 1 --segment-size 4096 -bs 4 --adam-betas 0.5 0.9 "
    "--validation-interval 99"
).split()


@pytest.mark.parametrize(  # epochs of 19 updates
    ("n_epochs", "lr_decay", "left"), [(5, 0.7, 0.75), pytest.param(20, 0.88, 0.5, marks=pytest.mark.slow)]
)
def test_a_small_vocoder_learns_real_speech_and_its_discriminators_stay_awake(
    n_epochs: int, lr_decay: float, left: float, shared_data: Path, tmp_path: Path
):
    """80 clips: the validation mel loss falls to a part of the untrained network's."""
    folder = shared_data / "LJSpeech-sample"
    clips = [f"wavs/{path.name}\n" for path in sorted((folder / "wavs").glob("*.wav"))]
    assert len(clips) == 80
    lists = {"val": clips[::20], "train": [clip for index, clip in enumerate(clips) if index % 20], "few": clips[1:5]}
    for name, lines in lists.items():
        (tmp_path / f"{name}.txt").write_text("".join(lines))

    def run(name: str, training: str, *extra: str) -> Path:
        words = [*_REAL, "-d", str(folder), "--validation-files", str(tmp_path / "val.txt"), "-o", str(tmp_path / name)]
        assert train.main([*words, "--training-files", str(tmp_path / f"{training}.txt"), *extra]) == 0
        return tmp_path / name

    untrained = run("untrained", "few", "--epochs", "1", "-lr", "1e-12")  # one update that changes nothing
    trained = run("trained", "train", "--epochs", str(n_epochs), "-lr", "5e-3", "--lr-decay", str(lr_decay))
    before, after = (logged(path, "val_mel_loss")[0] for path in (untrained, trained))
    assert after < left * before

    # Of five discriminators that cannot tell, each loses 0.5 and makes the generator lose 0.25; of five that always
    # can, 0 and 1.
    of_discriminators = logged(trained, "avg_train_d_loss")
    of_generator = logged(trained, "avg_train_adversarial_loss")
    assert len(of_discriminators) == n_epochs
    assert all(1.0 < loss < 3.0 for loss in of_discriminators[1:])
    assert all(1.0 < loss < 3.5 for loss in of_generator[1:])
