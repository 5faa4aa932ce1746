"""Tacotron 2: text to mel-spectrogram with attention (Shen et al. 2018), with dropout in place of zoneout."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.checkpoints.loading import check_model
from common.config import AudioConfig
from common.data.batch import join_batches
from common.nn.alignment_search import durations_of_path
from common.nn.layers import mask_from_lengths
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.networks import TextToMel
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from tacotron2.arg_parser import InferenceOptions
from tacotron2.config import ModelConfig
from tacotron2.data_function import Tacotron2Batch
from tacotron2.decoder import MASK_CHUNK, Decoder, DecoderStep, PrenetMasks
from tacotron2.layers import Encoder, Postnet

PADDED_GATE_LOGIT = 1e3  # after an utterance's end
_MEMORY_STEP = 32  # on a GPU, encoded texts are padded to a multiple of this, so that few CUDA graphs are recorded
_EVALUATION_SEED = 0  # of the prenet's dropout
GPU_STEPS = 32  # steps between checks for whether all utterances have ended
# Returns the prenet's next dropout factors (MASK_CHUNK, layers, B or 1, prenet_dim)
DrawMasks = Callable[[], Tensor]
RunSteps = Callable[..., tuple[Tensor, ...]]  # `run_steps` for a step


@dataclass(frozen=True)
class TrainingOutput:
    """The output of a teacher-forced pass over a batch."""

    mel: Tensor  # (B, n_mels, F) before the postnet
    mel_postnet: Tensor  # (B, n_mels, F) with the postnet's residual
    gate_logits: Tensor  # (B, F); their sigmoid is the probability that a frame is the last
    alignments: Tensor  # (B, F, L) float32, attention weights of each frame; they sum to 1 over L


def run_steps(step: Callable[..., tuple[Tensor, ...]], frame: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
    """Run ``step``, such as a `DecoderStep`, N times; takes the arguments of ``step``, with the masks of N steps last.

    Returns frames (N, B, n_mels), the gate's logits (N, B), alignments (N, B, L), and the states after N steps.
    """
    *states, memory, processed_memory, lengths, masks = given
    made = []
    for mask in masks:
        gate, frame, *states = step(mask, frame, *states, memory, processed_memory, lengths)
        made.append((frame, gate, states[-2]))
    return (*map(torch.stack, zip(*made)), frame, *states)


class Inference(TextToMel):
    """Inference with an encoder, a decoder and a postnet."""

    config: ModelConfig
    postnet: Callable[[Tensor, Tensor], Tensor]  # decoded mels (B, n_mels, F), lengths (B,) -> (B, n_mels, F)

    @abstractmethod
    def begin(self, tokens: Tensor, lengths: Tensor) -> tuple[RunSteps, tuple[Tensor, Tensor, Tensor]]:
        """Encode tokens (B, L) with ``lengths`` (B,).

        Returns a function that runs steps, and its last arguments but the masks: memory (B, L, memory_dim), processed
        memory (B, attention_dim, L), both in the steps' dtype, and lengths.
        """

    @torch.no_grad()
    def infer(
        self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None, *, draw_masks: DrawMasks | None = None
    ) -> MelOutput:
        """Like `TextToMel.infer`; ``draw_masks`` replaces the prenet's seeded dropout."""
        controls = controls or Controls()
        if draw_masks is None:
            draw_masks = partial(PrenetMasks(self.config.prenet_dim, seed=controls.seed).draw, tokens.device)
        run, encoded = self.begin(tokens, lengths)
        with torch.autocast(tokens.device.type, enabled=False):
            frames, fired, alignments = self._decode(run, encoded, draw_masks, controls.options or InferenceOptions())
        has_ended = fired.cumsum(0) > 0
        finished, lengths_before = has_ended[-1], (~has_ended).sum(0)
        # The frame at which the gate fires is cut off, but the postnet reads it, as in training.
        mel = self.postnet(frames.permute(1, 2, 0), lengths_before + finished)
        mel_lengths = lengths_before.clamp(min=1)
        n_frames = int(mel_lengths.max())
        mask = mask_from_lengths(mel_lengths, n_frames)
        alignments = alignments.transpose(0, 1)[:, :n_frames, : tokens.size(1)] * mask.unsqueeze(2)
        mel, durations = mel[:, :, :n_frames], durations_from_alignments(alignments, lengths, mel_lengths)
        mel = mel * mask.unsqueeze(1)
        return MelOutput(mel, mel_lengths, frames=durations, alignments=alignments, finished=finished)

    def _decode(
        self, run: RunSteps, encoded: tuple[Tensor, ...], draw_masks: DrawMasks, options: InferenceOptions
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return decoded frames (F, B, n_mels), whether gates fire (F, B), and alignments (F, B, L)."""
        config, memory = self.config, encoded[0]
        max_steps = config.max_decoder_steps if options.max_decoder_steps is None else options.max_decoder_steps
        probability = config.gate_threshold if options.gate_threshold is None else options.gate_threshold
        threshold, at_once = math.log(probability / (1 - probability)), GPU_STEPS if memory.is_cuda else 1
        n_batch, n_tokens, _ = memory.shape
        widths = (*state_widths(config).values(), n_tokens, n_tokens)
        in_float32 = (False, False, True, False, True, False, True, True)  # cells and attention weights
        dtypes = [torch.float32 if one else memory.dtype for one in in_float32]
        states = [memory.new_zeros(n_batch, width, dtype=dtype) for width, dtype in zip(widths, dtypes)]
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


def state_widths(config: ModelConfig) -> dict[str, int]:
    """Return the channels of a decoder step's states, except the attention history; all states start at zero."""
    of_attention, of_decoder = config.attention_rnn_dim, config.decoder_rnn_dim
    widths = (config.n_mel_channels, of_attention, of_attention, of_decoder, of_decoder, config.encoder_embedding_dim)
    names = ("frame", "attention_hidden", "attention_cell", "decoder_hidden", "decoder_cell", "context")
    return dict(zip(names, widths))


def durations_from_alignments(alignments: Tensor, token_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Count frames (B, L) int64 in which each token has the largest weight: alignments (B, F, L), lengths (B,)."""
    tokens = mask_from_lengths(token_lengths, alignments.size(2)).unsqueeze(1)
    chosen = alignments.masked_fill(~tokens, -1.0).argmax(2)  # (B, F)
    return durations_of_path(chosen, mel_lengths, alignments.size(2))


class Tacotron2(Inference, nn.Module):
    """Encoder, attention decoder, postnet; ``forward`` is teacher-forced, ``infer`` is not."""

    postnet: Postnet

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.n_symbols, config.symbols_embedding_dim)
        bound = (6 / (config.n_symbols + config.symbols_embedding_dim)) ** 0.5
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.postnet = Postnet(config)
        self._prepared: dict[torch.dtype, RunSteps] | None = None

    def encode(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """tokens (B, L), lengths (B,) -> memory (B, L, C), zero at padding, and padding (B, L) bool."""
        mask = mask_from_lengths(lengths, tokens.size(1))
        return self.encoder(self.embedding(tokens), lengths, mask if self.config.mask_convolutions else None), ~mask

    def forward(self, batch: Tacotron2Batch, *, prenet_masks: Tensor | None = None) -> TrainingOutput:
        """Teacher-forced pass; ``prenet_masks`` (F, layers, B or 1, prenet_dim) replace the prenet's dropout.

        In evaluation mode this dropout is seeded.
        """
        mels = batch.mels
        if prenet_masks is None and not self.training:
            prenet_masks = PrenetMasks(self.config.prenet_dim, seed=_EVALUATION_SEED).first(mels.size(2), mels.device)
        memory, padding = self.encode(batch.tokens, batch.token_lengths)
        mel, gate_logits, alignments = self.decoder(memory, padding, mels, prenet_masks)
        mask = mask_from_lengths(batch.mel_lengths, mels.size(2))
        mel_postnet = self.postnet(mel, batch.mel_lengths)
        if self.config.mask_padding:
            mel, mel_postnet = mel * mask.unsqueeze(1), mel_postnet * mask.unsqueeze(1)
            gate_logits = gate_logits.masked_fill(~mask, PADDED_GATE_LOGIT)
        return TrainingOutput(mel, mel_postnet, gate_logits, alignments)

    def teacher_forced(self, batch: Tacotron2Batch) -> MelOutput:
        """Return mels (B, n_mels, F) that match ``batch.mels`` frame by frame, with alignments and durations."""
        out = self(batch)
        mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2))
        mel, alignments = out.mel_postnet * mask.unsqueeze(1), out.alignments * mask.unsqueeze(2)
        frames = durations_from_alignments(out.alignments, batch.token_lengths, batch.mel_lengths)
        return MelOutput(mel, batch.mel_lengths, frames=frames, alignments=alignments)

    def begin(self, tokens: Tensor, lengths: Tensor) -> tuple[RunSteps, tuple[Tensor, Tensor, Tensor]]:
        memory, _ = self.encode(tokens, lengths)
        if memory.is_cuda:
            memory = F.pad(memory, (0, 0, 0, -memory.size(1) % _MEMORY_STEP))
        processed = self.decoder.attention_layer.memory_layer(memory)  # in autocast's dtype, if enabled
        run = self._prepared.get(processed.dtype) if self._prepared is not None else None
        if run is None:
            with torch.autocast(memory.device.type, enabled=False):
                run = partial(run_steps, DecoderStep(self.decoder, processed.dtype))
            if self._prepared is not None:
                run = GraphRecorder("Tacotron 2's decoder").by_shape(run) if memory.is_cuda else run
                self._prepared[processed.dtype] = run
        return run, (memory.to(processed.dtype), processed.transpose(1, 2).contiguous(), lengths)

    def prepare_for_inference(self) -> None:
        """Join the weights of a decoder step, and record CUDA graphs of it; the network can't be trained afterwards."""
        self.eval()
        self._prepared = {}

    @torch.inference_mode()
    def teach(self, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """Run `teacher_forced` on utterances, tokens (L,) and mels (n_mels, F), in evaluation mode."""
        batches = [Tacotron2Batch.of_one(str(row), *pair) for row, pair in enumerate(zip(tokens, mels))]
        return self.teacher_forced(join_batches(batches).to(mels[0].device))


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Build a Tacotron 2 with random weights; with ``text=None``, don't check the number of symbols."""
    check_model(config, audio, text)
    return {"tacotron2": Tacotron2(config)}
