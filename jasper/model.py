"""Jasper: blocks of convolutions over time with dense residual connections, and a classifier for each frame."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from common.config import AudioConfig
from common.nn.layers import Dropout, mask_from_lengths
from common.recognition.recognizer import SpeechItem, SpeechToText
from common.text.config import TextConfig
from jasper.arg_parser import InferenceOptions
from jasper.config import BlockConfig, ModelConfig
from jasper.features import FeatureExtractor
from jasper.manifest import select_entries
from jasper.text import decode, normalize_transcript
from jasper.waveform import load_recording, voiced_part
from jasper.yaml_config import DatasetSettings, load_config

_ACTIVATIONS = {"hardtanh": nn.Hardtanh, "relu": nn.ReLU, "selu": nn.SELU}
_norm = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.1)


@dataclass(frozen=True)
class JasperOutput:
    """Output of the network."""

    log_probs: Tensor  # (B, F, n_classes) float32; frames past an utterance's end are not valid
    lengths: Tensor  # (B,) int64 frames


class RowConv(nn.Conv1d):
    """A convolution over time of (B, C, 1, F), because (B, C, F) has no channels-last memory format."""

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, 1, F) -> (B, out_channels, 1, F)."""
        padding, dilation = (0, int(self.padding[0])), (1, self.dilation[0])
        return F.conv2d(x, self.weight.unsqueeze(2), self.bias, (1, self.stride[0]), padding, dilation)

    def output_lengths(self, lengths: Tensor) -> Tensor:
        """Return the number of output frames for ``lengths`` input frames."""
        return (lengths + self.stride[0] - 1).div(self.stride[0], rounding_mode="floor")


class Block(nn.Module):
    """Convolutions with batch norm and residual connections, which are added before the last activation.

    With ``masks``, frames past an utterance's end are masked before each convolution. Batch statistics count these
    frames, as published.
    """

    def __init__(self, config: BlockConfig, *, in_channels: int, inputs: tuple[int, ...], activation: str) -> None:
        """``inputs`` holds the input channels of each residual connection."""
        super().__init__()
        self.conv = nn.ModuleList()
        for index in range(config.repeat):
            sizes = (in_channels if index == 0 else config.filters, config.filters, config.kernel_size, config.stride)
            padding = config.kernel_size // 2 * config.dilation
            conv = RowConv(*sizes, padding=padding, dilation=config.dilation, bias=False)
            # Numbered as published: the last pair has no activation or dropout.
            self.conv.extend([conv, _norm(config.filters)])
            if index < config.repeat - 1:
                self.conv.extend([_ACTIVATIONS[activation](inplace=True), Dropout(config.dropout)])
        self.res = nn.ModuleList(
            nn.Sequential(RowConv(channels, config.filters, 1, bias=False), _norm(config.filters))
            for channels in inputs
        )
        self.out = nn.Sequential(_ACTIVATIONS[activation](inplace=True), Dropout(config.dropout))

    def forward(self, inputs: list[Tensor], lengths: Tensor, *, masks: bool) -> tuple[Tensor, Tensor]:
        """inputs (B, C, 1, F) each, 0 past the ends if ``masks`` -> (B, filters, 1, F), lengths (B,).

        The last one goes through the convolutions; all of them go through the residual connections, if any.
        """
        x = inputs[-1]
        for index, layer in enumerate(self.conv):
            # A convolution (isinstance doesn't work in TorchScript).
            if hasattr(layer, "output_lengths"):
                x = layer(masked(x, lengths) if masks and index > 0 else x)
                lengths = layer.output_lengths(lengths)  # type: ignore[operator]
            else:
                x = layer(x)
        for index, layer in enumerate(self.res):
            x = x + layer(inputs[index])
        return self.out(x), lengths


