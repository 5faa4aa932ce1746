"""Export of HiFi-GAN's generator."""

from common.checkpoints.exported import WAVE, Exports, Part, Quantization, Shapes, random_examples
from common.config import AudioConfig
from common.synthesis.networks import ExportedVocoder
from hifigan.config import ModelConfig
from hifigan.model import Generator, context_frames


def exports(network: Generator, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Export the generator as one part, for utterances of one length; masking would take a quarter of the time."""
    inputs: Shapes = {"mel": ("batch", config.n_mel_channels, "frames")}
    examples = random_examples(inputs, {"mel": lambda values: 2 * values - 5})
    quantization = Quantization(True, lambda mels: [(mel[None],) for mel in mels])
    part = Part("", network, inputs, WAVE, examples, scriptable=True, quantization=quantization)
    return Exports((part,), {"context_frames": context_frames(config)})


class ExportedNetwork(ExportedVocoder):
    """An exported generator."""

    settings = Generator.settings
