"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from waveglow.arg_parser import (
    RECIPE,
    add_inference_arguments,
    add_training_arguments,
    inference_settings,
    model_config,
    parse_inference,
    parse_training,
)
from waveglow.data_function import build_dataset
from waveglow.loss_function import build_objective
from waveglow.model import ModelConfig, build_networks, to_torchscript
from waveglow.published_checkpoints import read_published

MODEL = ModelSpec(
    name="WaveGlow",
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
    inference=VocoderSpec(
        settings=inference_settings,
        parse=parse_inference,
        add_arguments=add_inference_arguments,
        to_torchscript=to_torchscript,
    ),
    read_published=read_published,
)
