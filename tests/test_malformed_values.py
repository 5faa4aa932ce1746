"""Values of wrong types, ranges and sizes in files: each is refused in one line that names the file and the field."""

import json
import math
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import foreign
import pytest
import torch
from safetensors.torch import save_file
from tiny_voice import save_voice

from common.audio.arguments import read_audio_config
from common.checkpoints import Checkpoint, load_checkpoint, load_last_checkpoint, load_networks, save_checkpoint
from common.checkpoints.exported import METADATA_KEY
from common.config import AudioConfig, TextConfig, to_plain
from common.data import frames_of_tokens, load_fractions
from common.errors import CheckpointError, InputError, OptionError, one_line, shown
from common.files import read_json, read_yaml, write_json
from common.logger import read_log
from common.training.optim import build_optimizer, load_state_by_name, state_by_name
from fastpitch.config import ModelConfig as FastPitchConfig
from fastpitch.model import build_networks
from hifigan.json_config import read_json_config
from scripts import inspect_checkpoint


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\x00\n\x1b[31m", r"'a\x00\n\x1b[31m'"),
        ("\udcff", r"'\udcff'"),
        (b"\xff", r"b'\xff'"),
        (22050.5, "22050.5"),
        (math.inf, "inf"),
        (True, "True"),
        (None, "None"),
        ((1, ("a", [])), "(1, ('a', []))"),
        ((1,), "(1,)"),
        (set(), "set()"),
        ({"a": [[[[1]]]]}, "{'a': [[a list of 1]]}"),
        (torch.zeros(3, 4), "a Tensor (3, 4) of float32"),
        (torch.zeros(3).numpy(), "a ndarray (3,) of float32"),
        (object(), "an object"),
    ],
)
def test_a_value_in_a_message_is_printable_and_says_its_type(value, expected):
    assert shown(value) == expected


def test_a_huge_value_in_a_message_is_short_and_takes_no_memory():
    recursive: list = []
    recursive.append(recursive)
    huge = ["x" * 10**7, b"\x00" * 10**7, [1] * 10**6, {"k" * 10**6: "v" * 10**6}, [["a" * 999] * 999] * 999, recursive]
    tracemalloc.start()
    assert all(len(shown(value)) < 350 for value in huge)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert shown(10**5000) == "a whole number of 16610 bits"
    assert shown("x" * 101).endswith("x...") and shown("x" * 100) == repr("x" * 100)
    assert shown("x" * 10**7, longest=4) == "'xxx..."


