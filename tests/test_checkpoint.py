"""Checkpoints: plain types only, whole or not at all, one line for each way to be bad; those stripped for inference."""

import io
import itertools
import json
import os
import pickle
import re
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny_models import EPOCHS, Runs, TinyModel, of_every_model, of_every_training
from tiny_voice import save_voice
from torch import Tensor

import train
from common.checkpoints.checkpoint import (
    Checkpoint,
    checkpoint_path,
    is_rolling,
    save_checkpoint,
    saved_checkpoints,
    strip_checkpoint,
)
from common.checkpoints.loading import load_for_inference, load_networks, open_checkpoint
from common.checkpoints.reading import load_checkpoint, load_last_checkpoint
from common.config import AudioConfig
from common.errors import CheckpointError, InputError
from common.text.config import TextConfig
from common.torch_file import load_tensor
from fastpitch.config import ModelConfig
from scripts.checkpoint_tools import strip


def make_checkpoint(value: float = 1.0, **changes) -> Checkpoint:
    optimizers = {"fastpitch": {"settings": {"lr": 0.1}, "states": {}}}
    random = [{"cpu": torch.get_rng_state()}]
    parts = {
        "model": "FastPitch",
        "config": ModelConfig(n_symbols=40, symbol_type="phone", n_speakers=2),
        "audio": AudioConfig(hop_length=300, mel_fmax=None),
        "text": TextConfig(input_type="phone", symbol_set="ipa", cleaners=(), speakers=("ada", "bob")),
        "networks": {"fastpitch": {"w": torch.full((2, 3), value), "n": torch.tensor([3])}},
        "ema": {"fastpitch": {"w": torch.zeros(2, 3), "n": torch.tensor([3])}},
        "training": {"epoch": 4, "iteration": 17, "optimizers": optimizers, "sums": {"loss": 0.5}, "random": random},
    }
    return Checkpoint(**parts | changes)


def test_everything_comes_back_as_it_was_saved_in_plain_types(tmp_path: Path):
    saved = make_checkpoint(assumed=("framing", "peak"))
    save_checkpoint(tmp_path / "a.pt", saved)
    loaded = load_checkpoint(tmp_path / "a.pt")
    for name in ("model", "config", "audio", "text", "assumed", "stripped"):
        assert getattr(loaded, name) == getattr(saved, name)
    for part in ("networks", "ema"):
        for key, value in getattr(saved, part)["fastpitch"].items():
            assert torch.equal(getattr(loaded, part)["fastpitch"][key], value)
    assert loaded.training["sums"] == {"loss": 0.5}
    assert torch.equal(loaded.training["random"][0]["cpu"], saved.training["random"][0]["cpu"])
    payload = torch.load(tmp_path / "a.pt", weights_only=True)
    assert payload["format"] == 1
    assert set(payload) == {"format", "model", "config", "assumed", "networks", "ema", "training"}


_FIRST_AUDIO = """{"sampling_rate": 22050, "filter_length": 1024, "hop_length": 256, "win_length": 1024, "n_mels": 80,
    "mel_fmin": 0.0, "mel_fmax": 8000.0, "framing": "aligned", "peak": 0.95}"""
_FIRST_TEXT = """{"input_type": "char", "symbol_set": "english_basic", "cleaners": ["english_cleaners_v3"],
    "speakers": ["ann"], "prepend_space": false, "append_space": false, "p_arpabet": 0.0, "arpabet_by": "word",
    "arpabet_ambiguous": "ignore", "cmudict_path": null, "heteronyms_path": null, "g2p": null,
    "g2p_language": "en-us"}"""
_FIRST_TRAINING = """{"iteration": 8, "skipped_in_a_row": 0, "scaler": {"scales": {}, "finite_since": {}}, "epoch": 2,
    "steps_done": 4, "global_batch": 4, "sums": {"mel_loss": 12.5, "loss": 13.0}, "frames": 1234, "seconds": 1.5,
    "skipped": 0, "optimizers": {"fastpitch": {"settings": {"lr": 0.1}, "states": {}}}}"""


