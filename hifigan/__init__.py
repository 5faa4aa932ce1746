"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from hifigan.arg_parser import RECIPE, add_training_arguments, model_config, parse_training
from hifigan.data_function import build_dataset
from hifigan.loss_function import build_objective
from hifigan.model import ModelConfig, build_networks, set_up_networks, to_torchscript
from hifigan.published_checkpoints import read_published

MODEL = ModelSpec(
    name="HiFi-GAN",
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
    ),
    inference=VocoderSpec(to_torchscript=to_torchscript),
    read_published=read_published,
)
