"""Published numbers of Tacotron 2, a tiny model, and tiny corpora, for its tests."""

import re
from pathlib import Path
from typing import Any

import torch
from corpus import add_clip
from golden_files import group, listed, read_case
from tiny_checkpoint import save_networks
from torch import Tensor, nn

from common.config import AudioConfig, from_plain
from common.nn.layers import Dropout
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from tacotron2.arg_parser import TrainingOptions
from tacotron2.data_function import Tacotron2Batch
from tacotron2.decoder import MASK_CHUNK, PRENET_LAYERS
from tacotron2.loss_function import Tacotron2Objective
from tacotron2.model import ModelConfig, Tacotron2

TINY = ModelConfig(
    n_mel_channels=6,
    n_symbols=20,
    symbols_embedding_dim=8,
    encoder_embedding_dim=8,
    attention_rnn_dim=10,
    attention_dim=6,
    attention_location_n_filters=3,
    attention_location_kernel_size=5,
    decoder_rnn_dim=9,
    prenet_dim=7,
    max_decoder_steps=30,
    postnet_embedding_dim=8,
    postnet_n_convolutions=3,
)
INFERENCES = listed("tacotron2/tacotron2_infer.json", "cases")
TINY_OPTIONS = (
    "-m Tacotron2 --symbols-embedding-dim 16 --encoder-embedding-dim 16 --encoder-n-convolutions 1 "
    "--attention-rnn-dim 24 --attention-dim 12 --attention-location-n-filters 4 --attention-location-kernel-size 7 "
    "--decoder-rnn-dim 20 --prenet-dim 16 --postnet-embedding-dim 16 --postnet-n-convolutions 2"
).split()


def inference_case(folder: Path, case: str) -> tuple[Tacotron2, tuple[Tensor, Tensor], Tensor, dict[str, Tensor]]:
    """The network of a published inference, its tokens and lengths, its prenet masks and its outputs."""
    about, tensors = read_case(folder, "tacotron2_infer")
    network = published(folder, **about["cases"][case]["config_overrides"])
    tokens, lengths = tensors["input.text"], tensors["input.input_lengths"]
    if len(about["cases"][case]["mel_lengths"]) == 1:  # of an item of the batch alone
        item = int(re.search(r"item (\d+) of the batch", about["note"])[1])
        lengths = lengths[item : item + 1]
        tokens = tokens[item : item + 1, : int(lengths)]
    masks = torch.ones(MASK_CHUNK, PRENET_LAYERS, 1, network.config.prenet_dim)
    if "prenet_masks" in case:
        given = tensors["prenet_mask.all"] * 2
        masks = nn.functional.pad(given, (0, 0, 0, 0, 0, 0, 0, MASK_CHUNK - len(given)))
    return network, (tokens, lengths), masks, group(tensors, case)


def published(folder: Path, **options: Any) -> Tacotron2:
    """The goldens' small model in evaluation mode; as the original's, it sees padding unless ``options`` differ."""
    about, tensors = read_case(folder, "tacotron2_model")
    config = about["config"] | {"mask_convolutions": False} | options
    network = Tacotron2(from_plain(ModelConfig, config, where="golden"))
    network.load_state_dict(group(tensors, "state_dict"))
    return network.eval()


def tiny_network(*, seed: int = 0, **options: Any) -> Tacotron2:
    """A tiny network with random weights, whose batch norm has statistics to speak of, in evaluation mode."""
    torch.manual_seed(seed)
    network = Tacotron2(from_plain(ModelConfig, vars(TINY) | options, where="test"))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return network.eval()


def speaking_network(*, seed: int = 0, **options: Any) -> Tacotron2:
    """A tiny network whose gate fires at different frames for different texts, or not at all."""
    network = tiny_network(seed=seed, **options)
    gate = network.decoder.gate_layer.linear_layer
    with torch.no_grad():
        network.embedding.weight.mul_(4)
        network.decoder.linear_projection.linear_layer.weight.mul_(3)
        gate.weight.mul_(20)
        gate.bias.fill_(-3.0)
    return network


def save_voice(path: Path, network: Tacotron2 | None = None) -> Path:
    """A checkpoint of a network that reads text, by default a tiny one with random weights."""
    audio, text = AudioConfig(n_mels=TINY.n_mel_channels), TextConfig()
    network = network or tiny_network(n_symbols=TextFrontEnd(text).n_symbols)
    return save_networks(path, "Tacotron2", network.config, {"tacotron2": network}, audio=audio, text=text)


def tiny_batch(sizes: list[tuple[int, int]], *, seed: int = 0, config: ModelConfig = TINY) -> Tacotron2Batch:
    """Random utterances of (tokens, frames), in the order given."""
    generator = torch.Generator().manual_seed(seed)
    token_lengths, mel_lengths = (torch.tensor(lengths) for lengths in zip(*sizes))
    tokens = torch.zeros(len(sizes), int(token_lengths.max()), dtype=torch.int64)
    mels = torch.zeros(len(sizes), config.n_mel_channels, int(mel_lengths.max()))
    for row, (n_tokens, n_frames) in enumerate(sizes):
        tokens[row, :n_tokens] = torch.randint(1, config.n_symbols, (n_tokens,), generator=generator)
        mels[row, :, :n_frames] = torch.randn(config.n_mel_channels, n_frames, generator=generator)
    names = tuple(f"u{row}" for row in range(len(sizes)))
    return Tacotron2Batch(names, tokens, token_lengths, mels, mel_lengths)


def one_of(batch: Tacotron2Batch, row: int) -> Tacotron2Batch:
    """An utterance of a batch alone, without padding."""
    n_tokens, n_frames = int(batch.token_lengths[row]), int(batch.mel_lengths[row])
    return Tacotron2Batch(
        (batch.names[row],),
        batch.tokens[row : row + 1, :n_tokens],
        batch.token_lengths[row : row + 1],
        batch.mels[row : row + 1, :, :n_frames],
        batch.mel_lengths[row : row + 1],
    )


def tacotron2_objective(*, mask_padding: bool = True, **changes: Any) -> Tacotron2Objective:
    """The objective of options that differ from the defaults by ``changes``."""
    options = TrainingOptions(architecture=ModelConfig(mask_padding=mask_padding), **changes)
    return Tacotron2Objective(options, AudioConfig())


def without_dropout(network: Tacotron2) -> Tacotron2:
    """The network with every dropout off, also in training."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
    return network


def make_wavs(folder: Path, *, count: int = 3) -> Path:
    """Short recordings and ``train.txt``, their list of ``wavs/x.wav|text``."""
    lines = [add_clip(folder, f"c{index}", 0.4 + 0.1 * index) for index in range(count)]
    (folder / "train.txt").write_text("".join(lines))
    return folder
