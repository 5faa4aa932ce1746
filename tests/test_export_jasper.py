"""Exported Jaspers transcribe as the checkpoint does, in every format."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_jasper
import tiny_voice
import torch
from tiny_jasper import SMALL

import inference
from common.checkpoints import Checkpoint, load_for_inference, open_checkpoint, save_checkpoint
from common.config import to_plain
from common.errors import OptionError
from common.logger import read_log
from common.recognition import load_recognizer
from common.serving import arguments as serving
from jasper.config import ModelConfig
from scripts import evaluate_voice, export_model

CPU = torch.device("cpu")
SUFFIXES = {"onnx": ".onnx", "safetensors": ".safetensors"}  # of the formats that are read
FORMS = {
    "dense": SMALL,
    "plain": replace(
        SMALL,
        blocks=tuple(replace(one, residual_dense=False) for one in SMALL.blocks),
        activation="hardtanh",
        use_conv_masks=False,
        features=replace(SMALL.features, frame_splicing=2, pad_align=0),
        labels=("a", "b"),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sung_run: Path) -> Path:
    """A Jasper that knows three words, as checkpoint and in every format."""
    made = tmp_path_factory.mktemp("jasper")
    (made / "Jasper.pt").write_bytes((sung_run / "Jasper_checkpoint_40.pt").read_bytes())
    for kind in (*SUFFIXES, "torchscript"):  # whose difference from PyTorch the command measures
        export_model.main([str(made / "Jasper.pt"), "--format", kind])
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


def test_the_server_and_the_evaluation_transcribe_with_exported_files(folder: Path, sung_run: Path, tmp_path: Path):
    model = tiny_voice.with_symbols(len(tiny_voice.symbols_of(tiny_voice.TEXT)))
    voice = str(tiny_voice.save_voice(tmp_path / "voice.pt", model=model))
    words = ["--fastpitch", voice, "--jasper", str(folder / "Jasper.onnx")]
    served = serving.load_models(words).recognizer
    words = ["--output", str(tmp_path), "--jasper", str(folder / "Jasper.onnx"), voice, "griffin-lim", "list.txt"]
    models = evaluate_voice.parse_and_open(words)[1]
    for recognizer in (served, load_recognizer(models["recognizer"], device="cpu")):
        assert [one.text for one in recognizer.transcribe(sung_run / "corpus/0.wav")] == ["do"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_log_probabilities_of_any_batch(tmp_path: Path, form: str):
    path = save(tmp_path / "Jasper.pt", FORMS[form])
    exported = tmp_path / "Jasper.onnx"
    export_model.main([str(path)])
    listener, made = (load_for_inference(open_checkpoint(one), device=CPU)[0] for one in (path, exported))
    lengths = torch.tensor([31, 50, 18, 44])
    features = torch.randn(4, listener.config.features.n_features, 50, generator=torch.Generator().manual_seed(1))
    features *= (torch.arange(50) < lengths[:, None])[:, None]
    expected, together = listener.infer(features, lengths), made.infer(features, lengths)
    assert torch.equal(together.lengths, expected.lengths)
    assert made.decode(together) == listener.decode(expected) and any(made.decode(together))
    for row, length in enumerate(lengths.tolist()):
        n_frames = int(expected.lengths[row])
        torch.testing.assert_close(
            together.log_probs[row, :n_frames], expected.log_probs[row, :n_frames], atol=1e-5, rtol=0
        )
        alone = [one.infer(features[row : row + 1, :, :length], lengths[row : row + 1]) for one in (made, listener)]
        torch.testing.assert_close(alone[0].log_probs, alone[1].log_probs, atol=1e-5, rtol=0)


def save(path: Path, config: ModelConfig) -> Path:
    """A checkpoint of a small network of a seed's weights."""
    network = tiny_jasper.small_network(**{name: getattr(config, name) for name in to_plain(config)})
    networks = {"jasper": network.state_dict()}
    save_checkpoint(path, Checkpoint("Jasper", to_plain(config), config.features.audio, None, networks))
    return path
