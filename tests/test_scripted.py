"""TorchScript files: those that we write are run, and what could do more than compute is refused before it runs."""

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from torch import Tensor, nn

import inference
from common.checkpoints import Checkpoint, load_for_inference, open_checkpoint, save_checkpoint
from common.checkpoints.scripted import ARCHIVE_ENTRY, check_script, problems_of_code
from common.config import TextConfig, to_plain
from common.errors import CheckpointError
from common.text import TextFrontEnd
from hifigan.model import build_networks
from jasper.model import Jasper
from scripts import export_model
from waveglow.model import WaveGlow

ENTRY = f"archive/extra/{ARCHIVE_ENTRY}"
PHONES = TextConfig(input_type="pf", symbol_set="", cleaners=(), speakers=("ann", "bob"))


@pytest.fixture(scope="module")
def vocoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HiFi-GAN in TorchScript."""
    folder = tmp_path_factory.mktemp("scripted")
    tiny_voice.save_vocoder(folder / "vocoder.pt")
    export_model.main([str(folder / "vocoder.pt"), "--format", "torchscript"])
    return folder / "vocoder.ts"


def save_voice(path: Path) -> None:
    tiny_voice.save_voice(path, model=tiny_voice.with_symbols(len(tiny_voice.symbols_of(tiny_voice.TEXT))))


def save_voice_of_vectors(path: Path) -> None:
    text = replace(PHONES, phone_features=("a 1 0", "b 0 1"))
    model = replace(
        tiny_voice.MODEL,
        symbol_type="pf",
        n_symbols=TextFrontEnd(text).n_symbols,
        pitch_statistics_per_speaker=True,
        mask_convolutions=False,
        in_fft_n_heads=2,
    )
    tiny_voice.save_voice(path, text=text, model=model)


def save_jasper(path: Path) -> None:
    config = replace(tiny_jasper.SMALL, activation="selu")
    networks = {"jasper": Jasper(config).state_dict()}
    save_checkpoint(path, Checkpoint("Jasper", to_plain(config), config.features.audio, None, networks))


def save_waveglow(path: Path) -> None:
    audio = tiny_waveglow.TINY_AUDIO
    network = tiny_waveglow.lively(WaveGlow(tiny_waveglow.SMALL, hop_length=audio.hop_length))
    networks = {"waveglow": network.state_dict()}
    save_checkpoint(path, Checkpoint("WaveGlow", to_plain(tiny_waveglow.SMALL), audio, None, networks))


def save_hifigan_of_pairs(path: Path) -> None:
    config = replace(tiny_vocoder.TINY, resblock="1", resblock_dilation_sizes=((1, 3, 5),))
    audio = tiny_vocoder.ALIGNED
    network = build_networks(config, audio, None, inference=True)["generator"]
    save_checkpoint(path, Checkpoint("HiFi-GAN", to_plain(config), audio, None, {"generator": network.state_dict()}))


def save_tacotron2(path: Path) -> None:
    n_symbols = TextFrontEnd(TextConfig()).n_symbols
    tiny_tacotron2.save_voice(path, tiny_tacotron2.speaking_network(seed=12, n_symbols=n_symbols))


MODELS = [save_voice, save_voice_of_vectors, save_hifigan_of_pairs, save_jasper, save_waveglow, save_tacotron2]


@pytest.mark.parametrize("save", MODELS)
def test_every_network_that_is_exported_is_opened_again(tmp_path: Path, save: Callable[[Path], None]):
    """Operators that a changed network needs belong into the list of `common.checkpoints.scripted`."""
    torch.manual_seed(0)
    save(tmp_path / "a.pt")
    export_model.main([str(tmp_path / "a.pt"), "--format", "torchscript"])  # which runs the file
    for path in tmp_path.glob("*.ts"):
        check_script(path)
        load_for_inference(open_checkpoint(path), device=torch.device("cpu"))


class Writing(nn.Module):
    """Creates ``target`` in `forward`."""

    def __init__(self, inner: nn.Module, target: str) -> None:
        super().__init__()
        self.inner, self.target = inner, target

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        t = torch.ops.aten.from_file(self.target, True, 24, dtype=torch.uint8)
        t.fill_(101)
        return self.inner(mel, lengths) + t.sum() * 0.0


class WritingMethod(Writing):
    """The same in another method."""

    def write(self, mel: Tensor) -> Tensor:
        return mel + torch.from_file(self.target, True, 1)

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        return self.inner(self.write(mel), lengths)


class Saving(Writing):
    """The same by another operator."""

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        torch.save(mel, self.target)
        return self.inner(mel, lengths)


class Quantizing(Writing):
    """An operator of another namespace."""

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        return self.inner(torch.ops.quantized.batch_norm(mel, None, None, mel[0], mel[0], 0.0, 1.0, 0), lengths)


class WritingOnLoad(Writing):
    """The same while the file is loaded."""

    @torch.jit.export
    def __getstate__(self) -> tuple[str, bool]:
        return self.target, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[str, bool]) -> None:
        self.target, self.training = state
        torch.from_file(self.target, True, 24)

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        return mel.sum(1)


class Printing(Writing):
    """What prints, and waits in another thread."""

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        print(self.target)
        return self.inner(mel, lengths)


class Raising(Writing):
    """What cannot be run."""

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        return torch.matmul(self.inner(mel, lengths), mel)


class Within(Writing):
    """`Writing` as a module of a module."""

    def __init__(self, inner: nn.Module, target: str) -> None:
        super().__init__(Writing(inner, target), target)

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        return self.inner(mel, lengths)


EVIL = {
    Writing: "calls aten::from_file",
    WritingMethod: "calls aten::from_file",
    Within: "calls aten::from_file",
    Saving: "calls aten::save",
    Quantizing: "calls operators of another namespace",
    WritingOnLoad: "has __(getstate|setstate)__ in its code|calls aten::from_file",
    Raising: r"TorchScript cannot run it \(.*Expected size .*\)",
    Printing: "has print in its code",
}


def save_evil(path: Path, vocoder: Path, module: nn.Module) -> Path:
    with zipfile.ZipFile(vocoder) as archive:
        name = next(name for name in archive.namelist() if name.endswith(ARCHIVE_ENTRY))
        extra = {ARCHIVE_ENTRY: archive.read(name)}
    torch.jit.save(torch.jit.script(module), path, _extra_files=extra)
    return path


@pytest.mark.parametrize("kind", EVIL)
def test_a_file_whose_code_does_more_is_one_line_and_nothing_of_it_runs(
    vocoder: Path, tmp_path: Path, kind: type[Writing], capsys: pytest.CaptureFixture
):
    target = tmp_path / "owned"
    save_evil(tmp_path / "evil.ts", vocoder, kind(torch.jit.load(vocoder), str(target)))
    torch.save(torch.zeros(16, 20), tmp_path / "a.pt")
    (tmp_path / "list.tsv").write_text("output\tmel\na.wav\ta.pt\n")
    words = ["-i", str(tmp_path / "list.tsv"), "--dataset-path", str(tmp_path), "--hifigan", str(tmp_path / "evil.ts")]
    with pytest.raises(
        CheckpointError, match=rf"evil\.ts: ({EVIL[kind]})(, .*; .* that scripts/export_model\.sh wrote)?$"
    ):
        inference.main([*words, "-o", str(tmp_path / "out")])
    assert not target.exists() and "owned" not in capsys.readouterr().out


def rewritten(source: Path, path: Path, change: Callable[[str, bytes], bytes | None], **added: bytes) -> Path:
    """A copy of an archive with other records."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        names = old.namelist()
        for name in names:
            if (data := change(name, old.read(name))) is not None:
                new.writestr(name, data)
        for name, data in added.items():
            new.writestr(f"{names[0].partition('/')[0]}/{name}", data)
    return path


