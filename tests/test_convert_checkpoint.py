"""Foreign layouts are converted without loss and without running anything, and any file is inspected in a few lines."""

import json
import shutil
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
from common.errors import CheckpointError, OptionError
from scripts import checkpoint_tools
from scripts.checkpoint_tools import convert, inspect

pytestmark = pytest.mark.usefixtures("no_samples")


def converted(source: Path, *options: str) -> Path:
    """What the command makes of a file."""
    target = source.with_name(f"{source.name}.ours.pt")
    convert([str(source), str(target), *options])
    assert torch.load(target, weights_only=True)["format"] == 1
    return target


def saved(path: Path, payload: Any) -> Path:
    torch.save(payload, path)
    return path


def _same_weights(first: Path, second: Path) -> None:
    one, other = (load_checkpoint(path).networks for path in (first, second))
    assert one.keys() == other.keys()
    for name, state in one.items():
        assert state.keys() == other[name].keys()
        for key, value in state.items():
            assert torch.equal(value, other[name][key]) and value.dtype == other[name][key].dtype


@pytest.mark.parametrize("prefix", ["module.", "module._orig_mod."])
@pytest.mark.parametrize("layout", [foreign.fastpitch_1_0, foreign.tacotron2, foreign.waveglow, foreign.jasper])
def test_prefixes_and_bare_weights_are_read(layout: Any, prefix: str, tmp_path: Path):
    payload = layout()
    plain = converted(saved(tmp_path / "plain.pt", payload))
    wrapped = payload | {"state_dict": foreign.renamed(payload["state_dict"], lambda key: prefix + key)}
    _same_weights(plain, converted(saved(tmp_path / "wrapped.pt", wrapped)))
    if layout in (foreign.waveglow, foreign.jasper):  # whose shapes tell their configuration
        _same_weights(plain, converted(saved(tmp_path / "bare.pt", payload["state_dict"])))
        _same_weights(plain, converted(saved(tmp_path / "model.pt", {"model": payload["state_dict"]})))


def test_weights_without_their_configuration_are_given_it(tmp_path: Path):
    payload = foreign.fastpitch_1_0()
    bare = saved(tmp_path / "bare.pt", payload["state_dict"])
    with pytest.raises(CheckpointError, match=r"without their configuration.* --config config\.json$"):
        converted(bare)
    (tmp_path / "voice.json").write_text(json.dumps(payload["config"]))
    ours = converted(bare, "--config", str(tmp_path / "voice.json"))
    whole = saved(tmp_path / "whole.pt", payload)
    _same_weights(whole, ours)
    with pytest.raises(OptionError, match="has its own configuration; leave out the option"):
        converted(whole, "--config", str(tmp_path / "voice.json"))


def test_a_generator_is_given_its_configuration_and_discriminators_by_name(tmp_path: Path):
    source = foreign.save_authors_hifigan(tmp_path / "hub")
    whole = converted(source)
    training = load_checkpoint(whole).training
    assert (training["epoch"], training["iteration"]) == (1, 5)
    other = tmp_path / "other"
    other.mkdir()
    generator = shutil.copy(source, other / "voice.bin")
    rest = shutil.copy(tmp_path / "hub/do_00000005", other / "d.bin")
    (tmp_path / "v.json").write_text((tmp_path / "hub/config.json").read_text())
    ours = converted(generator, "--config", str(tmp_path / "v.json"), "--discriminators", str(rest))
    _same_weights(whole, ours)
    assert load_checkpoint(ours).networks.keys() == {"generator", "mpd", "msd"}
    for path in (whole, ours):
        assert load_checkpoint(path).training["optimizers"].keys() == {"generator", "discriminator"}
    ours.unlink()
    with pytest.raises(OptionError, match=r"voice\.bin: contains no mpd and msd$"):
        converted(generator, "--config", str(tmp_path / "v.json"), "--discriminators", str(generator))


def test_both_names_of_weight_norm_and_folded_weights_are_one(tmp_path: Path):
    payload = foreign.waveglow()
    plain = converted(saved(tmp_path / "plain.pt", payload))
    new = {"state_dict": foreign.renamed(payload["state_dict"], foreign.parametrized)}
    assert any("original0" in key for key in new["state_dict"])
    _same_weights(plain, converted(saved(tmp_path / "new.pt", new)))
    folded = converted(saved(tmp_path / "folded.pt", foreign.waveglow(folded=True)))
    assert load_checkpoint(folded).networks["waveglow"].keys() == load_checkpoint(plain).networks["waveglow"].keys()
    generator = foreign.save_authors_hifigan(tmp_path / "hub")
    whole = converted(generator)
    for name, parts in (("g_00000005", ["generator"]), ("do_00000005", ["mpd", "msd"])):
        payload = torch.load(tmp_path / "hub" / name)
        for part in parts:
            payload[part] = foreign.renamed(payload[part], foreign.parametrized)
        spectral = "discriminators.0.convs.0.parametrizations.weight."
        if "msd" in payload:  # the first scale is under spectral norm, whose vectors have names that weight norm's have
            state = {k: v for k, v in payload["msd"].items() if not k.startswith("discriminators.0.convs.0.")}
            own = load_checkpoint(whole).networks["msd"]
            parts_of = {"original": "orig", "0._u": "u", "0._v": "v"}
            first = {spectral + to: own[f"discriminators.0.convs.0.weight_{part}"] for to, part in parts_of.items()}
            payload["msd"] = {"discriminators.0.convs.0.bias": own["discriminators.0.convs.0.bias"]} | first | state
        saved(tmp_path / "hub" / name, payload)
    (tmp_path / "hub/g_00000005.ours.pt").rename(tmp_path / "first.pt")
    _same_weights(tmp_path / "first.pt", converted(generator))


def test_missing_and_left_over_weights_are_named_and_refused(tmp_path: Path):
    payload = foreign.fastpitch_1_1()
    state = payload["state_dict"] = dict(payload["state_dict"])
    del state["proj.weight"]
    state["extra.weight"] = torch.zeros(2)
    source = saved(tmp_path / "part.pt", payload)
    with pytest.raises(CheckpointError, match=r"part\.pt: FastPitch 1\.1: .*proj\.weight.*extra\.weight"):
        converted(source)
    assert not source.with_name("part.pt.ours.pt").exists()


def test_what_cannot_be_converted_is_one_line(tmp_path: Path):
    source = saved(tmp_path / "w.pt", foreign.waveglow())
    ours = converted(source)
    with pytest.raises(OptionError, match=r"ours\.pt: already exists; name another file, or remove it"):
        converted(source)
    with pytest.raises(CheckpointError, match=r"already has the toolkit's own format"):
        converted(ours)
    with pytest.raises(CheckpointError, match="unknown checkpoint layout"):
        converted(saved(tmp_path / "x.pt", {"state_dict": {"a.weight": torch.zeros(1)}}))


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
