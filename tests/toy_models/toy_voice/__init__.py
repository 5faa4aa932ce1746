"""A toy text-to-mel model: each symbol becomes a few equal frames."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec
from toy_voice.arg_parser import RECIPE, InferenceOptions, add_training_arguments, parse_training
from toy_voice.data_function import build_dataset
from toy_voice.loss_function import build_objective
from toy_voice.model import ModelConfig, build_networks, controls, model_config

MODEL = ModelSpec(
    name="ToyVoice",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=RECIPE,
        add_arguments=add_training_arguments,
        parse=parse_training,
        model_config=model_config,
        build_dataset=build_dataset,
        build_objective=build_objective,
    ),
    inference=GeneratorSpec(controls=controls, options=InferenceOptions),
)
