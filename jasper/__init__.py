"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torch import Tensor

from common.recognition.recognizer import SpeechItem
from common.registry import ModelSpec, RecognizerSpec, TrainingSpec
from jasper import arg_parser, data_function, export, loss_function, options, training_setup
from jasper.arg_parser import InferenceOptions, check_described
from jasper.manifest import select_entries
from jasper.model import ModelConfig, Transcriber, build_networks
from jasper.published_checkpoints import read_published
from jasper.waveform import load_recording, voiced_part


def _open_speech(
    options: InferenceOptions, network: Transcriber, *, sources: Sequence[Path], folder: Path
) -> list[SpeechItem]:
    if options.described is not None:
        check_described(network.config, options.described)
    labels, rate, settings = network.config.labels, network.config.features.sample_rate, options.dataset
    load = partial(load_recording, sampling_rate=rate, trim=settings.trim_silence)
    return [
        SpeechItem(
            name=str(entry.paths[0]),
            duration=entry.duration,
            reference=entry.normalized(settings, labels),
            load=partial(load, entry.paths[0], where=entry.where),
        )
        for entry in select_entries(sources, folder=folder, settings=settings)
    ]


def _transcribe(
    network: Transcriber, waves: Tensor, lengths: Tensor, options: InferenceOptions
) -> tuple[list[str], list[Tensor]]:
    out = network.infer_waves(waves, lengths, pad_leading=options.pad_leading)
    return network.decode(out), [values[:n] for values, n in zip(out.log_probs, out.lengths.tolist())]


MODEL = ModelSpec(
    name="Jasper",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=options.RECIPE,
        options=options.TrainingOptions,
        set_up=training_setup.set_up,
        model_config=training_setup.model_config,
        build_dataset=data_function.build_dataset,
        build_objective=loss_function.build_objective,
        sees_padding=lambda config: None if config.use_conv_masks else "use_conv_masks: false",
    ),
    inference=RecognizerSpec(
        parse=arg_parser.parse_inference,
        add_arguments=arg_parser.add_inference_arguments,
        default_options=InferenceOptions(),
        open_speech=_open_speech,
        prepare=lambda wave, options: wave[voiced_part(wave)] if options.dataset.trim_silence else wave,
        transcribe=_transcribe,
    ),
    read_published=read_published,
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.from_exported,
)
