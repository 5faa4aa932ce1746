"""Values of options and of variables: a switch may be said in several ways, and a wrong value is one line."""

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_tacotron2
import tiny_waveglow
from pydantic import ValidationError
from shell import ROOT, run_bash, run_here
from training_setup import parser_of, set_up

from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.registry import get_model
from common.serving.schema import SpeechRequest
from common.text.config import TextConfig
from common.text.prosody import LIMITS
from common.text.ssml import read_markup
from fastpitch.config import ModelConfig as FastPitchConfig
from hifigan.config import ModelConfig as HifiganConfig
from jasper.config import BlockConfig, FeatureConfig
from jasper.yaml_config import load_config
from tacotron2.config import ModelConfig as Tacotron2Config
from waveglow.config import ModelConfig as WaveGlowConfig


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


PHONES = TextConfig(input_type="phone", symbol_set="arpabet", cleaners=())


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (FastPitchConfig, {"in_fft_conv1d_kernel_size": 4}, "in_fft_conv1d_kernel_size 4: expected an odd number"),
        (FastPitchConfig, {"in_fft_output_size": 16}, "--in-fft-output-size, .*: expected one even number for all"),
        (Tacotron2Config, {"encoder_kernel_size": 4}, "encoder_kernel_size 4"),
        (Tacotron2Config, {"symbols_embedding_dim": 8, "encoder_embedding_dim": 10}, "--encoder-embedding-dim"),
        (Tacotron2Config, {"n_frames_per_step": 2}, "n_frames_per_step"),
        (HifiganConfig, {"resblock_kernel_sizes": (3, 7)}, "and --resblock-dilation-sizes: expected the same"),
        (HifiganConfig, {"upsample_kernel_sizes": (16, 15, 4, 4)}, r"--upsample-kernel-sizes \(16, 15, 4, 4\): exp"),
        (HifiganConfig, {"msd_groups": (1, 4, 16, 16, 16, 3, 1)}, "and groups that divide each convolution"),
        (WaveGlowConfig, {"n_group": 7}, "^--groups 7: expected an even number: every flow halves its channels$"),
        (WaveGlowConfig, {"n_early_every": 1}, "^--early-size, --early-every: they leave no channels of --groups"),
        (BlockConfig, {"filters": 8, "stride": 2}, "of a residual block"),
        (FeatureConfig, {"n_fft": 256}, "win_length 320 is longer than filter_length 256"),
    ],
)
def test_architectures_that_cannot_be_built_name_the_option(config: type, values: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        config(**values)


@pytest.mark.parametrize(
    ("model", "config", "audio", "text", "message"),
    [
        ("FastPitch", FastPitchConfig(), {"n_mels": 40}, TextConfig(), "outputs 80 mel channels, the audio has 40"),
        ("FastPitch", FastPitchConfig(), {}, PHONES, "reads 148 symbols, symbol set arpabet has 88"),
        ("Tacotron2", tiny_tacotron2.TINY, {}, None, "mel channels"),
        ("Tacotron2", replace(tiny_tacotron2.TINY, n_mel_channels=80), {}, TextConfig(), "symbols"),
        ("HiFi-GAN", HifiganConfig(), {"filter_length": 2048, "hop_length": 512}, None, "8 8 2 2 multiply to 256, ex"),
        ("WaveGlow", tiny_waveglow.SMALL, {"n_mels": 6, "hop_length": 250}, None, "^--groups 4: expected a divisor of"),
    ],
)
def test_networks_that_do_not_fit_audio_and_text_are_refused(
    model: str, config: Any, audio: dict[str, int], text: TextConfig | None, message: str
):
    with pytest.raises(InputError, match=message):
        get_model(model).model.build_networks(config, AudioConfig(**audio), text)


@pytest.mark.parametrize(
    ("command", "variables", "message"),
    [
        ("train", {"BS": "many"}, "BS=many: expected a whole number of at least 1"),
        ("train", {"AMP": "maybe"}, "AMP=maybe: expected true or false"),
        ("train", {"NNODES": "2", "NUM_GPUS": "0"}, "NNODES=2 needs MASTER_ADDR, the host name of the first machine"),
        ("train", {"MODEL": "Bark"}, "MODEL=Bark: expected one of FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Ja"),
        ("train_jasper", {"BATCH_SIZE": "64", "GRAD_ACCUMULATION": "3"}, "BATCH_SIZE=64: expected a multiple of GRAD"),
        ("train_benchmark", {"BS": "4 x"}, "BS"),
        ("evaluation", {"MANIFESTS": "a/test.json b/test.json"}, "MANIFESTS"),
        ("download_cmudict", {"CMUDICT_DIR": "a"}, "CMUDICT_DIR=a: a variable of the original script"),
        ("finetune_voice voice.pt", {}, "expected: bash scripts/finetune_voice.sh [CHECKPOINT] DATASET"),
        ("serve", {"DRY_RUN": "si"}, "DRY_RUN=si: expected"),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_one_line(command: str, variables: dict[str, str], message: str):
    script, *words = command.split()
    result = run_bash(ROOT / f"scripts/{script}.sh", *words, **({"DRY_RUN": "1"} | variables))
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert (result.returncode, result.stdout, len(lines)) == (2, "", 1)
    assert lines[0].startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("command", "variables", "message"),
    [
        ("train", {"MODEL": "FastPitch", "NUM_GPUS": "8"}, "NUM_GPUS=8, but PyTorch sees 0 GPUs here; NUM_GPUS=0 is f"),
        ("fine_tune", {"INPUT_MELS_DIR": "/absent"}, "/absent: no such folder; scripts/extract_fine_tune_mels.sh"),
        ("finetune_voice no.pt tests", {}, "no.pt: no such checkpoint"),
        ("finetune_voice README.md no_folder", {}, "no_folder: no such folder"),
        ("finetune_voice README.md tests", {}, "tests/metadata.csv: no such file; it lists clip|transcript"),
        ("prepare_dataset", {"DATASET_PATH": "/absent"}, "/absent: no such folder"),
        ("prepare_dataset", {"DATASET_PATH": "tests", "FEATURES": "true"}, "no durations: put TextGrids"),
        ("evaluation", {"JASPER": "j.pt", "DATASET_PATH": "/absent"}, "/absent/librispeech-dev-clean-wav.json: no"),
    ],
)
def test_what_is_missing_is_said_in_one_line(command: str, variables: dict[str, str], message: str):
    script, *words = command.split()
    run = run_bash if script == "train" else run_here  # PyTorch may see this process's GPUs
    result = run(ROOT / f"scripts/{script}.sh", *words, **variables)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("error: ") and message in result.stderr


@pytest.mark.parametrize("script", ["train", "evaluation"])
def test_no_value_of_a_variable_is_run(script: str, tmp_path: Path):
    canary = tmp_path / "canary"
    for name, value in itertools.product(
        ("NAME", "DATASET_PATH", "NUM_GPUS", "OUTPUT_DIR"),
        ("$(touch {})", "a;touch {}", "a[$(touch {})]", "`touch {}`"),
    ):
        run_bash(ROOT / f"scripts/{script}.sh", DRY_RUN="1", **{name: value.format(canary)})
    assert not canary.exists()
