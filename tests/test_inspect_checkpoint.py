"""scripts/inspect_checkpoint.sh says what a file is and what speaks with it; what is no checkpoint is one line."""

import json
from pathlib import Path
from typing import Any

import foreign
import onnx
import pytest
import torch
from safetensors.torch import save_file
from tiny_voice import TEXT, save_voice, symbols_of, with_symbols

from common.checkpoints.checkpoint import save_checkpoint, strip_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import to_plain
from common.errors import CheckpointError
from scripts import checkpoint_tools
from scripts.checkpoint_tools import inspect


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where ./output may hold checkpoints."""
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture, *words: Any) -> str:
    """What the command prints."""
    capsys.readouterr()
    inspect([*map(str, words)])
    out, err = capsys.readouterr()
    assert err == ""
    return out


def facts(capsys: pytest.CaptureFixture, *words: Any) -> dict[str, Any]:
    """The JSON object that the command prints."""
    return json.loads(printed(capsys, *words, "--json"))


def test_a_checkpoint_of_ours_is_described(tmp_path: Path, capsys: pytest.CaptureFixture):
    path = save_voice(tmp_path / "voice.pt")
    held = load_checkpoint(path)
    found = facts(capsys, path)
    assert (found["file"], found["bytes"]) == (str(path), path.stat().st_size)
    assert (found["model"], found["role"], found["layout"]) == ("FastPitch", "generator", "ours")
    assert found["foreign"] is False
    assert (found["config"], found["audio"]["n_mels"]) == (to_plain(held.config), 16)
    assert (found["text"]["speakers"], found["training"], found["ema"]) == (["ann", "bob"], None, False)
    buffers = ("pitch_mean", "pitch_std", "inv_freq")
    trained = sum(v.numel() for k, v in held.networks["fastpitch"].items() if not k.endswith(buffers))
    assert found["parameters"] == {"fastpitch": trained}
    save_checkpoint(tmp_path / "half.pt", strip_checkpoint(held, dtype="float16"))
    half = facts(capsys, tmp_path / "half.pt")
    assert half["stripped"] == {"dtype": "float16", "ema": False}
    assert half["parameters"] == found["parameters"]


@pytest.mark.parametrize(("layout", "name"), [(foreign.fastpitch_1_1, "FastPitch 1.1"), (foreign.waveglow, "WaveGlow")])
def test_a_foreign_checkpoint_is_described(layout: Any, name: str, tmp_path: Path, capsys: pytest.CaptureFixture):
    payload = layout()
    torch.save(payload, tmp_path / "x.bin")
    found = facts(capsys, tmp_path / "x.bin")
    assert (found["layout"], found["foreign"]) == (name, True)
    assert found["ema"] == ("ema_state_dict" in payload)
    assert f"layout: {name}\n" in printed(capsys, tmp_path / "x.bin")
    if name == "WaveGlow":  # its weights alone, in a file of another program
        save_file(payload["state_dict"], tmp_path / "x.safetensors")
        found = facts(capsys, tmp_path / "x.safetensors")
        assert (found["layout"], found["foreign"]) == (name, True)


@pytest.mark.parametrize("kind", ["onnx", "safetensors"])
def test_an_exported_file_is_described_as_its_checkpoint(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture):
    path = save_voice(tmp_path / "voice.pt", model=with_symbols(len(symbols_of(TEXT))))
    checkpoint_tools.export([str(path), "--format", kind])
    checkpoint, found = facts(capsys, path), facts(capsys, path.with_suffix(f".{kind}"))
    same = ("model", "role", "foreign", "config", "parameters", "audio", "assumed_audio", "text", "ema")
    assert {name: found[name] for name in same} == {name: checkpoint[name] for name in same}
    if kind == "safetensors":
        return
    assert found["inputs"]["tokens"] == {"shape": ["batch", "tokens"]}
    model = onnx.load(path.with_suffix(".onnx"))
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(CheckpointError, match=rf"^{tmp_path}/a\.onnx: [^\n]*$"):
        inspect([str(tmp_path / "a.onnx")])


def test_what_is_no_checkpoint_is_one_line(tmp_path: Path):
    save_file({"weight": torch.zeros(2)}, tmp_path / "a.safetensors")
    (tmp_path / "a.txt").write_text("no checkpoint")
    torch.save(torch.zeros(2), tmp_path / "mel.pt")
    for name in ("a.safetensors", "a.txt", "absent.pt", "mel.pt"):
        with pytest.raises(CheckpointError, match=rf"^{tmp_path / name}: [^\n]*$"):
            inspect([str(tmp_path / name)])
