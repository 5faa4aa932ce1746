"""Architectures that cannot be built, or that do not fit audio and text, are one line that names the option."""

from dataclasses import replace
from typing import Any

import pytest
import tiny_tacotron2
import tiny_waveglow

from common.config import AudioConfig
from common.errors import InputError
from common.registry import get_model
from common.text.config import TextConfig
from fastpitch.config import ModelConfig as FastPitchConfig
from hifigan.config import ModelConfig as HifiganConfig
from jasper.config import BlockConfig, FeatureConfig
from tacotron2.config import ModelConfig as Tacotron2Config
from waveglow.config import ModelConfig as WaveGlowConfig

PHONES = TextConfig(input_type="phone", symbol_set="arpabet", cleaners=())


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (FastPitchConfig, {"in_fft_conv1d_kernel_size": 4}, "in_fft_conv1d_kernel_size 4: expected an odd number"),
        (FastPitchConfig, {"in_fft_output_size": 16}, "--in-fft-output-size, .*: expected that of --symbols-emb"),
        (Tacotron2Config, {"encoder_kernel_size": 4}, "encoder_kernel_size 4"),
        (Tacotron2Config, {"symbols_embedding_dim": 8, "encoder_embedding_dim": 10}, "--encoder-embedding-dim"),
        (Tacotron2Config, {"n_frames_per_step": 2}, "n_frames_per_step"),
        (HifiganConfig, {"resblock_kernel_sizes": (3, 7)}, "and --resblock-dilation-sizes: expected as many"),
        (HifiganConfig, {"upsample_kernel_sizes": (16, 15, 4, 4)}, r"--upsample-kernel-sizes \(16, 15, 4, 4\): exp"),
        (HifiganConfig, {"msd_groups": (1, 4, 16, 16, 16, 3, 1)}, "and groups that divide a convolution"),
        (WaveGlowConfig, {"n_group": 7}, "^--groups 7: expected an even number, as every flow halves its channels$"),
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
        ("FastPitch", FastPitchConfig(), {"n_mels": 40}, TextConfig(), "makes 80 mel channels, the audio has 40"),
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
