"""Tacotron 2: text to mel-spectrogram with attention (Shen et al. 2018), with dropout in place of zoneout."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from common.config import AudioConfig, TextConfig
from common.data import TextMelUtterance
from common.errors import InputError
from common.nn import mask_from_lengths
from common.synthesis import Controls, MelOutput
from common.text import check_model
from tacotron2.config import ModelConfig
from tacotron2.data_function import Tacotron2Batch, Tacotron2Dataset
from tacotron2.decoder import Decoder, PrenetMasks
from tacotron2.generation import DrawMasks, generate
from tacotron2.layers import Encoder, Postnet

PADDED_GATE_LOGIT = 1e3  # of frames after an utterance's end, which are certain to be after it


@dataclass(frozen=True)
class TrainingOutput:
    """The output of a teacher-forced pass over a batch."""

    mel: Tensor  # (B, n_mels, F) the decoder's
    mel_postnet: Tensor  # (B, n_mels, F) with the postnet's residual
    gate_logits: Tensor  # (B, F)
    alignments: Tensor  # (B, F, L) float32


class Tacotron2(nn.Module):
    """Encoder, attention decoder, postnet; ``forward`` is teacher-forced, ``infer`` is not."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.n_symbols, config.symbols_embedding_dim)
        bound = (6 / (config.n_symbols + config.symbols_embedding_dim)) ** 0.5
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.postnet = Postnet(config)

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

        ``prenet_masks`` (F, layers, B or 1, prenet_dim) replace the prenet's random dropout.
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
        """Mels (B, n_mels, F) of a batch, frame by frame as ``batch.mels``, with alignments and durations.

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
        """The prenet's dropout factors of an evaluation; None in training, where they are random."""
        if self.training:
            return None
        return PrenetMasks(self.config.prenet_dim, seed=seed).first(n_steps, self.embedding.weight.device)

    @torch.no_grad()
    def infer(
        self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None, *, draw_masks: DrawMasks | None = None
    ) -> MelOutput:
        """Mels of tokens (B, L) with ``lengths`` (B,), independent of what else is in the batch.

        ``MelOutput.finished`` is False for an utterance that was cut at ``max_decoder_steps``. ``draw_masks`` replaces
        the dropout factors of the prenet, which come from the seed of ``controls``.

        Raises:
            InputError: a control is out of range.
        """
        config, controls = self.config, controls or Controls()
        if draw_masks is None:
            draw_masks = functools.partial(PrenetMasks(config.prenet_dim, seed=controls.seed).draw, tokens.device)
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
        # The frame at which the gate fires is cut off, but was a true one in training: the postnet reads it.
        valid = mask_from_lengths(generated.n_steps, n_steps) if config.mask_convolutions else None
        mel = mel + self.postnet(mel, valid)
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
        """Evaluation mode; nothing needs folding."""
        self.eval()


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """A new Tacotron 2 with random weights; ``text`` None leaves the number of symbols unchecked."""
    check_model(config, audio, text)
    return {"tacotron2": Tacotron2(config)}


@torch.inference_mode()
def teach(network: Tacotron2, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
    """`Tacotron2.teacher_forced` of utterances, tokens (L,) and mels (n_mels, F), in evaluation mode."""
    items = [TextMelUtterance(str(row), *pair) for row, pair in enumerate(zip(tokens, mels))]
    return network.teacher_forced(Tacotron2Dataset.collate(items).to(mels[0].device))


def durations_from_alignments(alignments: Tensor, token_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Durations (B, L) int64: the frames whose largest attention weight is that of the token.

    alignments (B, F, L), token_lengths (B,); a row sums to its mel length (B,).
    """
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    frames = mask_from_lengths(mel_lengths, alignments.size(1))
    chosen = alignments.masked_fill(~tokens, -1.0).argmax(2)  # (B, F)
    durations = torch.zeros(len(alignments), alignments.size(2), dtype=torch.int64, device=alignments.device)
    return durations.scatter_add_(1, chosen, frames.long())
