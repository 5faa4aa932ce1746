"""``inference.py --jasper`` and `Recognizer` transcribe recordings, also with exported files."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from sung_words import RATE
from test_export import SUFFIXES
from tiny_voice import save_vocoder
from torch import Tensor

import inference
from common.audio.wav import load_wav, resample
from common.errors import CheckpointError, InputError, OptionError
from common.logger import read_log
from common.precision import Precision
from common.recognition.recognizer import Recognizer, SpeechItem, load_recognizer
from common.registry import get_model
from jasper.arg_parser import InferenceOptions
from jasper.model import JasperOutput
from scripts import checkpoint_tools


@pytest.fixture
def transcribe(sung_run: Path, capsys: pytest.CaptureFixture):
    """Runs the command on an input; the lines that it prints."""
    checkpoint = sung_run / "Jasper_checkpoint_40.pt"

    def run(source: str | Path, *extra: str) -> list[str]:
        folder = sung_run / "corpus"
        words = ["--jasper", str(checkpoint), "-i", str(folder / source), "-d", str(folder), *extra]
        assert inference.main(words) == 0
        return capsys.readouterr().out.splitlines()

    capsys.readouterr()
    return run


def test_a_list_is_transcribed_in_its_order_with_its_error_rates(transcribe, sung_run: Path):
    lines = transcribe("val.txt")
    folder = sung_run / "corpus"
    assert lines[:6] == [f"{folder}/{line}" for line in (folder / "val.txt").read_text().splitlines()]
    assert lines[6] == "WER 0.00 %, CER 0.00 % (6 utterances, 6 words, 12 characters)"
    assert re.fullmatch(r"[\d.]+ sequences/s, RTF [\d.]+ \(work / speech\), [\d.]+ x real time", lines[7])
    assert len(lines) == 8
    assert transcribe("train.txt", "--batch-size", "1")[-2].startswith("latency of a batch ")  # of many


def test_batches_and_precision_do_not_change_transcripts(transcribe):
    first = transcribe("train.txt", "--batch-size", "24")[:24]
    assert first == transcribe("train.txt", "--batch-size", "1")[:24]
    assert first == transcribe("train.txt", "--amp", "--amp-dtype", "bfloat16")[:24]


def test_folders_files_and_several_inputs_are_transcribed(transcribe, sung_run: Path):
    corpus = sung_run / "corpus"
    assert transcribe("0.wav")[0] == f"{corpus}/0.wav|do"
    folder = transcribe("", "--max-utterances", "4")
    assert len(folder) == 5 and "WER" not in folder[-1]
    assert [line.partition("|")[0] for line in folder[:2]] == [f"{corpus}/0.wav", f"{corpus}/1.wav"]
    assert len(transcribe("0.wav", "-i", str(corpus / "1.wav"), str(corpus / "val.txt"), "--quiet")) == 2


def test_transcripts_are_saved_as_json(transcribe, sung_run: Path, tmp_path: Path):
    corpus = sung_run / "corpus"
    (tmp_path / "list.txt").write_text("0.wav|Do!\n1.wav|re do\n")
    transcribe(tmp_path / "list.txt", "-o", str(tmp_path / "out.json"))
    saved = json.loads((tmp_path / "out.json").read_text())
    first, second = saved["utterances"]
    assert (first["wav"], first["text"], first["reference"], first["wer"]) == (f"{corpus}/0.wav", "do", "do", 0.0)
    assert (second["text"], second["reference"], second["wer"]) == ("re", "re do", 0.5)
    assert saved["figures"]["words"] == 3 and saved["figures"]["wer"] == pytest.approx(1 / 3)


def test_the_originals_command_line_transcribes_writes_predictions_and_logs(transcribe, sung_run: Path, tmp_path: Path):
    predictions, config = tmp_path / "predictions.txt", str(sung_run / "corpus/config.yaml")
    words = ["--cpu", "--steps", "0", "--model_config", config, "--output_dir", str(tmp_path / "results")]
    lines = transcribe("val.txt", *words, "--save_predictions", str(predictions))
    assert predictions.read_text().splitlines() == [line.rpartition("|")[2] for line in lines[:6]]
    assert "wer" in [one["data"] for one in read_log(tmp_path / "results/nvlog_infer.json") if one["type"] == "LOG"][-1]
    assert transcribe("val.txt", "--steps", "3")[0].startswith("latency of a batch ")


def test_a_yaml_file_says_how_recordings_are_read(sung_run: Path, tmp_path: Path):
    config = yaml.safe_load((sung_run / "corpus/config.yaml").read_text())
    given = str(tmp_path / "given.yaml")
    reading = config["input_val"]["audio_dataset"]
    for trims in (True, False):
        reading["trim_silence"] = reading["normalize_transcripts"] = trims
        Path(given).write_text(yaml.safe_dump(config))
        recognizer = load_recognizer(sung_run / "Jasper_checkpoint_40.pt", options=InferenceOptions(Path(given)))
        found = recognizer.settings
        assert (found.trim_silence, found.normalize_transcripts) == (trims, trims)


def test_logits_are_saved_in_the_lists_order_and_decode_to_the_transcripts(transcribe, sung_run: Path, tmp_path: Path):
    lines = transcribe("val.txt", "--save-logits", str(tmp_path / "logits.pt"), "-bs", "2")
    network = load_recognizer(sung_run / "Jasper_checkpoint_40.pt").network
    saved = torch.load(tmp_path / "logits.pt", weights_only=True)
    assert len(saved) == 6 and len({len(values) for values in saved}) > 1, "without padding"
    for values, line in zip(saved, lines):
        assert torch.allclose(values.exp().sum(1), torch.ones(len(values)))
        assert network.decode(JasperOutput(values[None], torch.tensor([len(values)]))) == [line.rpartition("|")[2]]


def test_measuring_alone_runs_as_many_batches_as_asked(transcribe, tmp_path: Path):
    log = tmp_path / "log.json"
    options = ["--iterations", "5", "--warmup-steps", "2", "-bs", "2", "--max-duration", "0.5", "--pad-to-max-duration"]
    lines = transcribe("val.txt", *options, "--log-file", str(log))
    assert len(lines) == 2 and lines[0].startswith("latency of a batch ")
    figures = [record["data"] for record in read_log(log) if record["type"] == "LOG"][-1]
    assert set(figures) == {f"{name}_latency" for name in ("avg", "90%", "95%", "99%")} | {"avg_sequences/s", "avg_RTF"}


def made_up_speech(lengths: list[int]) -> list[SpeechItem]:
    """Recordings of so many samples that hold their number."""
    return [
        SpeechItem(f"{index}.wav", length / 100, None, partial(torch.full, (length,), float(index)))
        for index, length in enumerate(lengths)
    ]


def made_up_recognizer(transcribe: Callable[[Tensor, Tensor], list[str]], **settings: Any) -> Recognizer:
    network = SimpleNamespace(transcribe=lambda waves, lengths, options: (transcribe(waves, lengths), list(waves)))
    return Recognizer(network, sampling_rate=RATE, settings=None, precision=Precision(), **settings)


def test_waves_of_any_rate_and_files_are_transcribed_alike(sung_run: Path):
    recognizer = load_recognizer(sung_run / "Jasper_checkpoint_40.pt")
    paths = [sung_run / f"corpus/{index}.wav" for index in range(3)]
    assert [one.text for one in recognizer.transcribe(paths)] == ["do", "re", "mi"]
    waves = [load_wav(path, sampling_rate=RATE) for path in paths]
    other = [resample(wave, ratio=2) for wave in waves]
    assert [one.text for one in recognizer.transcribe(waves)] == ["do", "re", "mi"]
    assert [one.text for one in recognizer.transcribe(other, sampling_rate=2 * RATE)] == ["do", "re", "mi"]
    (one,) = recognizer.transcribe(str(paths[1]))
    assert (one.wav, one.text, one.duration) == (str(paths[1]), "re", len(waves[1]) / RATE)
    assert recognizer.transcribe(waves[1])[0].text == "re" and recognizer.normalize("Do, RE!") == "do re"


def test_batches_are_length_bucketed_and_texts_come_in_the_lists_order():
    lengths = torch.randperm(100, generator=torch.Generator().manual_seed(0)).add(1).tolist()
    seen: list[tuple[int, int]] = []

    def transcribe(waves: Tensor, wave_lengths: Tensor) -> list[str]:
        assert waves.size(1) == max(int(wave_lengths.max()), 7)
        seen.append((int(wave_lengths.min()), int(wave_lengths.max())))
        for wave, length in zip(waves, wave_lengths):
            assert not wave[length:].any()
        return [str(int(wave[0])) for wave in waves]

    recognizer = made_up_recognizer(transcribe, batch_size=2, padded_duration=7 / RATE)
    seconds: list[float] = []
    results = list(recognizer.transcripts(made_up_speech(lengths), times=seconds))
    assert [one.text for one in results] == [str(index) for index in range(100)]
    assert [one.wav for one in results] == [f"{index}.wav" for index in range(100)]
    assert len(seconds) == len(seen) == 50
    assert sum(high - low for low, high in seen) < 300  # 1650 and more in any order
    measured, heard = recognizer.measure(made_up_speech(lengths[:5]), iterations=7, warmup_steps=2)
    assert len(measured) == 7 and len(seen) == 50 + 9 and len(heard) in (12, 13)


def test_an_output_of_another_kind_is_refused():
    with pytest.raises(OptionError, match=r"--output a.csv: expected a file that ends with .json or .txt, or"):
        inference.main(["--jasper", "j.pt", "-i", "a.wav", "-o", "a.csv"])


def test_a_checkpoint_of_another_kind_or_without_averages_is_refused(sung_run: Path, tmp_path: Path):
    path = sung_run / "Jasper_checkpoint_40.pt"
    words = ["-i", str(sung_run / "corpus/0.wav")]
    with pytest.raises(CheckpointError, match="no EMA weights; leave out --ema"):
        inference.main(["--jasper", str(path), *words, "--ema"])
    other = save_vocoder(tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="a checkpoint of HiFi-GAN, expected one of Jasper"):
        inference.main(["--jasper", str(other), *words])
    with pytest.raises(InputError, match=r"absent\.wav: no such recording"):
        inference.main(["--jasper", str(path), "-i", str(tmp_path / "absent.wav")])


def test_speaking_and_recognizing_are_told_apart():
    assert inference.named_recognizer(["-i", "x", "--jasper=a"]) is get_model("Jasper")
    assert inference.named_recognizer(["--fastpitch", "jasper"]) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sung_run: Path) -> Path:
    """A Jasper that knows three words, as checkpoint and in every format."""
    made = tmp_path_factory.mktemp("jasper")
    (made / "Jasper.pt").write_bytes((sung_run / "Jasper_checkpoint_40.pt").read_bytes())
    for kind in (*SUFFIXES, "torchscript"):  # whose difference from PyTorch the command measures
        checkpoint_tools.export([str(made / "Jasper.pt"), "--format", kind])
    return made


@pytest.mark.parametrize(
    "kinds, options",
    [(tuple(SUFFIXES), ""), (("onnx",), "--pad-leading 16 --no-trim-silence -bs 2 --max-utterances 5")],
)
def test_inference_transcribes_with_every_format_as_with_the_checkpoint(
    folder: Path, sung_run: Path, tmp_path: Path, kinds: tuple[str, ...], options: str, capsys: pytest.CaptureFixture
):
    corpus = sung_run / "corpus"
    capsys.readouterr()

    def outcome(suffix: str) -> tuple:
        own = tmp_path / suffix
        words = ["--jasper", str(folder / f"Jasper{suffix}"), "-i", str(corpus / "val.txt"), "-d", str(corpus)]
        outputs = ["-o", str(own / "out.json"), "-o", str(own / "log"), "--save-logits", str(own / "logits.pt")]
        assert inference.main([*words, *outputs, *options.split()]) == 0
        log = {key for entry in read_log(own / "log" / "nvlog_infer.json") for key in entry.get("data", {})}
        lines = [line for line in capsys.readouterr().out.splitlines() if "sequences/s" not in line]
        return lines, json.loads((own / "out.json").read_text()), log, torch.load(own / "logits.pt")

    lines, saved, log, logits = outcome(".pt")
    if not options:
        assert "WER 0.00 %, CER 0.00 % (6 utterances, 6 words, 12 characters)" in lines
    assert {one["text"] for one in saved["utterances"]} >= {"do", "re", "mi"} and "avg_RTF" in log
    for kind in kinds:
        made = outcome(SUFFIXES[kind])
        assert made[:3] == (lines, saved, log)
        for one, expected in zip(made[3], logits, strict=True):
            torch.testing.assert_close(one, expected, atol=2e-5, rtol=0)


def test_an_onnx_file_runs_on_the_cpu_also_where_there_is_a_gpu(
    folder: Path, sung_run: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    (heard,) = load_recognizer(folder / "Jasper.onnx").transcribe(sung_run / "corpus/2.wav")
    assert heard.text == "mi"
    with pytest.raises(OptionError, match=r"Jasper\.onnx: ONNX files are run on the CPU; leave out --cuda, or give"):
        inference.main(["--jasper", str(folder / "Jasper.onnx"), "-i", str(sung_run / "corpus/2.wav"), "--cuda"])
