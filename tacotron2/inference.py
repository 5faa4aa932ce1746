"""Tacotron 2's inference loop, for the network and its exported files; each step reads the previous frame."""

import functools
import math
from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from common.nn.alignment_search import durations_of_path
from common.nn.layers import mask_from_lengths
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls, MelOutput
from tacotron2.arg_parser import InferenceOptions
from tacotron2.config import ModelConfig
from tacotron2.decoder import MASK_CHUNK, PrenetMasks

GPU_STEPS = 32  # steps between checks whether all utterances have ended
# () -> the prenet's dropout factors (MASK_CHUNK, layers, B or 1, prenet_dim) of the next steps
DrawMasks = Callable[[], Tensor]
# `run_steps` of a step
RunSteps = Callable[..., tuple[Tensor, ...]]


def run_steps(step: Callable[..., tuple[Tensor, ...]], frame: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
    """Run N steps of ``step``, a `DecoderStep` or the like, with its arguments except masks, then masks of N steps.

    Returns frames (N, B, n_mels), the gate's logits (N, B), alignments (N, B, L), and the states after N steps.
    """
    *states, memory, processed_memory, lengths, masks = given
    made = []
    for mask in masks:
        gate, frame, *states = step(mask, frame, *states, memory, processed_memory, lengths)
        made.append((frame, gate, states[-2]))
    return (*map(torch.stack, zip(*made)), frame, *states)


class Inference(TextToMel):
    """Infers with an encoder, a decoder and a postnet."""

    config: ModelConfig
    postnet: Callable[[Tensor, Tensor], Tensor]  # decoded mels (B, n_mels, F), lengths (B,) -> (B, n_mels, F)

    @abstractmethod
    def begin(self, tokens: Tensor, lengths: Tensor) -> tuple[RunSteps, tuple[Tensor, Tensor, Tensor]]:
        """Encode tokens (B, L) with ``lengths`` (B,).

        Returns a function that runs steps, and its last arguments except masks: memory (B, L, memory_dim), processed
        memory (B, attention_dim, L), both in the dtype of steps, and lengths.
        """

    @torch.no_grad()
    def infer(
        self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None, *, draw_masks: DrawMasks | None = None
    ) -> MelOutput:
        """Mels of tokens (B, L) with ``lengths`` (B,), each as if alone; ``MelOutput.finished`` is False if cut.

        ``draw_masks`` replaces the prenet's seeded dropout.
        """
        config, controls = self.config, controls or Controls()
        if draw_masks is None:
            draw_masks = functools.partial(PrenetMasks(config.prenet_dim, seed=controls.seed).draw, tokens.device)
        options = controls.options or InferenceOptions()
        max_steps = config.max_decoder_steps if options.max_decoder_steps is None else options.max_decoder_steps
        threshold = config.gate_threshold if options.gate_threshold is None else options.gate_threshold
        run, encoded = self.begin(tokens, lengths)
        with torch.autocast(tokens.device.type, enabled=False):
            at_once, limit = GPU_STEPS if tokens.is_cuda else 1, math.log(threshold / (1 - threshold))
            frames, fired, alignments = self._decode(
                run, encoded, draw_masks, at_once=at_once, max_steps=max_steps, threshold=limit
            )
        has_ended = fired.cumsum(0) > 0
        finished, lengths_before = has_ended[-1], (~has_ended).sum(0)
        # The frame at which the gate fires is cut off, but the postnet reads it, as in training.
        mel = self.postnet(frames.permute(1, 2, 0), lengths_before + finished)
        mel_lengths = lengths_before.clamp(min=1)
        n_frames = int(mel_lengths.max())
        mask = mask_from_lengths(mel_lengths, n_frames)
        alignments = alignments.transpose(0, 1)[:, :n_frames, : tokens.size(1)] * mask.unsqueeze(2)
        return MelOutput(
            mel=mel[:, :, :n_frames] * mask.unsqueeze(1),
            lengths=mel_lengths,
            frames=durations_from_alignments(alignments, lengths, mel_lengths),
            alignments=alignments,
            finished=finished,
        )

    def _decode(
        self,
        run: RunSteps,
        encoded: tuple[Tensor, ...],
        draw_masks: DrawMasks,
        *,
        at_once: int,
        max_steps: int,
        threshold: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """At most ``max_steps`` frames (F, B, n_mels), whether gates fire (F, B), and alignments (F, B, L)."""
        config, memory = self.config, encoded[0]
        n_batch, n_tokens, n_context = memory.shape
        of_attention, of_decoder = config.attention_rnn_dim, config.decoder_rnn_dim
        widths = (config.n_mel_channels, of_attention, of_attention, of_decoder, of_decoder, n_context)
        in_float32 = (False, False, True, False, True, False, True, True)  # cells and attention weights
        states = [
            memory.new_zeros(n_batch, width, dtype=torch.float32 if is_float32 else memory.dtype)
            for width, is_float32 in zip((*widths, n_tokens, n_tokens), in_float32)
        ]
        stops_early = not config.decoder_no_early_stopping
        made: list[list[Tensor]] = []
        ended = torch.zeros(n_batch, dtype=torch.bool, device=memory.device)
        while len(made) * at_once < max_steps:
            if len(made) * at_once % MASK_CHUNK == 0:
                masks = iter(draw_masks().to(memory.dtype).split(at_once))
            frames, gates, alignments, *states = run(*states, *encoded, next(masks))
            made.append([frames, fired := gates.float() > threshold, alignments])
            ended |= fired.any(0)
            if stops_early and bool(ended.all()):
                break
        frames, fired, alignments = (torch.cat(parts)[:max_steps] for parts in zip(*made))
        n_steps = int((fired.cumsum(0) == 0).sum(0).max()) + 1 if stops_early else max_steps
        return frames[:n_steps].float(), fired[:n_steps], alignments[:n_steps]


def durations_from_alignments(alignments: Tensor, token_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Frames (B, L) int64 in which each token has the largest weight: alignments (B, F, L), lengths (B,)."""
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    chosen = alignments.masked_fill(~tokens, -1.0).argmax(2)  # (B, F)
    return durations_of_path(chosen, mel_lengths, alignments.size(2))