def test_a_file_of_format_1_as_it_was_first_written_is_read(tmp_path: Path):
    audio, text, training = map(json.loads, (_FIRST_AUDIO, _FIRST_TEXT, _FIRST_TRAINING))
    config = {"model": {"n_symbols": 148}, "audio": audio, "text": text}
    payload = {"format": 1, "model": "FastPitch", "config": config, "networks": {"fastpitch": {"w": torch.ones(2)}}}
    torch.save(payload | {"ema": None, "training": training}, tmp_path / "a.pt")
    loaded = load_checkpoint(tmp_path / "a.pt")
    assert (loaded.model, loaded.config, loaded.ema) == ("FastPitch", ModelConfig(n_symbols=148), None)
    assert loaded.audio == AudioConfig(framing="aligned", peak=0.95)
    assert loaded.text == TextConfig(cleaners=("english_cleaners_v3",), speakers=("ann",))
    assert torch.equal(loaded.networks["fastpitch"]["w"], torch.ones(2))
    assert (loaded.training, loaded.assumed, loaded.assumed_config) == (training, (), ())


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_for_inference_has_the_weights_without_the_training_state(tmp_path: Path, zipped: bool):
    save_checkpoint(tmp_path / "a.pt", make_checkpoint(2.5))
    payload = torch.load(tmp_path / "a.pt", weights_only=True)
    torch.save(payload, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    loaded = load_checkpoint(tmp_path / "a.pt", training=False)
    assert loaded.training is None
    assert torch.equal(loaded.networks["fastpitch"]["w"], torch.full((2, 3), 2.5))
    assert torch.equal(loaded.ema["fastpitch"]["w"], torch.zeros(2, 3))


class _Harmful:
    """Would run a command when it is unpickled."""

    def __reduce__(self) -> tuple:
        return os.mkdir, (os.environ["HARM"],)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such checkpoint file"),
        (lambda path: path.write_bytes(b""), "cannot be read"),
        (lambda path: path.write_bytes(b"not a checkpoint at all"), "cannot be read"),
        (
            lambda path: (save_checkpoint(path, make_checkpoint()), os.truncate(path, path.stat().st_size - 400)),
            "cannot be read",
        ),
        (lambda path: torch.save([1, 2], path), "holds a list"),
        (lambda path: torch.save({"weights": torch.ones(2)}, path), "unknown checkpoint layout"),
        (lambda path: torch.save({"format": 99}, path), "checkpoint format 99, expected 1"),
        (lambda path: torch.save({"format": 1, "model": "FastPitch"}, path), "a damaged checkpoint .KeyError"),
        (lambda path: torch.save({"format": 1, "x": _Harmful()}, path), "is refused, as it could run code"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(make, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HARM", str(tmp_path / "harm"))
    path = tmp_path / "bad.pt"
    make(path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("config/audio/loudness", -23.0, "config.audio: loudness: unknown key"),
        ("config/model/width", 3, "config.model: width: unknown key"),
        ("model", "Tacotron9000", "model 'Tacotron9000', expected one of"),
        ("stripped", {"dtype": "float16", "for": 1}, "stripped: ema: Field required"),
    ],
)
def test_what_a_file_of_another_version_holds_is_named(place: str, value: object, message: str, tmp_path: Path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, make_checkpoint())
    payload = part = torch.load(path, weights_only=True)
    *parents, last = place.split("/")
    for name in parents:
        part = part[name]
    part[last] = value
    torch.save(payload, path)
    with pytest.raises(CheckpointError, match=f"^{path}: {re.escape(message)}"):
        load_checkpoint(path)


def test_weights_of_another_architecture_are_listed_by_name(tmp_path: Path):
    path = save_voice(tmp_path / "a.pt")
    checkpoint = load_checkpoint(path)
    state = dict(checkpoint.networks["fastpitch"])
    del state["proj.weight"]
    state |= {"proj.bias": torch.zeros(3), "gate.bias": torch.zeros(3)}
    save_checkpoint(path, replace(checkpoint, networks={"fastpitch": state}))
    fit = 'Missing key(s) in state_dict: "proj.weight". Unexpected key(s) in state_dict: "gate.bias". size mismatch for'
    load = partial(load_networks, load_checkpoint(path), device=torch.device("cpu"), where="a.pt")
    with pytest.raises(CheckpointError, match=re.escape(f"a.pt: its weights do not fit the model: {fit}")):
        load()
    with pytest.raises(CheckpointError, match=r"a\.pt: has no EMA weights; leave out --ema"):
        load(ema=True)


def test_a_failed_save_keeps_the_previous_file_and_leaves_nothing_behind(tmp_path: Path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, make_checkpoint(1.0))
    with pytest.raises(Exception, match=r"(?i)pickle"):
        save_checkpoint(path, make_checkpoint(2.0, training={"cannot be saved": (line for line in ())}))
    assert load_checkpoint(path).networks["fastpitch"]["w"][0, 0] == 1.0
    assert [file.name for file in tmp_path.iterdir()] == ["a.pt"]


def test_checkpoints_are_ordered_by_training_state(tmp_path: Path):
    names = [(1, None), (2, 25), (2, 30), (2, None), (10, 101), (10, None)]
    paths = [checkpoint_path(tmp_path, "FastPitch", epoch=epoch, iteration=step) for epoch, step in names]
    for path in reversed(paths):
        path.touch()
    (tmp_path / "FastPitch_checkpoint_best.pt").touch()
    (tmp_path / "WaveGlow_checkpoint_99.pt").touch()
    assert saved_checkpoints(tmp_path, "FastPitch") == paths
    assert [is_rolling(path) for path in paths] == [False, True, True, False, True, False]


def test_the_last_readable_checkpoint_is_taken_and_the_others_reported(tmp_path: Path):
    warnings: list[str] = []
    load = partial(load_last_checkpoint, tmp_path, "FastPitch", warn=warnings.append)
    assert load() is None
    checkpoint_path(tmp_path, "FastPitch", epoch=3).write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(CheckpointError, match=r"none of 1 checkpoints of FastPitch can be read: .*_3\.pt: "):
        load()
    for epoch in (1, 2):
        save_checkpoint(checkpoint_path(tmp_path, "FastPitch", epoch=epoch), make_checkpoint(float(epoch)))
    path, loaded = load()
    assert path.name == "FastPitch_checkpoint_2.pt"
    assert loaded.networks["fastpitch"]["w"][0, 0] == 2.0
    assert len(warnings) == 1 and "FastPitch_checkpoint_3.pt" in warnings[0]


CANARY = "canary"  # the file that payloads try to make in the current folder
GLOBALS = {  # of a payload that would run, and what it is called with
    "os.system": f"touch {CANARY}",
    "builtins.eval": f"open('{CANARY}', 'w')",
    "__builtin__.eval": f"open('{CANARY}', 'w')",
    "runpy.run_path": "/dev/null",
    "pathlib.Path": CANARY,
    "builtins.open": CANARY,
    "torch.load": "/dev/zero",
    "builtins.getattr": "x",
    "torch.storage._load_from_bytes": "x",
    "common.files.write_text": CANARY,
    "functools.partial": "x",
}
FORMS = ("bare", "legacy", "stored", "deflated")
MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)


def payload(name: str, *, protocol: int) -> bytes:
    """A pickled dict whose only value is the result of a call."""
    module, _, function = name.rpartition(".")
    words = [pickle.dumps(word, protocol=2)[2:-1] for word in (module, function, GLOBALS[name])]
    named = words[0] + words[1] + b"\x93" if protocol == 4 else f"c{module}\n{function}\n".encode()
    return b"\x80" + bytes([protocol]) + b"}" + b"U\x05modelq\x00" + named + words[2] + b"\x85R" + b"s."


def contained(data: bytes, form: str) -> bytes:
    """A file of torch.save with that pickle."""
    if form == "bare":
        return data
    if form == "legacy":
        head, tail = (pickle.dumps(one, protocol=2) for one in ({}, []))
        return MAGIC + pickle.dumps(1001, protocol=2) + head + data + tail
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if form == "deflated" else zipfile.ZIP_STORED) as archive:
        for name, content in {"data.pkl": data, "version": "3\n", "byteorder": "little"}.items():
            archive.writestr(f"archive/{name}", content)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("name", GLOBALS)
