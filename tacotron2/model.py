"""Tacotron 2: text to mel-spectrogram with attention (Shen et al. 2018), with dropout in place of zoneout."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from common.config import AudioConfig, TextConfig
from common.errors import InputError, OptionError
from common.nn.layers import mask_from_lengths
from common.synthesis.controls import Controls, MelOutput
from common.text.front_end import TextFrontEnd
from tacotron2.attention import Attention
from tacotron2.data_function import Tacotron2Batch
from tacotron2.decoder import Decoder, PrenetMasks
from tacotron2.encoder import Encoder, Postnet
from tacotron2.generation import DrawMasks, generate

PADDED_GATE_LOGIT = 1e3  # of frames after an utterance's end, which are certain to be after it


@dataclass(frozen=True)
class ModelConfig:
    """Tacotron 2's architecture; the names are those of the published checkpoints' configurations."""

    n_mel_channels: int = 80
    n_symbols: int = 148
    symbols_embedding_dim: int = 512
    encoder_kernel_size: int = 5
    encoder_n_convolutions: int = 3
    encoder_embedding_dim: int = 512
    attention_rnn_dim: int = 1024
    attention_dim: int = 128
    attention_location_n_filters: int = 32
    attention_location_kernel_size: int = 31
    n_frames_per_step: int = 1
    decoder_rnn_dim: int = 1024
    prenet_dim: int = 256
    max_decoder_steps: int = 2000
    gate_threshold: float = 0.5
    p_attention_dropout: float = 0.1
    p_decoder_dropout: float = 0.1
    postnet_embedding_dim: int = 512
    postnet_kernel_size: int = 5
    postnet_n_convolutions: int = 5
    decoder_no_early_stopping: bool = False
    mask_padding: bool = True  # False: outputs after an utterance's end stay, and count in the loss, as the original's
    mask_convolutions: bool = True  # False: convolutions and batch norm see padding, as the original's

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            option = "--" + name.replace("_", "-")
            if name.endswith("kernel_size") and (value < 1 or value % 2 == 0):
                raise OptionError(f"{option} {value}: expected an odd number, so that lengths stay as they are")
            if name.startswith("p_") and not 0 <= value < 1:
                raise OptionError(f"{option} {value}: expected a probability of at least 0 and less than 1")
            if type(value) is int and not name.startswith("p_") and value < 1:
                raise OptionError(f"{option} {value}: expected a whole number of at least 1")
        if self.n_frames_per_step != 1:
            raise OptionError(f"n_frames_per_step {self.n_frames_per_step}: this decoder makes 1 frame a step")
        if not 0 < self.gate_threshold < 1:
            raise OptionError(f"--gate-threshold {self.gate_threshold}: expected a probability between 0 and 1")
        if self.symbols_embedding_dim != self.encoder_embedding_dim or self.encoder_embedding_dim % 2:
            raise OptionError(
                f"--symbols-embedding-dim {self.symbols_embedding_dim}, --encoder-embedding-dim "
                f"{self.encoder_embedding_dim}: expected one even number for both"
            )


@dataclass(frozen=True)
class TrainingOutput:
    """What a teacher-forced pass makes of a batch."""

    mel: Tensor  # (B, n_mels, F) the decoder's
    mel_postnet: Tensor  # (B, n_mels, F) with the postnet's residual
    gate_logits: Tensor  # (B, F)
    alignments: Tensor  # (B, F, L) float32


class Tacotron2(nn.Module):
    """Encoder, attention decoder, postnet; ``infer`` speaks, ``forward`` trains."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.encoder_embedding_dim
        self.embedding = nn.Embedding(config.n_symbols, config.symbols_embedding_dim)
        bound = (6 / (config.n_symbols + config.symbols_embedding_dim)) ** 0.5
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        self.encoder = Encoder(
            width, n_convolutions=config.encoder_n_convolutions, kernel_size=config.encoder_kernel_size
        )
        attention = Attention(
            config.attention_rnn_dim,
            width,
            config.attention_dim,
            location_n_filters=config.attention_location_n_filters,
            location_kernel_size=config.attention_location_kernel_size,
        )
        self.decoder = Decoder(
            n_mels=config.n_mel_channels,
            memory_dim=width,
            attention_rnn_dim=config.attention_rnn_dim,
            decoder_rnn_dim=config.decoder_rnn_dim,
            prenet_dim=config.prenet_dim,
            attention=attention,
            p_attention_dropout=config.p_attention_dropout,
            p_decoder_dropout=config.p_decoder_dropout,
        )
        self.postnet = Postnet(
            config.n_mel_channels,
            n_channels=config.postnet_embedding_dim,
            n_convolutions=config.postnet_n_convolutions,
            kernel_size=config.postnet_kernel_size,
        )

    def encode(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """tokens (B, L), lengths (B,) -> memory (B, L, C), zero at padding, and padding (B, L) bool."""
        mask = mask_from_lengths(lengths, tokens.size(1))
        memory = self.encoder(self.embedding(tokens), lengths, mask if self.config.mask_convolutions else None)
        return memory, ~mask

    def forward(
        self,
        tokens: Tensor,
        token_lengths: Tensor,
        mels: Tensor,
        mel_lengths: Tensor,
        *,
        prenet_masks: Tensor | None = None,
    ) -> TrainingOutput:
        """Teacher-forced pass: tokens (B, L), mels (B, n_mels, F), in any order of lengths.

        ``prenet_masks`` (F, layers, B or 1, prenet_dim) are drawn where they are None.
        """
        memory, padding = self.encode(tokens, token_lengths)
        decoded = self.decoder(memory, padding, mels, prenet_masks)
        mask = mask_from_lengths(mel_lengths, mels.size(2))
        mel, gate_logits = decoded.mel, decoded.gate_logits
        mel_postnet = mel + self.postnet(mel, mask if self.config.mask_convolutions else None)
        if self.config.mask_padding:
            mel, mel_postnet = mel * mask.unsqueeze(1), mel_postnet * mask.unsqueeze(1)
            gate_logits = gate_logits.masked_fill(~mask, PADDED_GATE_LOGIT)
        return TrainingOutput(mel, mel_postnet, gate_logits, decoded.alignments)

    def teacher_forced(self, batch: Tacotron2Batch, *, seed: int = 0) -> MelOutput:
        """Mels (B, n_mels, F) of a batch's texts, in step with ``batch.mels``, which each step hears, and alignments.

        In evaluation mode the prenet's dropout comes from ``seed``, so that an utterance's result is always the same.
        """
        out = self(**batch.teacher_forcing(), prenet_masks=self.prenet_masks(batch.mels.size(2), seed=seed))
        mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2))
        return MelOutput(
            mel=out.mel_postnet * mask.unsqueeze(1),
            lengths=batch.mel_lengths,
            frames=durations_from_alignments(out.alignments, batch.token_lengths, batch.mel_lengths),
            alignments=out.alignments * mask.unsqueeze(2),
        )

    def prenet_masks(self, n_steps: int, *, seed: int) -> Tensor | None:
        """The prenet's dropout factors of an evaluation; None in training, which draws its own."""
        if self.training:
            return None
        return PrenetMasks(self.config.prenet_dim, seed=seed).first(n_steps, self.embedding.weight.device)

    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """Speak tokens (B, L) of ``lengths`` (B,): each utterance as if it were alone.

        ``MelOutput.finished`` is False for an utterance that had to be stopped.

        Raises:
            InputError: a control has no sensible value.
        """
        controls = Controls() if controls is None else controls
        device = tokens.device
        masks = PrenetMasks(self.config.prenet_dim, seed=controls.seed)
        return self.speak(tokens, lengths, controls=controls, draw_masks=lambda: masks.draw(device))

    @torch.no_grad()
    def speak(self, tokens: Tensor, lengths: Tensor, *, controls: Controls, draw_masks: DrawMasks) -> MelOutput:
        """`infer` with the prenet's dropout factors given."""
        config = self.config
        max_steps = config.max_decoder_steps if controls.max_decoder_steps is None else controls.max_decoder_steps
        threshold = config.gate_threshold if controls.gate_threshold is None else controls.gate_threshold
        if max_steps < 1:
            raise InputError(f"max_decoder_steps {max_steps}: expected at least 1")
        if not 0 < threshold < 1:
            raise InputError(f"gate threshold {threshold}: expected a probability between 0 and 1")
        memory, padding = self.encode(tokens, lengths)
        generated = generate(
            self.decoder,
            memory,
            padding,
            draw_masks=draw_masks,
            max_steps=max_steps,
            gate_threshold=threshold,
            stop_early=not config.decoder_no_early_stopping,
        )
        mel, n_steps = generated.decoded.mel, generated.decoded.mel.size(2)
        # The frame at which the gate fires is not spoken, but was a true one in training: the postnet hears it.
        heard = mask_from_lengths(generated.made, n_steps) if config.mask_convolutions else None
        mel = mel + self.postnet(mel, heard)
        n_frames = int(generated.lengths.max())
        mask = mask_from_lengths(generated.lengths, n_frames)
        alignments = generated.decoded.alignments[:, :n_frames] * mask.unsqueeze(2)
        return MelOutput(
            mel=mel[:, :, :n_frames] * mask.unsqueeze(1),
            lengths=generated.lengths,
            frames=durations_from_alignments(alignments, lengths, generated.lengths),
            alignments=alignments,
            finished=generated.finished,
        )

    def prepare_for_inference(self) -> None:
        """Nothing to fold: the network is used as it was trained, with all dropout off but the prenet's."""
        self.eval()