def refused(call: Callable[[], object], kind: type[InputError] = InputError) -> str:
    """The one line that a call is refused by."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1000, "one short line"
    assert not isinstance(caught.value, OptionError), "a file is no option"
    return message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, ": not JSON (maximum recursion depth exceeded"),
        ('{"a": ' + "9" * 5000 + "}", ": not JSON (Exceeds the limit (4300 digits) for integer string conversion"),
        ('{"a": "NaN",\n "b": NaN}', ": not JSON (NaN is not a number in JSON)"),
        ("[-Infinity]", ": not JSON (-Infinity is not a number in JSON)"),
        ('{\n"a": }', ":2: not JSON (Expecting value)"),
        ("", ":1: not JSON (Expecting value)"),
        ("\x00", ":1: a zero byte; UTF-16 without a byte order mark has them: save it as UTF-8"),
        ('"' + "x" * 2**24 + '"', ": larger than 16777216 bytes, the most that such a file may have"),
    ],
    ids=range(8),
)
def test_json_that_is_too_large_or_none_is_one_line(tmp_path: Path, content: str, message: str):
    path = tmp_path / "a.json"
    path.write_text(content)
    assert refused(lambda: read_json(path)).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 1000, ": not YAML (RecursionError"),
        ("a: 1\nb: " + "9" * 5000, ": not YAML (ValueError: "),
        ("a: 1\nb: 2001-99-99", ": not YAML (ValueError: month must be in 1..12"),
        ("a: !!python/object/apply:os.system [x]", ":1: not YAML (could not determine a constructor for the tag"),
        ("a: *b", ":1: not YAML (found undefined alias 'b')"),
        ("? [a]\n: b", ":1: not YAML (found unhashable key)"),
        ("a\nb\x07", r":2: not YAML (character '\x07')"),
        ("a: 1\n- b", ":2: not YAML (expected <block end>, but found '-')"),
        ("#" * 65537, ": larger than 65536 bytes"),
        ('a: 1\nb: "\\UFFFFFFFF"', ": not YAML ("),  # the kind of error is another in Python 3.13
    ],
    ids=range(10),
)
def test_yaml_that_is_too_large_or_none_is_one_line(tmp_path: Path, content: str, message: str):
    path = tmp_path / "a.yaml"
    path.write_text(content)
    line = refused(lambda: read_yaml(path))
    assert line.startswith(f"{path}:") and message in line


def test_aliases_and_merged_keys_of_yaml_are_read(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text("a: &a {x: 1, y: 1e-5}\nb:\n  <<: *a\n  x: 2\nc: [*a, *a]\n")
    value = read_yaml(path)
    assert value["b"] == {"x": 2, "y": 1e-5} and value["c"] == [{"x": 1, "y": 1e-5}] * 2


AUDIO_CASES = [
    ("[]", " []: expected keys with values"),
    ("null", " None: expected keys with values"),
    ('"22050"', " '22050': expected keys with values"),
    ("true", " True: expected keys with values"),
    ("22050.5", " 22050.5: expected keys with values"),
    ('{"sampling_rate": "22050"}', " sampling_rate '22050': expected a whole number"),
    ('{"sampling_rate": 22050.5}', " sampling_rate 22050.5: expected a whole number"),
    ('{"sampling_rate": 22050.0}', " sampling_rate 22050.0: expected a whole number"),
    ('{"sampling_rate": true}', " sampling_rate True: expected a whole number"),
    ('{"sampling_rate": null}', " sampling_rate None: expected a whole number"),
    ('{"sampling_rate": [22050]}', " sampling_rate [22050]: expected a whole number"),
    ('{"sampling_rate": {"a": 1}}', " sampling_rate {'a': 1}: expected a whole number"),
    ('{"sampling_rate": 0}', " sampling_rate 0: expected at least 1"),
    ('{"sampling_rate": -22050}', " sampling_rate -22050: expected at least 1"),
    ('{"sampling_rate": 1000001}', " sampling_rate 1000001: expected at most 1000000"),
    ('{"n_mels": 1' + "0" * 300 + "}", " n_mels a whole number of 997 bits: expected a whole number of at most"),
    ('{"mel_fmax": 1e999}', " mel_fmax inf: expected a number"),
    ('{"mel_fmin": 1e300}', " mel_fmin 1e+300: expected a number"),
    ('{"mel_fmin": "0"}', " mel_fmin '0': expected a number"),
    ('{"mel_fmin": false}', " mel_fmin False: expected a number"),
    ('{"mel_fmin": null}', " mel_fmin None: expected a number"),
    ('{"framing": 1}', " framing 1: expected a word"),
    ('{"framing": "left"}', " audio framing 'left': expected one of centered, aligned"),
    ('{"framing": "\\u001b[31m"}', r" audio framing '\x1b[31m': expected one of centered, aligned"),
    ('{"peak": -1}', " peak -1: expected a number above 0"),
    ('{"loudness": 1}', " unknown key loudness; expected one of filter_length, framing"),
    ('{"\\n": 1}', r" unknown key '\n'; expected one of filter_length, framing"),
]


@pytest.mark.parametrize(("content", "message"), AUDIO_CASES, ids=range(len(AUDIO_CASES)))
def test_a_wrong_value_in_audio_json_is_one_line_that_names_file_and_field(tmp_path: Path, content: str, message: str):
    path = tmp_path / "audio.json"
    path.write_text(content)
    line = refused(lambda: read_audio_config(path))
    assert line.startswith(f"{path}:{message}")


MEL = torch.arange(24.0).reshape(4, 6) / 10


TENSORS = {  # what is no mel -> why
    "sparse": (MEL.to_sparse, "a tensor of layout sparse_coo, expected a dense one"),
    "CSR": (MEL.to_sparse_csr, "a tensor of layout sparse_csr, expected a dense one"),
    "BSR": (lambda: MEL.to_sparse_bsr((2, 2)), "a tensor of layout sparse_bsr, expected a dense one"),
    "nested": (
        lambda: torch.nested.nested_tensor([MEL[0], MEL[1, :3]]),
        "a tensor of layout nested, expected a dense one",
    ),
    "meta": (lambda: MEL.to("meta"), "a tensor without values (on the device meta)"),
    "quantized": (
        lambda: torch.quantize_per_tensor(MEL, 0.1, 0, torch.quint8),
        "of quint8, expected real numbers of a usual type",
    ),
    "float8": (lambda: MEL.to(torch.float8_e4m3fn), "of float8_e4m3fn, expected real numbers of a usual type"),
    "complex": (lambda: MEL.to(torch.complex64), "of complex64, expected real numbers of a usual type"),
    "uint64": (lambda: MEL.to(torch.uint64), "of uint64, expected real numbers of a usual type"),
    "bool": (lambda: MEL > 1, "of bool, expected fractions, such as float32"),
    "whole": (lambda: MEL.long(), "of int64, expected fractions, such as float32"),
    "overflow": (lambda: MEL.double() * 1e300, "holds values that are not finite in float32"),
    "NaN": (lambda: MEL / 0 * 0, "holds values that are not finite"),
    "list": (lambda: [MEL], "holds a list, expected one tensor"),
    "dict": (lambda: {"mel": MEL}, "holds a dict, expected one tensor"),
}


@pytest.mark.filterwarnings("ignore")  # PyTorch's, of layouts and types that it calls prototypes
@pytest.mark.parametrize("case", TENSORS)
def test_a_tensor_that_is_no_mel_is_one_line_that_names_file_and_place(tmp_path: Path, case: str):
    make, message = TENSORS[case]
    path = tmp_path / "a.pt"
    torch.save(make(), path)
    assert refused(lambda: load_fractions(path, where="list.txt:7")) == f"{path}: {message} (list.txt:7)"


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_a_mel_of_any_usual_type_is_read_as_float32(tmp_path: Path, kind: torch.dtype):
    torch.save(torch.nn.Parameter(MEL.to(kind)), tmp_path / "a.pt")
    mel = load_fractions(tmp_path / "a.pt", where="list.txt:7")
    assert mel.dtype == torch.float32 and not mel.requires_grad
    torch.testing.assert_close(mel, MEL, atol=0.01, rtol=0.01)


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        (torch.tensor([True]), "expected a row of whole numbers of frames"),
        (torch.tensor([2, 2.5]), "expected a row of whole numbers of frames"),
        (torch.tensor([-1, 6]), "expected a row of whole numbers of frames"),
        (torch.tensor([math.nan]), "expected a row of whole numbers of frames"),
        (torch.tensor([[5]]), "expected a row of whole numbers of frames"),
        (torch.tensor(5), "expected a row of whole numbers of frames"),
        (torch.tensor([math.inf]), "inf frames in all, but mel.pt has 5"),
        # in 64 bits their sum is 5
        (torch.tensor([2**62] * 4 + [5]), "18446744073709551616 frames in all, but mel.pt has 5"),
        (torch.zeros(0), "0 frames in all, but mel.pt has 5"),
    ],
    ids=range(9),
)
def test_durations_that_are_none_are_one_line(durations: torch.Tensor, message: str):
    line = refused(lambda: frames_of_tokens(durations, 5, name="d.pt", frames_of="mel.pt", where="list.txt:7"))
    assert line == f"d.pt: {message} (list.txt:7)"


@pytest.mark.parametrize("kind", [torch.uint8, torch.int64, torch.float32, torch.bfloat16])
def test_durations_of_any_usual_type_are_read_as_whole_numbers(kind: torch.dtype):
    durations = frames_of_tokens(torch.tensor([2, 3], dtype=kind), 5, name="d.pt", frames_of="mel.pt")
    assert durations.dtype == torch.int64 and durations.tolist() == [2, 3]


SMALL = FastPitchConfig(
    n_mel_channels=4,
    n_symbols=148,
    **{f"{side}_fft_{name}": 8 for side in ("in", "out") for name in ("conv1d_filter_size", "output_size")},
    **{f"{side}_fft_{name}": 1 for side in ("in", "out") for name in ("n_layers", "d_head")},
    symbols_embedding_dim=8,
    dur_predictor_filter_size=8,
    pitch_predictor_filter_size=8,
)
BIAS = "proj.bias"


@pytest.fixture(scope="module")
def payload(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """All that a small checkpoint of training holds."""
    networks = build_networks(SMALL, AudioConfig(n_mels=4), TextConfig())
    weights = {name: network.state_dict() for name, network in networks.items()}
    moments = {"step": torch.tensor(3.0), "exp_avg": torch.zeros(4), "exp_avg_sq": torch.zeros(4)}
    settings = {"lr": 0.1, "betas": [0.9, 0.98], "eps": 1e-9}
    training = {
        "epoch": 1,
        "iteration": 3,
        "optimizers": {"fastpitch": {"settings": settings, "states": {f"fastpitch.{BIAS}": moments}}},
        "scaler": {"scales": {"fastpitch": 1024.0}, "finite_since": {"fastpitch": 2}},
        "skipped_in_a_row": 0,
        "steps_done": 3,
        "sums": {"loss": 1.5},
        "frames": 10,
        "seconds": 0.5,
        "skipped": 0,
        "global_batch": 4,
        "random": [{"cpu": torch.get_rng_state()}],
        "best": {"epoch": 1, "loss": 0.5},
    }
    path = tmp_path_factory.mktemp("checkpoint") / "a.pt"
    audio = AudioConfig(n_mels=4)
    save_checkpoint(
        path, Checkpoint("FastPitch", to_plain(SMALL), audio, TextConfig(), weights, ema=weights, training=training)
    )
    return torch.load(path, weights_only=True)


def with_value(payload: dict, place: str, value: object) -> dict:
    """A copy with another value at a place such as ``config/audio/n_mels``."""
    key, _, rest = place.partition("/")
    return payload | {key: with_value(payload[key], rest, value) if rest else value}


FIELDS = {  # place -> what its values may be, and values that it must not have
    "format": ("expected 1", None, [], "1", 1.0, True, torch.tensor(1), 2),
    "model": ("expected", None, [], 3, torch.zeros(2), "Tacotron9000", "\x1b[31m"),
    "config": ("expected keys with values", [], "x", 3, torch.zeros(2)),
    "config/model": ("expected keys with values", [], "x", 3, torch.zeros(2)),
    "config/audio": ("expected keys with values", [], "x", 3, torch.zeros(2)),
    "config/text": ("expected keys with values", [], "x", 3, torch.zeros(2)),
    "config/audio/n_mels": ("expected", None, "4", 4.0, True, 0, 10**30, [4], torch.tensor(4)),
    "config/text/speakers": (
        "expected",
        *(None, "ann", {"ann": 0}, [1], torch.zeros(2), ["a", "b", "c"], ["a", "a"], ["", "b"], ["a\nb"], ["\x1b[31m"]),
        *(["a" * 300], ["a|b"], ["a/b"], ["."], ["-a"], [" a"]),
    ),
    "config/text/symbol_set": ("expected one of", "x", "", "\x1b"),
    "config/text/cleaners": ("expected one of", ["x"], ["english_cleaners", "\x1b"]),
    "config/model/n_symbols": ("expected", None, "20", 20.0, True, 0, 10**7, [20], torch.tensor(20)),
    "config/model/in_fft_n_layers": ("expected", -1, 10**7, 1e7),
    "config/model/in_fft_conv1d_filter_size": ("expected", 10**10),
    "config/model/in_fft_conv1d_kernel_size": ("expected", 2, 10**6 + 1),
    "config/model/p_in_fft_dropout": ("expected", None, "0", math.nan, math.inf, -0.1, 1, [0.1]),
    "config/model/width": ("unknown key width", 1),
    "networks": ("expected", None, [], "x", 3, torch.zeros(2), {3: {}}),
    "networks/fastpitch": ("expected keys with values", [], "x", torch.zeros(2)),
    f"networks/fastpitch/{BIAS}": (
        "",
        *(None, [0.0] * 4, "x", 0.0, torch.zeros(5), torch.zeros(4, dtype=torch.complex64), torch.zeros(4).to_sparse()),
        *(torch.zeros(4, device="meta"), torch.zeros(4, dtype=torch.int64), torch.zeros(4) > 0),
        *(torch.full((4,), math.nan), torch.full((4,), math.inf)),
    ),
    "networks/fastpitch/pitch_std": ("", torch.ones(1), -torch.ones(1), torch.ones(2)),
    "ema": ("expected", [], "x", 3, torch.zeros(2), {}, {"generator": {}}, {"fastpitch": {}, "generator": {}}),
    "ema/fastpitch": ("missing", {}, {BIAS: torch.zeros(4)}),
    f"ema/fastpitch/{BIAS}": (
        "",
        *(None, "x", torch.zeros(4).to_sparse(), torch.zeros(5), torch.zeros(4).long(), torch.full((4,), math.nan)),
    ),
    "ema/fastpitch/pitch_std": ("", -torch.ones(1)),
    "assumed": ("expected a", None, "n_mels", 3, [3], torch.zeros(2)),
    "stripped": ("expected", [], "float32", True, {"dtype": 3, "ema": True}, {"dtype": "float16", "ema": 1}),
    "training": ("expected", [], "x", 3, torch.zeros(2)),
    "training/epoch": ("expected", None, -1, 1.5, "1", [1], torch.tensor(1)),
    "training/iteration": ("expected", None, -1, 1.5, "x", [1], torch.tensor(1)),
    "training/steps_done": ("expected", -3, 1.5, "x", [1], torch.tensor(1)),
    "training/global_batch": ("expected", None, 0, -4, 4.0, "x"),
    "training/seconds": ("expected", None, -1.0, math.nan, "x"),
    "training/sums": ("expected", None, [], {"loss": "x"}, {"loss": None}, 3),
    "training/best": ("expected", [], 3, {"loss": 1.0}, {"epoch": "x"}, {"epoch": 1, "loss": "x"}, {"epoch": 2}),
    "training/best/loss": ("a number", math.nan),
    "training/scaler": ("expected", None, [], {"scales": {"fastpitch": -1.0}}, {"finite_since": {"fastpitch": "x"}}),
    "training/scaler/scales": ("fastpitch", {}, *({"fastpitch": x} for x in (0, 1e-300, math.inf, math.nan, 1e300))),
    "training/scaler/finite_since": ("fastpitch", {"fastpitch": -1}, {"mpd": 1}, {}),
    "training/optimizers": ("expected", None, [], {}, {"fastpitch": None}, {"fastpitch": []}),
    "training/optimizers/fastpitch/settings/lr": ("expected", math.nan, math.inf, -0.1, "x", [0.1], torch.tensor(0.1)),
    "training/optimizers/fastpitch/settings/betas": ("expected", (2.0, -1), (0.9,), 0.9, None, (0.9, math.nan), (1, 0)),
    "training/optimizers/fastpitch/settings/eps": ("expected", math.nan, -1.0),
    "training/optimizers/fastpitch/states": ("", None, [], {"proj.bias": None}, {"proj.bias": {}}),
    f"training/optimizers/fastpitch/states/fastpitch.{BIAS}/step": ("", None, "x", -1.0, math.nan, torch.zeros(2)),
    f"training/optimizers/fastpitch/states/fastpitch.{BIAS}/exp_avg": (
        "",
        *(None, "x", torch.full((4,), math.nan), torch.zeros(4).to_sparse(), torch.zeros(4, dtype=torch.complex64)),
        *(
            torch.full((4,), -math.inf),
            torch.full((4,), 1e300, dtype=torch.float64),
            torch.zeros(4) > 0,
            torch.zeros(0),
        ),
    ),
    f"training/optimizers/fastpitch/states/fastpitch.{BIAS}/exp_avg_sq": ("", -torch.ones(4), -1.0),
    "training/random": ("", None, {}, [None], [{}], [{"cpu": None}], [{"cpu": torch.zeros(3)}], [{"cpu": "x"}]),
}


@pytest.mark.parametrize("place", FIELDS)
def test_a_wrong_field_of_a_checkpoint_is_one_line_that_names_file_and_field(payload: dict, place: str, tmp_path: Path):
    message, *values = FIELDS[place]
    path = tmp_path / "a.pt"
    for value in values:
        torch.save(with_value(payload, place, value), path)

        def load() -> None:
            checkpoint = load_checkpoint(path)
            for ema in (False, True):
                load_networks(checkpoint, ema=ema, device=torch.device("cpu"), where=str(path))

        line = refused(load, CheckpointError)
        assert line.startswith(f"{path}: ") and message in line
        field = place.rpartition("/")[2].rpartition(".")[2].removesuffix("s").replace("_set", "")
        if "cannot be read" not in line:  # which the reader of the file refuses, where values have no names
            assert field in line, "names the field"


def test_a_checkpoint_as_it_is_saved_is_read_whole(payload: dict, tmp_path: Path):
    torch.save(payload, tmp_path / "a.pt")
    checkpoint = load_checkpoint(tmp_path / "a.pt")
    assert checkpoint.training["sums"] == {"loss": 1.5} and checkpoint.audio == AudioConfig(n_mels=4)
    load_networks(checkpoint, ema=True, device=torch.device("cpu"))


def test_resuming_falls_back_to_the_checkpoint_before_one_whose_training_state_is_wrong(payload: dict, tmp_path: Path):
    torch.save(payload, tmp_path / "FastPitch_checkpoint_1.pt")
    wrong = {"steps_done": -3, "iteration": "x", "epoch": 1.5, "optimizers": {}, "random": [{"cpu": torch.zeros(3)}]}
    for epoch, (name, value) in enumerate(wrong.items(), 2):
        torch.save(with_value(payload, f"training/{name}", value), tmp_path / f"FastPitch_checkpoint_{epoch}.pt")
    warnings: list[str] = []
    found = load_last_checkpoint(tmp_path, "FastPitch", warn=warnings.append)
    assert found is not None and found[0].name == "FastPitch_checkpoint_1.pt"
    assert len(warnings) == len(wrong)
    for name, line in zip(wrong, reversed(warnings)):
        assert f"training: {name}" in line and line.endswith("; trying the one before it")


PUBLISHED = {
    "FastPitch": (foreign.fastpitch_1_1, ("config/n_symbols", "config/p_in_fft_dropout", "train_setup/p_arpabet")),
    "Tacotron 2": (foreign.tacotron2, ("config/n_symbols", "config/gate_threshold", "config/decoder_rnn_dim")),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_wrong_field_of_a_published_checkpoint_is_one_line_that_names_file_and_field(name: str, tmp_path: Path):
    make, places = PUBLISHED[name]
    published, path = make(), tmp_path / "a.pt"
    for place in places:
        for value in (None, "x", -1, True, 10**30):
            torch.save(with_value(published, place, value), path)
            line = refused(lambda: load_checkpoint(path), CheckpointError)
            assert line.startswith(f"{path}: ")
            assert place.rpartition("/")[2] in line or "an integer of 13 bytes" in line


@pytest.mark.parametrize("key", ["n_fft", "upsample_rates", "resblock_dilation_sizes", "fmin", "resblock"])
def test_a_wrong_value_in_the_configuration_of_the_authors_hifigan_is_one_line(key: str, tmp_path: Path):
    path = foreign.save_authors_hifigan(tmp_path)
    for value in ([], ["a"], {"a": 1}, -1, 10**30, "\x1b[31m"):
        write_json(tmp_path / "config.json", foreign.authors_config() | {key: value})
        line = refused(lambda: load_checkpoint(path), CheckpointError)
        assert "config.json" in line and "--" not in line
        write_json(tmp_path / "options.json", {key: value})
        if key != "fmin":
            assert f"options.json: {key}" in refused(lambda: read_json_config(tmp_path / "options.json"))


DESCRIPTIONS = {  # place -> values that it must not have, in a file that is exported for inference
    "model": (None, [], 3, "Tacotron9000"),
    "network": (None, [], 3),
    "config": (None, [], "x"),
    "config/audio/n_mels": (None, "4", 4.5, True, -1, 10**30),
    "config/model/n_symbols": (None, "4", 4.5, True, -1, 10**30),
    "ema": (None, 1, "true"),
    "assumed": (None, "n_mels", [3]),
    "parts": (None, "", 3, [3], []),
    "inputs": (None, [], "x"),
    "context_frames": ("3", 1.5, True),
    "version": (None, "1", 1.5, 2, [1]),
}


@pytest.mark.parametrize("place", DESCRIPTIONS)
def test_a_wrong_field_of_an_exported_files_description_is_one_line(payload: dict, place: str, tmp_path: Path):
    path = tmp_path / "a.safetensors"
    description = {
        "version": 1,
        "model": "FastPitch",
        "network": "fastpitch",
        "config": payload["config"],
        "ema": False,
    }
    description |= {"assumed": [], "parts": [""], "inputs": {}, "context_frames": None}
    weights = payload["networks"]["fastpitch"]

    def save(values: object) -> None:
        save_file(weights, path, metadata={METADATA_KEY: json.dumps(values)})

    save(description)
    assert load_checkpoint(path).audio == AudioConfig(n_mels=4)
    for value in DESCRIPTIONS[place]:
        save(with_value(description, place, value))
        line = refused(lambda: load_checkpoint(path), CheckpointError)
        assert line.startswith(f"{path}: ") and place.rpartition("/")[2].removesuffix("s") in line
    for other in ([], None, "x", 3):
        save(other)
        assert refused(lambda: load_checkpoint(path), CheckpointError).startswith(f"{path}: its description")


def test_a_log_whose_lines_are_of_another_kind_is_one_line(tmp_path: Path):
    path = tmp_path / "nvlog.json"
    deep, digits = "[" * 100_000, '{"type": "LOG", "data": ' + "9" * 5000 + "}"
    for record in ("[]", "3", "null", '{"type": "LOG"}', '{"type": "LOG", "data": []}', '{"step": 1}', deep, digits):
        path.write_text(f'DLLL {{"type": "METADATA"}}\nDLLL {record}\n')
        assert refused(lambda: read_log(path)).startswith(f"{path}:2: ")


def test_an_optimizers_state_that_would_break_its_next_step_is_refused():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.ones(2)
    optimizer = build_optimizer("adam", [weight], learning_rate=0.1, weight_decay=0.0)
    optimizer.step()
    saved = state_by_name(optimizer, {"w": weight})
    state, settings = saved["states"]["w"], saved["settings"]
    wrong = [{"settings": settings | change} for change in ({"eps": "x"}, {"eps": math.nan}, {"amsgrad": 3})]
    moments = ("x", None, torch.zeros(3), torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.complex64))
    wrong += [{"states": {"w": state | {"exp_avg": value}}} for value in moments]
    wrong += [{"states": {"w": {"step": 1.0}}}, {"states": {"w": state | {"x": torch.zeros(2)}}}]
    for change in wrong:
        load = partial(load_state_by_name, optimizer, saved | change, {"w": weight}, where="a.pt")
        line = refused(load, CheckpointError)
        assert line.startswith("a.pt: ") and "optimizer" in line
    load_state_by_name(optimizer, saved, {"w": weight}, where="a.pt")
    optimizer.step()


def test_an_error_of_control_bytes_alone_is_of_bounded_length():
    line = one_line("\0" * 100_000)
    assert line.isprintable() and 1000 < len(line) <= 2000


def test_inspecting_shows_no_raw_bytes_of_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture):
    path = save_voice(tmp_path / "a.pt", text=TextConfig(cmudict="a\0b\x1b[31mc"))
    inspect_checkpoint.main([str(path)])
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())
