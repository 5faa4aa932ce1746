"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.registry import GeneratorSpec, ModelSpec, TrainingSpec
from fastpitch.arg_parser import (
    RECIPE,
    add_inference_arguments,
    add_training_arguments,
    controls,
    model_config,
    parse_inference,
    parse_training,
)
from fastpitch.data_function import build_dataset, compute_statistics, teacher_forced_dataset
from fastpitch.fine_tuning import set_up_networks
from fastpitch.loss_function import build_objective
from fastpitch.model import ModelConfig, build_networks, to_torchscript
from fastpitch.published_checkpoints import read_published

MODEL = ModelSpec(
    name="FastPitch",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=RECIPE,
        add_arguments=add_training_arguments,
        parse=parse_training,
        model_config=model_config,
        build_dataset=build_dataset,
        build_objective=build_objective,
        set_up_networks=set_up_networks,
        compute_statistics=compute_statistics,
    ),
    inference=GeneratorSpec(
        add_arguments=add_inference_arguments,
        parse=parse_inference,
        controls=controls,
        to_torchscript=to_torchscript,
        phrase_columns=("pitch", "duration"),
        teacher_forced_dataset=teacher_forced_dataset,
    ),
    read_published=read_published,
)
