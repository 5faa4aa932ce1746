"""Wrong values of options are refused in one line."""

import re
from pathlib import Path

import pytest
from parsers import parser_of
from pydantic import ValidationError
from shell import ROOT
from training_setup import set_up

from common.errors import InputError, OptionError
from common.serving.schema import SpeechRequest
from common.text.prosody import LIMITS
from common.text.ssml import read_markup
from jasper.yaml_config import load_config


@pytest.mark.parametrize(
    ("model", "words", "message"),
    [
        ("FastPitch", "--mel-fmax 12000", "mel_fmax 12000.0 Hz: expected at most half the sampling rate, 11025 Hz"),
        ("WaveGlow", "-sr 8000 --mel-fmax 4001", "mel_fmax 4001.0 Hz: expected at most half the sampling rate"),
    ],
)
def test_no_band_ends_above_half_the_sampling_rate(tmp_path: Path, model: str, words: str, message: str):
    (tmp_path / "list.txt").write_text("wavs/a.wav|a\n")
    lists = ["--training-files", f"{tmp_path}/list.txt", "--validation-files", f"{tmp_path}/list.txt"]
    learned = ["--learned-alignment"] if model == "FastPitch" else []
    argv = ["--model", model, "-o", str(tmp_path), "-d", str(tmp_path), *lists, *learned, *words.split()]
    with pytest.raises(OptionError, match=re.escape(message)):
        set_up(*argv)


@pytest.mark.parametrize("name", ["rate", "pitch", "volume"])
def test_a_control_has_one_range_in_options_requests_and_ssml(name: str, capsys: pytest.CaptureFixture[str]):
    field = {"rate": "speed"}.get(name, name)
    for value, factor in zip(LIMITS[name], (0.99, 1.01)):
        beyond = value * factor if value else -0.01
        assert getattr(SpeechRequest(**{"input": "a", field: value}), field) == value
        with pytest.raises(ValidationError, match=field):
            SpeechRequest(**{"input": "a", field: beyond})
        if name == "rate":
            parser_of("inference").parse_known_args(["--pace", str(value)])
            with pytest.raises(SystemExit):
                parser_of("inference").parse_known_args(["--pace", str(beyond)])
        if value:
            read_markup(f"<speak><prosody {name}='{100 * value:g}%'>a</prosody></speak>", where="a")
            with pytest.raises(InputError, match=f"factor of {name} from"):
                read_markup(f"<speak><prosody {name}='{100 * beyond:g}%'>a</prosody></speak>", where="a")


@pytest.mark.parametrize("labels", ["on, off", "1, 2", "~, a", "yes, b"])
def test_labels_that_yaml_reads_as_other_values_are_named(tmp_path: Path, labels: str):
    published = (ROOT / "jasper/configs/jasper_digits.yaml").read_text()
    kept = re.sub(r"^labels: .*(\n  .*)*", f"labels: [{labels}]", published, flags=re.MULTILINE)
    (tmp_path / "a.yaml").write_text(kept)
    with pytest.raises(InputError, match=r"a\.yaml: .*labels"):
        load_config(tmp_path / "a.yaml")
    (tmp_path / "a.yaml").write_text(kept.replace(labels, "' ', n, y, N, Y"))
    assert load_config(tmp_path / "a.yaml").model.labels == (" ", "n", "y", "N", "Y")
