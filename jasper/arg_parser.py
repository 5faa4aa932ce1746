"""Jasper's options of inference on the command line."""

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.cli import ArgumentParser, non_negative_int
from common.config import differences
from common.errors import OptionError
from jasper.config import DatasetSettings, ModelConfig
from jasper.yaml_config import load_config

_DATASET = DatasetSettings(min_duration=0.0, trim_silence=True)  # of inference; the sample rate is the model's


@dataclass(frozen=True)
class InferenceOptions:
    """How recordings are prepared for transcription, and which of them are transcribed."""

    dataset: DatasetSettings = _DATASET
    pad_leading: int = 0  # frames
    described: ModelConfig | None = None  # by --model-config, which the checkpoint must be of


def add_inference_arguments(parser: ArgumentParser) -> None:
    """Add how recordings and their transcripts are prepared."""
    group = parser.add_argument_group("Jasper")
    text = "YAML file that training took: its network must be the checkpoint's, its input_val gives defaults of these"
    group.add_argument("--model-config", type=Path, help=text)
    parser.set_defaults_reader("--model-config", _defaults_of_file)
    group.add_argument("--max-utterances", type=non_negative_int, default=0, help="transcribe so many; 0: all")
    switch = argparse.BooleanOptionalAction
    text = "leave out both ends as far as they are 60 dB below the loudest part"
    group.add_argument("--trim-silence", action=switch, default=True, help=text)
    text = "bring references into the model's form: lower case, numbers in words, no punctuation"
    group.add_argument("--normalize-transcripts", action=switch, default=True, help=text)
    text = "frames of silence before each recording; published inference had 16, training has none"
    group.add_argument("--pad-leading", type=non_negative_int, default=0, help=text)


def _defaults_of_file(path: Path) -> dict[str, Any]:
    """How a YAML file reads recordings for validation, as defaults of options, by destination."""
    dataset = load_config(path).val.audio_dataset
    return {"trim_silence": dataset.trim_silence, "normalize_transcripts": dataset.normalize_transcripts}


def parse_inference(args: argparse.Namespace) -> InferenceOptions:
    """The options of `add_inference_arguments`, and --max-duration of any recognizer."""
    dataset = replace(
        _DATASET,
        max_duration=args.max_duration or math.inf,
        max_utts=args.max_utterances,
        normalize_transcripts=args.normalize_transcripts,
        trim_silence=args.trim_silence,
    )
    described = None if args.model_config is None else load_config(args.model_config).model
    return InferenceOptions(dataset, args.pad_leading, described)


def check_described(config: ModelConfig, described: ModelConfig) -> None:
    """Refuse by OptionError a YAML file of another network, labels or features than the checkpoint's ``config``.

    What only training uses, dropout and the weights' initialization, may differ.
    """

    def compared(one: ModelConfig) -> ModelConfig:
        blocks = tuple(replace(block, dropout=0.0) for block in one.blocks)
        return replace(one, blocks=blocks, init="xavier_uniform", decoder_init="xavier_uniform")

    if lines := differences(compared(described), compared(config), names=("--model-config", "checkpoint")):
        raise OptionError(
            f"--model-config is not the checkpoint's: {'; '.join(lines)}; leave it out, or convert a published "
            "checkpoint with it: bash scripts/convert_checkpoint.sh CKPT TARGET --config FILE"
        )
