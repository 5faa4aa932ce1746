"""A generator's mels for fine-tuning: teacher-forced, a frame for each of the recording's, whole or refused by name."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from shell import ROOT, dry_run
from tiny_tacotron2 import TINY as TACOTRON2, tiny_network

import extract_mels
import inference
import train
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig, from_plain, to_plain
from common.errors import CheckpointError, InputError
from common.files import read_json, write_json
from common.logger import read_log
from common.registry import get_model
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.torch_file import load_tensor
from hifigan.config import ModelConfig as HifiganConfig
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Dataset
from tests.tiny import make_corpus, train_options

pytestmark = pytest.mark.usefixtures("no_samples")

HOP = AudioConfig().hop_length
TINY_VOCODER = (
    "--preset v3 --upsample-initial-channel 8 --resblock-kernel-sizes 3 --resblock-dilation-sizes 1,3 "
    "--mpd-periods 2 3 --mpd-channels 2 4 4 4 4 --msd-channels 2 2 4 4 4 4 4 --msd-groups 1 1 2 2 2 2 1 "
    "--segment-size 2048"
).split()


def add_recordings(folder: Path) -> Path:
    """A recording for each mel of a corpus, of as many frames (1 + T // hop)."""
    (folder / "wavs").mkdir()
    for path in (folder / "mels").glob("*.pt"):
        n_samples = (load_tensor(path).size(1) - 1) * HOP + 77
        wave = 0.1 * np.sin(np.arange(n_samples) * (0.02 + 0.001 * len(path.stem)))
        soundfile.write(folder / "wavs" / f"{path.stem}.wav", wave, 22050, subtype="PCM_16")
    return folder


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny corpus with recordings, and a tiny FastPitch trained on it for an epoch, with EMA weights."""
    folder = tmp_path_factory.mktemp("voice")
    corpus = add_recordings(make_corpus(folder / "corpus", count=12, val=4))
    assert train.main(train_options(corpus, folder / "run", "--epochs", "1", "--ema-decay", "0.5")) == 0
    return corpus, folder / "run" / "FastPitch_checkpoint_1.pt"


@pytest.fixture
def corpus(voice: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the corpus, to be spoilt."""
    subprocess.run(["cp", "-r", str(voice[0]), str(tmp_path / "corpus")], check=True)
    return tmp_path / "corpus"


def extract(voice: tuple[Path, Path], output: Path, *extra: str | Path, corpus: Path | None = None) -> int:
    folder, checkpoint = corpus or voice[0], voice[1]
    lists = [folder / "train.txt", folder / "val.txt"]
    words = ["--checkpoint", checkpoint, "-d", folder, "--filelist", *lists, "-o", output, "-bs", "3", *extra]
    return extract_mels.main([str(word) for word in words])


def mels_of(folder: Path) -> dict[str, torch.Tensor]:
    return {path.stem: load_tensor(path) for path in sorted(folder.glob("*.pt"))}


def slow_mels(voice: tuple[Path, Path], *, ema: bool) -> dict[str, torch.Tensor]:
    """Each clip by itself, from its own durations and pitch."""
    corpus, path = voice
    checkpoint, spec = load_checkpoint(path), get_model("FastPitch")
    config = checkpoint.config
    networks = spec.model.build_networks(config, checkpoint.audio, checkpoint.text)
    network = networks["fastpitch"].eval()
    network.load_state_dict((checkpoint.ema if ema else checkpoint.networks)["fastpitch"])
    mels = {}
    for name in ("train.txt", "val.txt"):
        dataset = spec.data_function.teacher_forced_dataset(
            corpus,
            corpus / name,
            config=config,
            audio=checkpoint.audio,
            text=checkpoint.text,
            unknown_symbols="error",
            networks=networks,
        )
        for item in map(dataset.__getitem__, range(len(dataset))):
            with torch.inference_mode():
                out = network.infer(
                    item.tokens, item.token_lengths, Controls(durations=item.durations, pitch=item.pitch)
                )
            mels[Path(item.names[0].split()[0]).stem] = out.mel[0]
    return mels


@pytest.mark.parametrize("ema", [False, True])
def test_each_clip_gets_the_mel_that_its_own_durations_and_pitch_give_whatever_is_in_its_batch(
    voice: tuple[Path, Path], tmp_path: Path, ema: bool
):
    assert extract(voice, tmp_path, *(() if ema else ("--no-ema",))) == 0
    made, wanted, others = mels_of(tmp_path), slow_mels(voice, ema=ema), slow_mels(voice, ema=not ema)
    assert max(float((wanted[name] - others[name]).abs().max()) for name in wanted) > 1e-3
    assert made.keys() == wanted.keys() and len(made) == 12
    for name, mel in made.items():
        assert mel.dtype == torch.float32
        n_samples = soundfile.info(voice[0] / "wavs" / f"{name}.wav").frames
        assert mel.shape == (80, 1 + n_samples // HOP)
        torch.testing.assert_close(mel, wanted[name], rtol=0, atol=2e-5)
    assert from_plain(AudioConfig, read_json(tmp_path / "audio.json"), where="") == AudioConfig()


def test_tacotron_2_makes_them_of_lists_of_mels_and_of_recordings(
    voice: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture
):
    corpus = voice[0]
    network = tiny_network(n_mel_channels=80, n_symbols=148)
    config = replace(TACOTRON2, n_mel_channels=80, n_symbols=148)
    checkpoint = tmp_path / "Tacotron2_checkpoint_1.pt"
    weights = {"tacotron2": network.state_dict()}
    save_checkpoint(checkpoint, Checkpoint("Tacotron2", config, AudioConfig(), TextConfig(), weights))
    lines = (corpus / "val.txt").read_text().splitlines()
    texts = {Path(line.split("|")[0]).stem: line.split("|")[3] for line in lines}
    for folder, suffix in (("mels", ".pt"), ("wavs", ".wav")):
        made = [f"{folder}/{name}{suffix}|{text}\n" for name, text in texts.items()]
        (tmp_path / f"{folder}.txt").write_text("".join(made))
        if folder == "wavs":
            (tmp_path / "wavs.txt").write_text("".join([*made, "wavs/mute.wav|a mute one\n"]))
            soundfile.write(corpus / "wavs" / "mute.wav", np.full(9000, np.nan), 22050, subtype="FLOAT")
        words = ["--checkpoint", checkpoint, "-d", corpus, "--filelist", tmp_path / f"{folder}.txt", "-bs", "3"]
        status = extract_mels.main([str(word) for word in (*words, "-o", tmp_path / folder)])
        assert status == (1 if folder == "wavs" else 0)
        options = TrainingOptions(dataset_path=corpus, load_mel_from_disk=folder == "mels")
        dataset = Tacotron2Dataset(options, tmp_path / f"{folder}.txt", audio=AudioConfig(), text=TextConfig())
        mels = mels_of(tmp_path / folder)
        assert mels.keys() == texts.keys()
        for item in [dataset[index] for index in range(len(texts))]:
            with torch.inference_mode():
                expected = network.teacher_forced(item).mel[0]
            name = Path(item.names[0].split()[0]).stem
            assert mels[name].size(1) == 1 + soundfile.info(corpus / "wavs" / f"{name}.wav").frames // HOP
            torch.testing.assert_close(mels[name], expected, rtol=0, atol=2e-5)
    (corpus / "wavs" / "mute.wav").unlink()
    assert "refused: 1 of 5 utterances" in capsys.readouterr().out


def test_a_recording_that_does_not_fit_is_refused_by_name_and_the_others_are_made(
    voice: tuple[Path, Path], corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    frames = load_tensor(corpus / "mels" / "u5.pt").size(1)
    soundfile.write(corpus / "wavs" / "u5.wav", np.zeros(frames * HOP + 1), 22050, subtype="PCM_16")
    (corpus / "wavs" / "u6.wav").unlink()
    torch.save(torch.tensor([1]), corpus / "durations" / "u7.pt")
    samples, _ = soundfile.read(corpus / "wavs" / "u8.wav")
    soundfile.write(corpus / "wavs" / "u8.wav", samples, 44100, subtype="PCM_16")
    assert extract(voice, tmp_path / "out", corpus=corpus) == 1
    assert sorted(mels_of(tmp_path / "out")) == sorted(f"u{i}" for i in range(12) if i not in (5, 6, 7, 8))
    out = capsys.readouterr().out
    assert "refused: 4 of 12 utterances" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("  mels/u")}
    assert f"(train.txt:2)  {frames} frames, but " in lines["mels/u5.pt"].replace(f"{corpus}/", "")
    assert f"u5.wav has {frames + 1}" in lines["mels/u5.pt"]
    assert "u6.wav: no such file" in lines["mels/u6.pt"]
    assert "durations/u7.pt: " in lines["mels/u7.pt"]
    assert "44100 Hz" in lines["mels/u8.pt"]


def test_resuming_keeps_whole_mels_and_makes_the_others_again(
    voice: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture
):
    assert extract(voice, tmp_path) == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("*.pt")}
    first, second = tmp_path / "u0.pt", tmp_path / "u10.pt"  # one of each list
    rest = before.keys() - {first, second}
    first.unlink()
    second.write_bytes(before[second][:100])
    times = {path: path.stat().st_mtime_ns for path in rest}
    assert extract(voice, tmp_path, "--resume") == 0
    assert {path: path.stat().st_mtime_ns for path in rest} == times
    torch.testing.assert_close(load_tensor(first), slow_mels(voice, ema=True)[first.stem], rtol=0, atol=2e-5)
    assert load_tensor(second).size(0) == 80
    assert capsys.readouterr().out.splitlines()[-1].split() == [f"{tmp_path}/", "2", "10"]


def test_mels_that_would_be_mixed_or_do_not_fit_are_refused(voice: tuple[Path, Path], corpus: Path, tmp_path: Path):
    assert extract(voice, tmp_path / "a") == 0
    with pytest.raises(InputError, match=r"other settings: ema: True \(there\), False \(options\)"):
        extract(voice, tmp_path / "a", "--resume", "--no-ema")
    checkpoint = replace(load_checkpoint(voice[1]), model="HiFi-GAN", config=HifiganConfig())
    save_checkpoint(tmp_path / "v.pt", checkpoint)
    with pytest.raises(CheckpointError, match="a checkpoint of HiFi-GAN, expected one of FastPitch or Tacotron2"):
        extract((voice[0], tmp_path / "v.pt"), tmp_path / "out")
    lines = (corpus / "val.txt").read_text()
    (corpus / "val.txt").write_text((corpus / "train.txt").read_text().splitlines()[2] + "\n")
    with pytest.raises(InputError, match=r"mels/u6\.pt .*val\.txt:1\): its mel would be .*u6\.pt, like .*train\.txt:3"):
        extract(voice, tmp_path / "b", corpus=corpus)
    (corpus / "val.txt").write_text(lines)
    write_json(corpus / "mels" / "audio.json", to_plain(replace(AudioConfig(), mel_fmax=7600.0)))
    with pytest.raises(InputError, match=r"mel_fmax: 7600\.0 \(the mels\), 8000\.0"):
        extract(voice, tmp_path / "out", corpus=corpus)
    assert not (tmp_path / "out").exists()


def script_options(script: str, **variables: str | Path) -> list[str]:
    """The options that a script of scripts/ gives to train.py."""
    (words,) = dry_run(script, NUM_GPUS="0", **variables)
    return words[words.index("train.py") + 1 :]


def test_a_vocoder_is_fine_tuned_on_a_voices_mels_and_then_speaks_for_it(voice: tuple[Path, Path], tmp_path: Path):
    corpus, checkpoint = voice
    for name in ("train", "val"):
        clips = [line.split("|")[0] for line in (corpus / f"{name}.txt").read_text().splitlines()]
        recordings = [clip.replace("mels/", "wavs/").replace(".pt", ".wav") for clip in clips]
        (tmp_path / f"{name}.txt").write_text("\n".join(recordings) + "\n")
    settings = {"DATASET_PATH": corpus, "TRAIN_FILELIST": tmp_path / "train.txt", "VAL_FILELIST": tmp_path / "val.txt"}
    settings |= {"BATCH_SIZE": "4", "CHECKPOINT_INTERVAL": "1"}
    base, tuned, mels = tmp_path / "base", tmp_path / "tuned", tmp_path / "mels"
    options = script_options("scripts/train_lj22khz.sh", OUTPUT_DIR=base, EPOCHS="1", **settings)
    assert train.main([*options, *TINY_VOCODER, "--framing", "aligned", "--peak", "0.95"]) == 0
    vocoder = base / "HiFi-GAN_checkpoint_1.pt"
    speaking = ["-i", str(ROOT / "phrases/devset10.tsv"), "-o", str(tmp_path / "out"), "--fastpitch", str(checkpoint)]
    with pytest.raises(InputError, match=r"framing: 'centered' .*aligned.*fine-tune the vocoder on these mels"):
        inference.main([*speaking, "--hifigan", str(vocoder)])

    assert extract(voice, mels) == 0
    settings |= {"HIFIGAN": vocoder, "INPUT_MELS_DIR": mels, "OUTPUT_DIR": tuned, "EPOCHS": "3"}
    assert train.main([*script_options("scripts/fine_tune.sh", **settings), *TINY_VOCODER]) == 0
    assert load_checkpoint(tuned / "HiFi-GAN_checkpoint_3.pt").audio == AudioConfig()
    settings["EPOCHS"] = "4"  # the same command goes on
    assert train.main([*script_options("scripts/fine_tune.sh", **settings), *TINY_VOCODER]) == 0
    records = [record for record in read_log(tuned / "nvlog.json") if record["type"] == "LOG"]
    rates = [record["data"]["train_lrate_generator"] for record in records if len(record["step"]) == 3]
    assert rates[0] == pytest.approx(3 * 3e-4 * 0.9998, rel=1e-3)
    assert len(rates) == 3 * 2, "epochs 2 to 4, of two updates each"

    tuned_vocoder = ["--hifigan", str(tuned / "HiFi-GAN_checkpoint_4.pt")]
    assert inference.main([*speaking, *tuned_vocoder, "--max-duration", "3", "--save-mels"]) == 0
    for path in (tmp_path / "out" / "mels").glob("*.pt"):
        samples, _ = soundfile.read(tmp_path / "out" / f"{path.stem}.wav")
        assert len(samples) == load_tensor(path).size(1) * HOP
        assert np.abs(samples).max() > 0