def replaced(suffix: str, old: bytes, new: bytes) -> Callable[[str, bytes], bytes]:
    """The change that replaces the first ``old`` of the records that end so."""
    return lambda name, data: data.replace(old, new, 1) if name.endswith(suffix) else data


CHANGES = {
    "of a class of PyTorch": (
        lambda name, data: re.sub(rb"c__torch__[^\n]*\n\w+", b"c__torch__.torch.classes.a\nB", data, count=1),
        {},
        "holds __torch__.torch.classes.a.B",
    ),
    "another name": (replaced("data.pkl", b"ctorch._utils\n_rebuild_tensor_v2", b"cos\nsystem"), {}, "holds os.system"),
    "constants": (replaced("constants.pkl", b").", b"(t."), {}, "has constants"),
    "another pickle": (lambda name, data: data, {"data/data.pkl": b"\x80\x02)."}, "2 files called data.pkl"),
    "the format before": (lambda name, data: data, {"model.json": b"{}"}, "has a file 'model.json'"),
    "one name twice": (
        lambda name, data: data,
        {"code/__torch__/common/nn/LAYERS.py": b""},
        "has several files of one name",
    ),
    "no operators": (lambda name, data: None if name.endswith("version") else data, {}, "PyTorch cannot read it"),
    "more than is stored": (replaced("data.pkl", b"K\x10", b"K\x7f"), {}, "PyTorch cannot read it"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_with_other_records_or_objects_is_refused(vocoder: Path, tmp_path: Path, name: str):
    change, added, message = CHANGES[name]
    path = rewritten(vocoder, tmp_path / "a.ts", change, **added)
    with pytest.raises(CheckpointError, match=f"a.ts: .*{message}"):
        check_script(path)
    check_script(rewritten(vocoder, tmp_path / "b.ts", lambda name, data: data))


FORWARD = """class A(Module):
  __parameters__ = []
  path : str
  def forward(self: __torch__.A, x: Tensor) -> Tensor:
"""
LINES = {
    "_0 = torch.add(x, x)": None,
    '_0 = getattr(self, "0")': None,
    '_0 = ops.prim.RaiseException("It\'s \\"from_file\\" # that failed")': None,
    "_0 = torch.from_file(self.path, True, 24)": "calls aten::from_file",
    "_0 = ops.aten.from_file(self.path, True, 24)": "calls aten::from_file",
    "_0 = (ops).aten.add(x, x)": "another namespace",
    "_0 = ops.quantized.linear(x, x)": "another namespace",
    "_0 = (self.path).from_file(True, 24)": "calls aten::from_file",
    '_0 = getattr(self.path, "from_file")': "calls aten::from_file",
    '_0 = getattr( self.path, "from_file")': "calls",
    '_0 = getattr(self.path, "from" "_file")': "not as TorchScript writes it",
    '_0 = getattr(self.path, "from\\137file")': "calls getattr of what is no name",
    "_0 = '''a''' # b": "not as TorchScript writes it",
    '_0 = """ " """ torch.from_file(self.path) " "': "not as TorchScript writes it",
    "_0 = x + x": "not as TorchScript writes it",
    "_0 = torch.add(x, \\\n x)": "not as TorchScript writes it",
    "_0 = fork(self.f, x)": "has fork in its code",
    "_0 = __torch__.torch.classes.a.B(x)": "has classes in its code",
    "_0 = (self).__getstate__()": "has __getstate__ in its code",
    "_0 = " + "(" * 60 + "x" + ")" * 60: "nested too deeply",
    "_0 = x" + "[0]" * 2000: "nested too deeply",
    " " * 60 + "_0 = x": "nested too deeply",
    "_0 = torch.add(x, \u017fize)": "not as TorchScript writes it",
}


@pytest.mark.parametrize("line", LINES)
def test_code_is_judged_by_each_of_its_words(line: str):
    found = list(problems_of_code(f"{FORWARD}    {line}\n    return x\n"))
    wanted = LINES[line]
    assert found == [] if wanted is None else any(one in " ".join(found) for one in wanted.split("|"))
