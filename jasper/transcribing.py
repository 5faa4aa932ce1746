"""How Jasper opens, prepares and transcribes recordings."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from common.config import differences
from common.errors import OptionError
from common.recognition.recognizer import SpeechItem
from jasper.config import ModelConfig
from jasper.manifest import select_entries
from jasper.model import Transcriber
from jasper.options import InferenceOptions
from jasper.waveform import load_recording, voiced_part
from jasper.yaml_config import DatasetSettings, load_config

_OF_TRAINING = re.compile(r"(blocks\[\d+\]\.dropout|init|decoder_init): ")  # values that may differ


def settings(options: InferenceOptions, config: ModelConfig) -> InferenceOptions:
    """The options; what they leave open is as in --model-config, or on.

    Raises OptionError where that file is of another network than ``config``, the checkpoint's.
    """
    dataset = DatasetSettings(trim_silence=True)
    if options.model_config is not None:
        found = load_config(options.model_config)
        lines = differences(found.model, config, names=("--model-config", "checkpoint"))
        if lines := [line for line in lines if not _OF_TRAINING.match(line)]:
            raise OptionError(
                f"--model-config is not the checkpoint's: {'; '.join(lines)}; leave it out, or convert a published "
                "checkpoint with it: bash scripts/convert_checkpoint.sh CKPT TARGET --config FILE"
            )
        dataset = found.input_val.audio_dataset
    names = ("trim_silence", "normalize_transcripts")
    return replace(options, **{name: getattr(dataset, name) for name in names if getattr(options, name) is None})


def open_speech(
    settings: InferenceOptions, network: Transcriber, *, sources: Sequence[Path], folder: Path, max_duration: float
) -> list[SpeechItem]:
    """The utterances of ``sources``, with their transcripts as references."""
    labels, rate = network.config.labels, network.config.features.sample_rate
    dataset = DatasetSettings(
        min_duration=0.0,
        max_duration=max_duration,
        max_utts=settings.max_utterances,
        normalize_transcripts=bool(settings.normalize_transcripts),
    )
    load = partial(load_recording, sampling_rate=rate, trim=bool(settings.trim_silence))
    return [
        SpeechItem(
            name=str(entry.paths[0]),
            duration=entry.duration,
            reference=entry.normalized(dataset, labels),
            load=partial(load, entry.paths[0], where=entry.where),
        )
        for entry in select_entries(sources, folder=folder, settings=dataset)
    ]


def prepare(wave: Tensor, settings: InferenceOptions) -> Tensor:
    """The part of wave (T,) to transcribe."""
    return wave[voiced_part(wave)] if settings.trim_silence else wave


def transcribe(
    network: Transcriber, waves: Tensor, lengths: Tensor, settings: InferenceOptions
) -> tuple[list[str], list[Tensor]]:
    """waves (B, T), lengths (B,) -> B texts, and the log-probabilities (F, C) of each."""
    out = network.infer_waves(waves, lengths, pad_leading=settings.pad_leading)
    return network.decode(out), [values[:n] for values, n in zip(out.log_probs, out.lengths.tolist())]
