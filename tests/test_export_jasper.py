"""Exported Jaspers transcribe as the checkpoint does, in every format."""

import json
from pathlib import Path

import pytest
import torch
from test_export import SUFFIXES

import inference
from common.errors import OptionError
from common.logger import read_log
from common.recognition.recognizer import load_recognizer
from scripts import checkpoint_tools


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
