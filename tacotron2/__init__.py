"""Tacotron 2: text to mel-spectrogram, one frame after the other, with attention."""

from common.config import AudioConfig
from common.registry import GeneratorSpec, ModelSpec, TrainingSpec
from tacotron2 import arg_parser, export
from tacotron2.config import ModelConfig
from tacotron2.data_function import build_dataset, teacher_forced_dataset
from tacotron2.inference import controls
from tacotron2.loss_function import build_objective
from tacotron2.model import build_networks, teach
from tacotron2.options import InferenceOptions
from tacotron2.published_checkpoints import read_published

MODEL = ModelSpec(
    name="Tacotron2",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=arg_parser.RECIPE,
        add_arguments=arg_parser.add_training_arguments,
        parse=arg_parser.parse_training,
        model_config=arg_parser.model_config,
        build_dataset=build_dataset,
        build_objective=build_objective,
        set_up_networks=arg_parser.set_up_networks,
        sees_padding=arg_parser.sees_padding,
    ),
    inference=GeneratorSpec(
        options=InferenceOptions,
        controls=controls,
        not_compilable="Tacotron2's decoder, one frame after the other, cannot be compiled",
        teacher=teach,
        teacher_forced_dataset=teacher_forced_dataset,
    ),
    read_published=read_published,
    published_audio=AudioConfig(),
    exports=export.exports,
    signatures=export.signatures,
    from_exported=export.from_exported,
)
