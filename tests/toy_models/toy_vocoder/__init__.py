"""A toy vocoder: each mel frame becomes its hop of samples by a small convolution."""

from common.registry import ModelSpec, TrainingSpec, VocoderSpec
from toy_vocoder.data_function import ToyDataset
from toy_vocoder.loss_function import build_objective
from toy_vocoder.model import ModelConfig, build_networks, model_config, settings
from toy_vocoder.options import RECIPE, InferenceOptions, TrainingOptions, set_up

MODEL = ModelSpec(
    name="Toy-Vocoder",
    config=ModelConfig,
    build_networks=build_networks,
    training=TrainingSpec(
        recipe=RECIPE,
        options=TrainingOptions,
        set_up=set_up,
        model_config=model_config,
        build_dataset=ToyDataset,
        build_objective=build_objective,
    ),
    inference=VocoderSpec(settings=settings, options=InferenceOptions),
)
