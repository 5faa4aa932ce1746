"""Sound in pieces is the whole's, whatever the vocoder: what each piece reads, how long it is, and what it gives."""

from math import prod

import pytest
import torch
from test_vocoder import AUDIO, MODEL, Counting, ready
from torch import Tensor, nn

from common.config import AudioConfig
from common.precision import Precision
from common.synthesis.networks import VocoderSettings
from common.synthesis.vocoder import FIRST_FRAMES, LONGEST_PIECE, NetworkVocoder, Vocoder, plan_pieces
from hifigan.config import PRESETS, ModelConfig
from hifigan.model import Generator, context_frames

CONTEXT = context_frames(MODEL)
LENGTHS = (1, 2, FIRST_FRAMES, FIRST_FRAMES + CONTEXT, FIRST_FRAMES + CONTEXT + 1, 150)


def hifigan_config(kind: str, rates: tuple, kernels: tuple, sizes: tuple, dilations: tuple) -> ModelConfig:
    return ModelConfig(4, kind, rates, kernels, 2 ** len(rates), sizes, dilations)


ODD_SHAPES = {
    "odd rates and kernels": hifigan_config("1", (3, 5), (9, 7), (3, 5), ((1, 2), (7,))),
    "the widest block is not the last": hifigan_config("1", (2, 3), (4, 3), (9, 3), ((4, 2), (1, 1, 1))),
    "pairs of much dilation": hifigan_config("2", (4, 1, 2), (10, 3, 2), (3, 7), ((1, 9), (2,))),
}


def mel_of(n_frames: int, n_mels: int = 8) -> Tensor:
    return torch.randn(n_mels, n_frames, generator=torch.Generator().manual_seed(n_frames)) - 4


def loud(network: Generator) -> Generator:
    """The network with weights that carry a frame's values far: fresh ones fade within a few layers."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.mul_(1.0 if name.startswith("conv_post") or name.endswith("bias") else 2.0)
    return network


def vocoder_of(network: nn.Module, audio: AudioConfig = AUDIO, **options) -> NetworkVocoder:
    options = {"settings": VocoderSettings(context=CONTEXT)} | options
    return NetworkVocoder(network, audio, name="x", precision=Precision(), **options)


def streamed(vocoder: Vocoder, mel: Tensor) -> tuple[Tensor, Tensor]:
    """The pieces put together, and the whole."""
    pieces = list(vocoder.stream(mel))
    assert all(piece.dtype == torch.float32 and piece.device.type == "cpu" and piece.dim() == 1 for piece in pieces)
    return torch.cat(pieces), vocoder.speak(mel[None], [mel.size(1)])[0]


@pytest.mark.parametrize(
    "config", [*[*PRESETS.values()][:3], MODEL, *ODD_SHAPES.values()], ids=[*[*PRESETS][:3], "tiny", *ODD_SHAPES]
)
def test_the_context_of_hifigan_is_how_far_its_samples_depend_on_the_mel(config: ModelConfig):
    narrow = ModelConfig(**vars(config) | {"upsample_initial_channel": 2 ** len(config.upsample_rates)})
    hop, context = prod(config.upsample_rates), context_frames(config)
    torch.manual_seed(0)
    network = loud(Generator(narrow))
    middle = context + 3
    mel = torch.randn(1, config.n_mel_channels, 2 * middle + 1, requires_grad=True)
    network.infer(mel)[0, middle * hop : (middle + 1) * hop].sum().backward()
    read = mel.grad[0].abs().amax(0).nonzero().flatten().tolist()
    assert (read[0], read[-1]) == (middle - context, middle + context)


@pytest.mark.parametrize("n_frames", [1, 16, 29, 48, 100, 4096, 20_000])
@pytest.mark.parametrize("context", [0, 1, 13, 99, 700])
def test_pieces_follow_each_other_start_small_and_stay_bounded(n_frames: int, context: int):
    pieces = list(plan_pieces(n_frames, context=context))
    starts, ends = zip(*pieces)
    assert [starts[0], *ends] == [*starts, n_frames]
    lengths = [end - start for start, end in pieces]
    assert min(lengths) > 0 and max(lengths) <= max(LONGEST_PIECE, context) + context
    assert lengths[0] == FIRST_FRAMES or lengths == [n_frames]
    assert lengths[:-1] == sorted(lengths[:-1]) and all(length >= context for length in lengths[1:])
    assert (len(pieces) == 1) == (n_frames <= FIRST_FRAMES + context)


@pytest.mark.parametrize("n_frames", LENGTHS)
@pytest.mark.parametrize("denoising_strength", [0.0, 0.3])
def test_pieces_of_hifigan_are_the_whole_with_and_without_denoiser(n_frames: int, denoising_strength: float):
    vocoder = vocoder_of(loud(ready(0)), denoising_strength=denoising_strength)
    torch.testing.assert_close(*streamed(vocoder, mel_of(n_frames)), atol=1e-5, rtol=0)


def test_a_piece_is_computed_when_it_is_asked_for():
    counting = Counting(ready(0))
    stream = vocoder_of(counting).stream(mel_of(400))
    assert counting.calls == []
    assert len(next(stream)) == FIRST_FRAMES * AUDIO.hop_length
    assert [shape[2] for shape, _ in counting.calls] == [FIRST_FRAMES + CONTEXT]
    stream.close()
    assert len(counting.calls) == 1
