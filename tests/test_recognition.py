"""``inference.py --jasper`` and `Recognizer` transcribe recordings, also with exported files."""

import json
import re
from pathlib import Path

import pytest
import torch
from sung_words import RATE
from test_export import SUFFIXES
from tiny_voice import save_vocoder

import inference
from common.audio.wav import load_wav, resample
from common.errors import CheckpointError, InputError, OptionError
from common.logger import read_log
from common.recognition.recognizer import load_recognizer
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
    assert transcribe("train.txt", "--batch-size", "1")[-2].startswith("latency per batch ")  # of many


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


def test_logits_are_saved_in_the_lists_order_and_decode_to_the_transcripts(transcribe, sung_run: Path, tmp_path: Path):
    lines = transcribe("val.txt", "--save-logits", str(tmp_path / "logits.pt"), "-bs", "2")
    network = load_recognizer(sung_run / "Jasper_checkpoint_40.pt").network
    saved = torch.load(tmp_path / "logits.pt", weights_only=True)
    assert len(saved) == 6 and len({len(values) for values in saved}) > 1, "without padding"
    for values, line in zip(saved, lines):
        assert torch.allclose(values.exp().sum(1), torch.ones(len(values)))
        assert network.decode(JasperOutput(values[None], torch.tensor([len(values)]))) == [line.rpartition("|")[2]]


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