def to_torchscript(network: Tacotron2) -> torch.jit.ScriptModule:
    """Refused: a step changes buffers in place and is recorded as a CUDA graph, neither of which TorchScript does.

    Raises:
        OptionError: always.
    """
    raise OptionError("--torchscript: Tacotron2's decoder cannot be compiled to TorchScript; leave it out")


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """A new Tacotron 2 with random weights, the one network that ``inference`` and training both need.

    ``text`` None leaves the number of symbols unchecked.
    """
    if config.n_mel_channels != audio.n_mels:
        raise InputError(f"the model makes {config.n_mel_channels} mel channels, the audio has {audio.n_mels}")
    if text is not None:
        n_symbols = TextFrontEnd(text).n_symbols
        if config.n_symbols != n_symbols:
            raise InputError(
                f"the model reads {config.n_symbols} symbols, symbol set {text.symbol_set} has {n_symbols}"
            )
    return {"tacotron2": Tacotron2(config)}


def durations_from_alignments(alignments: Tensor, token_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Frames (B, L) int64 that look at each token more than at any other; they sum to ``mel_lengths`` (B,).

    alignments (B, F, L), token_lengths (B,); zero is a token's duration that no frame looks at most.
    """
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    frames = mask_from_lengths(mel_lengths, alignments.size(1))
    chosen = alignments.masked_fill(~tokens, -1.0).argmax(2)  # (B, F)
    durations = torch.zeros(len(alignments), alignments.size(2), dtype=torch.int64, device=alignments.device)
    return durations.scatter_add_(1, chosen, frames.long())