def test_a_pickle_that_calls_anything_is_refused_and_calls_nothing(name: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.pt"
    for protocol, form, read in itertools.product((2, 4), FORMS, (load_tensor, load_checkpoint, open_checkpoint)):
        path.write_bytes(contained(payload(name, protocol=protocol), form))
        with pytest.raises(InputError, match=re.escape(str(path))):
            read(path)
        assert [one.name for one in tmp_path.iterdir()] == ["a.pt"]


CPU = torch.device("cpu")


def weights(path: Path, *, ema: bool | None = None) -> dict[str, Tensor]:
    """Those of the network that infers, ready to."""
    return load_for_inference(open_checkpoint(path, ema=ema), device=CPU)[0].state_dict()


@of_every_training
def test_it_holds_the_averaged_network_alone_and_infers_as_the_whole_checkpoint(
    model: TinyModel, make_once, corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    whole = model.checkpoint(Runs(make_once, corpora, model).plain, EPOCHS)
    source = tmp_path / whole.name
    source.write_bytes(whole.read_bytes())
    strip([str(source)])
    path = tmp_path / f"{model.name}_inference_{EPOCHS}.pt"
    assert f"wrote {path}: {model.name}'s " in (out := capsys.readouterr().out)
    assert ", EMA weights in float32, " in out
    held = load_checkpoint(path)
    (state,) = held.networks.values()
    assert (held.ema, held.training) == (None, None)
    n_bytes = sum(value.numel() * value.element_size() for value in state.values())
    assert n_bytes < path.stat().st_size < n_bytes + 1000 * len(state) + 20_000 < source.stat().st_size
    expected = weights(source)
    for ema in (None, True):
        assert all(torch.equal(value, expected[key]) for key, value in weights(path, ema=ema).items())
    assert f"using the EMA weights of {path}\n" in capsys.readouterr().err
    with pytest.raises(CheckpointError, match="with EMA weights only; leave out --no-ema"):
        open_checkpoint(path, ema=False)
    # Its name is none that a training resumes from, and its weights cannot be.
    assert saved_checkpoints(tmp_path, model.name) == [source]
    with pytest.raises(CheckpointError, match=rf"{path.name}: stripped for inference, so it can't be resumed"):
        train.main(model.words(corpora, tmp_path / "out", "--epochs", "9", "--checkpoint-path", str(path)))


@of_every_model
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_halves_the_matrices_alone_and_is_float32_when_it_is_read(
    model: TinyModel, dtype: str, make_once, corpora: Path, tmp_path: Path
):
    checkpoint = load_checkpoint(model.checkpoint(Runs(make_once, corpora, model).plain, EPOCHS))
    (whole,) = strip_checkpoint(checkpoint).networks.values()
    half = strip_checkpoint(checkpoint, dtype=dtype)
    (state,) = half.networks.values()
    sizes = [sum(value.numel() * value.element_size() for value in one.values()) for one in (state, whole)]
    assert sizes[0] < 0.8 * sizes[1]
    save_checkpoint(tmp_path / "half.pt", half)
    (read,) = load_checkpoint(tmp_path / "half.pt").networks.values()
    for key, value in read.items():
        assert value.dtype == whole[key].dtype
        if value.dim() > 1 and value.is_floating_point():
            torch.testing.assert_close(value, whole[key], rtol=2**-8, atol=1e-6)
        else:
            assert torch.equal(value, whole[key])
