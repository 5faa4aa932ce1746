"""Inference told nonsense, or stopped: one clear line, the right exit status, and every finished file whole."""

import dataclasses
import os
import signal
from pathlib import Path

import pytest
import soundfile
import tiny_voice
import torch
from kills import Forked, at_write, finish
from tiny_voice import save_vocoder

import inference
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig, to_plain
from common.errors import CheckpointError, InputError, OptionError
from common.files import write_json
from common.synthesis.output_folder import OutputFolder
from common.synthesis.utterances import SynthesisResult
from common.text.config import TextConfig
from common.torch_file import save_tensor
from fastpitch.model import build_networks

MODEL = tiny_voice.SMALL


def make_checkpoint(path: Path, **changes) -> Path:
    """A voice with random weights, 20 frames a symbol, no pitch statistics and no averaged weights."""
    network = build_networks(MODEL, AudioConfig(), TextConfig())["fastpitch"]
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(3.0)
        network.proj.bias.fill_(-4.0)
    checkpoint = Checkpoint("FastPitch", MODEL, AudioConfig(), TextConfig(), {"fastpitch": network.state_dict()})
    save_checkpoint(path, dataclasses.replace(checkpoint, **changes))
    return path


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("voice") / "voice.pt")


@pytest.fixture
def phrases(tmp_path: Path) -> Path:
    path = tmp_path / "phrases.tsv"
    path.write_text("a.wav|Go on.\nb.wav|Hm?\n")
    return path


def refused(kind: type[Exception], *argv: str | Path) -> str:
    """The one line that inference ends with."""
    with pytest.raises(InputError) as caught:
        inference.main([str(word) for word in argv])
    assert caught.type is kind
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_bad_line_is_named_before_anything_is_spoken_or_written(tmp_path, phrases, voice):
    phrases.write_text("a.wav|Go on.\nb.wav|Caf#.\n")
    options = ("--fastpitch", voice, "--unknown-symbols", "error")
    message = refused(InputError, "-i", phrases, "-o", tmp_path / "out", *options)
    assert f"{phrases}:2" in message and "'#' (U+0023)" in message
    assert not (tmp_path / "out").exists()


def test_a_list_without_a_place_for_its_sound_is_refused(phrases, voice):
    assert "give --output" in refused(OptionError, "-i", phrases, "--fastpitch", voice)


def test_checkpoints_that_cannot_speak_are_refused(tmp_path, phrases, voice):
    other = save_vocoder(tmp_path / "other.pt")
    message = refused(CheckpointError, "-i", phrases, "-o", tmp_path / "out", "--fastpitch", other)
    assert f"{other}: a checkpoint of HiFi-GAN, expected one of FastPitch" in message
    options = ("-i", phrases, "-o", tmp_path / "out", "--fastpitch", voice)
    assert f"{voice}: no EMA weights; leave out --ema" in refused(CheckpointError, *options, "--ema")
    assert "has no pitch statistics, needed for changes in Hz; give --pitch-mean-std-file" in refused(
        InputError, *options, "--pitch-transform-shift", "10"
    )
    assert "--speaker: speaker '3', expected a number from 0 to 0" in refused(InputError, *options, "--speaker", "3")


def test_a_list_that_does_not_fit_the_voice_is_refused(tmp_path, phrases, voice):
    save_tensor(tmp_path / "short.pt", torch.zeros(3))
    options = ("-i", phrases, "-o", tmp_path / "out", "--fastpitch", voice, "--dataset-path", tmp_path)
    for content, message in {
        "mel\toutput\na.pt\ta.wav\n": f"{phrases}:2: no text column",
        "text\tspeaker\nGo on.\t0\nGo on.\tbob\n": f"{phrases}:3: speaker 'bob', expected a number from 0 to 0",
        "text\tpitch\nGo on.\tshort.pt\n": f"short.pt: shape (3,), expected (6,), one value per symbol ({phrases}:2)",
    }.items():
        phrases.write_text(content)
        assert message in refused(InputError, *options)


def test_given_mels_that_cannot_be_used_are_refused(tmp_path, phrases):
    options = ("-i", phrases, "-o", tmp_path / "out", "--dataset-path", tmp_path)
    assert "no voice for text; give a checkpoint of FastPitch (--fastpitch)" in refused(OptionError, *options)
    phrases.write_text("mel\nmels/a.pt\n")
    assert f"mels/a.pt: no such file ({phrases}:2)" in refused(InputError, *options)
    save_tensor(tmp_path / "mels" / "a.pt", torch.zeros(40, 9))
    message = f"mels/a.pt: shape (40, 9), expected (80, frames) ({phrases}:2)"
    assert message in refused(InputError, *options)
    write_json(tmp_path / "mels" / "audio.json", to_plain(AudioConfig()))
    write_json(tmp_path / "other" / "audio.json", to_plain(AudioConfig(hop_length=200, mel_fmax=None)))
    phrases.write_text("mel\nmels/a.pt\nother/a.pt\n")
    message = refused(InputError, *options)
    assert "hop_length: 200 (" in message and "mel_fmax: None (" in message


def check_written(folder: Path, n_phrases: int) -> int:
    """How many wavs are there: those of the first phrases, each whole."""
    written = sorted(folder.glob("audio_*.wav"))
    assert [path.name for path in written] == [f"audio_{place:04d}.wav" for place in range(1, len(written) + 1)]
    assert len({soundfile.info(path).frames for path in written}) == 1
    assert soundfile.info(written[0]).frames > 20 * 256
    assert len(written) < n_phrases
    return len(written)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_after_the_phrase_that_is_being_spoken(tmp_path, voice, monkeypatch, capsys, stop):
    phrases, folder = tmp_path / "phrases.txt", tmp_path / "out"
    phrases.write_text("Hm?\n" * 20)
    add = OutputFolder.add

    def add_and_be_stopped(self: OutputFolder, spoken: SynthesisResult) -> str | None:
        if spoken.item.phrase.output.name == "audio_0003.wav":
            os.kill(os.getpid(), stop)
        return add(self, spoken)

    monkeypatch.setattr(OutputFolder, "add", add_and_be_stopped)
    argv = ["-i", str(phrases), "-o", str(folder), "--fastpitch", str(voice), "--griffin-lim-iters", "1"]
    with pytest.raises(SystemExit) as caught:
        inference.main(argv)
    assert caught.value.code == 128 + stop
    assert check_written(folder, 20) == 3
    assert f"3 of 20 phrases are in {folder}" in capsys.readouterr().out
    assert not list(folder.glob(".*"))


def test_a_kill_loses_no_finished_wav_and_leaves_no_half_one(tmp_path, voice):
    phrases, folder = tmp_path / "phrases.txt", tmp_path / "out"
    phrases.write_text("Somebody walked.\n" * 20)
    words = ("-i", phrases, "-o", folder, "--fastpitch", voice, "--griffin-lim-iters", "1")
    kill = at_write(signal.SIGKILL, folder / "audio_", count=4)
    assert finish(Forked("inference", *words, signal_at=kill))[0] == -signal.SIGKILL
    assert check_written(folder, 20) == 3
