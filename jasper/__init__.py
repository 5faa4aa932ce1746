"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from common.recognition.recognizer import SpeechRecordings
from common.registry import ModelSpec, RecognizerSpec, TrainingSpec
from jasper import arg_parser, data_function, loss_function
from jasper.arg_parser import InferenceOptions
from jasper.model import Jasper, ModelConfig, build_networks
from jasper.published_checkpoints import read_published
from jasper.recordings import JasperRecordings
from jasper.text import normalize_transcript
from jasper.waveform import trim_silence


def _open_speech(
    options: InferenceOptions, config: ModelConfig, *, sources: Sequence[Path], folder: Path
) -> SpeechRecordings:
    settings = replace(options.dataset, sample_rate=config.features.sample_rate)
    found = JasperRecordings(sources, folder=folder, settings=settings, labels=config.labels)
    return SpeechRecordings(
        names=[str(entry.original.path) for entry in found.entries],
        durations=found.durations,
        transcripts=[found.transcript(index) for index in range(len(found.entries))],
        load=found.load,
    )


def _transcriber(network: Jasper, options: InferenceOptions) -> Callable[[Tensor, Tensor], list[str]]:
    return partial(network.transcribe, pad_leading=options.pad_leading)


MODEL = ModelSpec(
    name="Jasper",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=arg_parser.RECIPE,
        add_arguments=arg_parser.add_training_arguments,
        parse=arg_parser.parse_training,
        model_config=arg_parser.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
    ),
    inference=RecognizerSpec(
        parse=arg_parser.parse_inference,
        add_arguments=arg_parser.add_inference_arguments,
        open_speech=_open_speech,
        transcriber=_transcriber,
        prepare=lambda wave, options: trim_silence(wave) if options.dataset.trim_silence else wave,
        default_options=InferenceOptions(),
        normalize=lambda text, config: normalize_transcript(text, config.labels),
        sampling_rate=lambda config: config.features.sample_rate,
    ),
    read_published=read_published,
)