class Encoder(nn.Module):
    """The blocks, with published parameter names."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.masks = config.use_conv_masks
        self.dense = tuple(block.residual_dense for block in config.blocks)
        self.layers = nn.ModuleList()
        channels = config.features.n_filt
        dense: tuple[int, ...] = ()
        for block in config.blocks:
            if block.residual_dense:
                dense = (*dense, channels)
            inputs = dense if block.residual_dense else (channels,) if block.residual else ()
            self.layers.append(Block(block, in_channels=channels, inputs=inputs, activation=config.activation))
            channels = block.filters

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """features (B, C, F), lengths (B,) frames -> (B, channels, 1, F'), lengths (B,)."""
        # Otherwise CPUs convert the layout for every layer in bfloat16, which takes a sixth of a narrow network's time.
        x = features.unsqueeze(2).contiguous(memory_format=torch.channels_last)
        dense: list[Tensor] = []
        for block, is_dense in zip(self.layers, self.dense):
            if self.masks:
                x = masked(x, lengths)
            if is_dense:
                dense.append(x)
            x, lengths = block(dense if is_dense else [x], lengths, masks=self.masks)
        return x, lengths


class Decoder(nn.Module):
    """A linear classifier of each frame."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.Sequential(RowConv(config.blocks[-1].filters, config.n_classes, 1))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, C, 1, F) -> log-probabilities (B, F, n_classes) float32."""
        logits = self.layers(x).squeeze(2).transpose(1, 2)
        return F.log_softmax(logits.float(), dim=2)


class Transcriber(SpeechToText):
    """Feature extraction and decoding around the network, or around an exported file."""

    config: ModelConfig
    features: FeatureExtractor

    @abstractmethod
    def infer(self, features: Tensor, lengths: Tensor) -> JasperOutput:
        """features (B, C, F), 0 past the ends, lengths (B,) frames -> `JasperOutput`."""

    def settings(self, options: InferenceOptions) -> InferenceOptions:
        """Return the options; missing ones come from --model-config or, without it, are on."""
        dataset = DatasetSettings(trim_silence=True)
        if options.model_config is not None:
            dataset = load_config(options.model_config).input_val.audio_dataset
        names = ("trim_silence", "normalize_transcripts")
        return replace(options, **{name: getattr(dataset, name) for name in names if getattr(options, name) is None})

    def open_speech(
        self, settings: InferenceOptions, *, sources: Sequence[Path], folder: Path, max_duration: float
    ) -> list[SpeechItem]:
        """Return the utterances of ``sources``, with their transcripts as references."""
        normalize, trim = bool(settings.normalize_transcripts), bool(settings.trim_silence)
        dataset = DatasetSettings(min_duration=0.0, max_duration=max_duration, normalize_transcripts=normalize)
        dataset = replace(dataset, max_utts=settings.max_utterances)
        load = partial(load_recording, sampling_rate=self.config.features.sample_rate, trim=trim)
        items = []
        for entry in select_entries(sources, folder=folder, settings=dataset):
            path, reference = entry.paths[0], entry.normalized(dataset, self.config.labels)
            items.append(SpeechItem(str(path), entry.duration, reference, partial(load, path, where=entry.where)))
        return items

    def prepare(self, wave: Tensor, settings: InferenceOptions) -> Tensor:
        """Return the part of wave (T,) to transcribe."""
        return wave[voiced_part(wave)] if settings.trim_silence else wave

    def transcribe(self, waves: Tensor, lengths: Tensor, settings: InferenceOptions) -> tuple[list[str], list[Tensor]]:
        """waves (B, T), lengths (B,) -> B texts, and the log-probabilities (F, C) of each."""
        inputs, n_zeros = self.features(waves, lengths), settings.pad_leading
        out = self.infer(F.pad(inputs.features, (n_zeros, 0)), inputs.lengths + n_zeros)
        return self.decode(out), [values[:n] for values, n in zip(out.log_probs, out.lengths.tolist())]

    def normalize(self, text: str) -> str:
        """Return a text as the network would write it."""
        return normalize_transcript(text, self.config.labels)

    def decode(self, out: JasperOutput) -> list[str]:
        """Decode the transcript of each utterance."""
        ids_of_each = greedy_decode(out.log_probs, out.lengths, blank=self.config.blank)
        return [decode(ids, self.config.labels) for ids in ids_of_each]


class Jasper(Transcriber, nn.Module):
    """Maps features to log-probabilities of labels and blank (Li et al., arXiv:1904.03288)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.features = FeatureExtractor(config.features)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        for part, init in ((self.encoder, config.init), (self.decoder, config.decoder_init)):
            for layer in part.modules():
                if isinstance(layer, RowConv):
                    getattr(nn.init, f"{init}_")(layer.weight)

    def forward(self, features: Tensor, lengths: Tensor) -> JasperOutput:
        """features (B, C, F), lengths (B,) frames -> `JasperOutput`."""
        x, lengths = self.encoder(features, lengths)
        return JasperOutput(self.decoder(x), lengths)

    @torch.no_grad()
    def infer(self, features: Tensor, lengths: Tensor) -> JasperOutput:
        """`forward` without gradients."""
        return self(features, lengths)

    def prepare_for_inference(self) -> None:
        """Fold batch norm into the preceding convolutions; the network can't be trained afterwards."""
        self.eval()
        for layers in list(self.encoder.modules()):
            if isinstance(layers, nn.ModuleList | nn.Sequential):
                for index, layer in enumerate(layers):
                    if isinstance(layer, nn.BatchNorm2d):
                        conv: Any = layers[index - 1]
                        statistics: Any = layer.running_mean, layer.running_var, layer.eps, layer.weight, layer.bias
                        conv.weight, conv.bias = fuse_conv_bn_weights(conv.weight, conv.bias, *statistics)
                        layers[index] = nn.Identity()


def greedy_decode(log_probs: Tensor, lengths: Tensor, *, blank: int) -> list[list[int]]:
    """Take the best label of each frame, merge repeats and remove blanks (Graves et al. 2006, section 3.2).

    log_probs (B, F, n_classes), lengths (B,) frames -> label ids of each utterance.
    """
    best = log_probs.argmax(dim=2)
    best = best.masked_fill(~mask_from_lengths(lengths, best.size(1)), blank)
    previous = F.pad(best, (1, 0), value=blank)[:, :-1]
    kept = (best != blank) & (best != previous)
    # Copy from the device twice, not twice per utterance.
    best, kept = best.cpu(), kept.cpu()
    return [row[chosen].tolist() for row, chosen in zip(best, kept)]


def masked(x: Tensor, lengths: Tensor) -> Tensor:
    """Return x (B, C, 1, F) with 0 past the ends of ``lengths`` (B,) frames."""
    if lengths.device.type == "cpu" and not torch.compiler.is_compiling() and bool((lengths >= x.size(3)).all()):
        return x
    return x.masked_fill(~mask_from_lengths(lengths, x.size(3))[:, None, None], 0.0)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Build a network with random weights."""
    return {"jasper": Jasper(config)}
