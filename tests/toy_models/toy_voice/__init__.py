"""A toy text-to-mel model: each symbol becomes a few equal frames."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec
from toy_voice.data_function import build_dataset
from toy_voice.loss_function import build_objective
from toy_voice.model import ModelConfig, build_networks, controls, model_config
from toy_voice.options import RECIPE, InferenceOptions, TrainingOptions, set_up

MODEL = ModelSpec(
    name="ToyVoice",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=RECIPE,
        options=TrainingOptions,
        set_up=set_up,
        model_config=model_config,
        build_dataset=build_dataset,
        build_objective=build_objective,
    ),
    inference=GeneratorSpec(controls=controls, options=InferenceOptions),
)
