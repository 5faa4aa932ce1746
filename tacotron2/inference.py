"""How Tacotron 2 speaks: the same for a network and for its exported files."""

import functools
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common.nn import mask_from_lengths
from common.synthesis import Controls, MelOutput
from tacotron2.config import ModelConfig
from tacotron2.decoder import PrenetMasks
from tacotron2.generation import DrawMasks, Steps, generate
from tacotron2.options import InferenceOptions


class Inference(ABC):
    """What infers, given an encoder with a decoder, and a postnet."""

    config: ModelConfig

    @abstractmethod
    def begin(self, tokens: Tensor, lengths: Tensor, *, gate_threshold: float) -> Steps:
        """Encode tokens (B, L) with ``lengths`` (B,); the steps that decode them."""

    @abstractmethod
    def refine(self, mel: Tensor, lengths: Tensor) -> Tensor:
        """Decoded mels (B, n_mels, F) with ``lengths`` (B,) -> the same with the postnet's residual."""

    @torch.no_grad()
    def infer(
        self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None, *, draw_masks: DrawMasks | None = None
    ) -> MelOutput:
        """Mels of tokens (B, L) with ``lengths`` (B,), independent of what else is in the batch.

        ``MelOutput.finished`` is False for an utterance that was cut at ``max_decoder_steps``. ``draw_masks`` replaces
        the dropout factors of the prenet, which come from the seed of ``controls``.
        """
        config, controls = self.config, controls or Controls()
        if draw_masks is None:
            draw_masks = functools.partial(PrenetMasks(config.prenet_dim, seed=controls.seed).draw, tokens.device)
        max_steps = config.max_decoder_steps if controls.max_decoder_steps is None else controls.max_decoder_steps
        threshold = config.gate_threshold if controls.gate_threshold is None else controls.gate_threshold
        generated = generate(
            self.begin(tokens, lengths, gate_threshold=threshold),
            draw_masks=draw_masks,
            max_steps=max_steps,
            stop_early=not config.decoder_no_early_stopping,
        )
        # The frame at which the gate fires is cut off, but was a true one in training: the postnet reads it.
        mel = self.refine(generated.mel, generated.n_steps)
        n_frames = int(generated.lengths.max())
        mask = mask_from_lengths(generated.lengths, n_frames)
        alignments = generated.alignments[:, :n_frames] * mask.unsqueeze(2)
        return MelOutput(
            mel=mel[:, :, :n_frames] * mask.unsqueeze(1),
            lengths=generated.lengths,
            frames=durations_from_alignments(alignments, lengths, generated.lengths),
            alignments=alignments,
            finished=generated.finished,
        )


def durations_from_alignments(alignments: Tensor, token_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Durations (B, L) int64: the frames whose largest attention weight is that of the token.

    alignments (B, F, L), token_lengths (B,); a row sums to its mel length (B,).
    """
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    frames = mask_from_lengths(mel_lengths, alignments.size(1))
    chosen = alignments.masked_fill(~tokens, -1.0).argmax(2)  # (B, F)
    durations = torch.zeros(len(alignments), alignments.size(2), dtype=torch.int64, device=alignments.device)
    return durations.scatter_add_(1, chosen, frames.long())


def controls(options: InferenceOptions, network: Any, config: ModelConfig, *, where: Path) -> Controls:
    """The controls of the options, whatever the checkpoint."""
    return Controls(max_decoder_steps=options.max_decoder_steps, gate_threshold=options.gate_threshold)
