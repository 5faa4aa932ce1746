"""Tacotron 2: text to mel-spectrogram with attention (Shen et al. 2018), with dropout in place of zoneout."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.checkpoints.loading import check_model
from common.config import AudioConfig
from common.data.batch import join_batches
from common.nn.layers import mask_from_lengths
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.utterances import MelOutput
from common.text.config import TextConfig
from tacotron2.config import ModelConfig
from tacotron2.data_function import Tacotron2Batch
from tacotron2.decoder import Decoder, DecoderStep, PrenetMasks
from tacotron2.inference import Inference, RunSteps, durations_from_alignments, run_steps
from tacotron2.layers import Encoder, Postnet

PADDED_GATE_LOGIT = 1e3  # after an utterance's end
SYMBOL_STEP = 32  # on a GPU, texts are padded to multiples of it, so that few CUDA graphs are recorded
_EVALUATION_SEED = 0  # of the prenet's dropout


@dataclass(frozen=True)
class TrainingOutput:
    """The output of a teacher-forced pass over a batch."""

    mel: Tensor  # (B, n_mels, F) the decoder's
    mel_postnet: Tensor  # (B, n_mels, F) with the postnet's residual
    gate_logits: Tensor  # (B, F)
    alignments: Tensor  # (B, F, L) float32


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
        memory = self.encoder(self.embedding(tokens), lengths, mask if self.config.mask_convolutions else None)
        return memory, ~mask

    def forward(self, batch: Tacotron2Batch, *, prenet_masks: Tensor | None = None) -> TrainingOutput:
        """Teacher-forced pass; ``prenet_masks`` (F, layers, B or 1, prenet_dim) replace the prenet's dropout.

        In evaluation mode this dropout is seeded.
        """
        mels = batch.mels
        if prenet_masks is None and not self.training:
            prenet_masks = PrenetMasks(self.config.prenet_dim, seed=_EVALUATION_SEED).first(mels.size(2), mels.device)
        memory, padding = self.encode(batch.tokens, batch.token_lengths)
        decoded = self.decoder(memory, padding, mels, prenet_masks)
        mask = mask_from_lengths(batch.mel_lengths, mels.size(2))
        mel, gate_logits = decoded.mel, decoded.gate_logits
        mel_postnet = self.postnet(mel, batch.mel_lengths)
        if self.config.mask_padding:
            mel, mel_postnet = mel * mask.unsqueeze(1), mel_postnet * mask.unsqueeze(1)
            gate_logits = gate_logits.masked_fill(~mask, PADDED_GATE_LOGIT)
        return TrainingOutput(mel, mel_postnet, gate_logits, decoded.alignments)

    def teacher_forced(self, batch: Tacotron2Batch) -> MelOutput:
        """Mels (B, n_mels, F) of a batch, frame by frame as ``batch.mels``, with alignments and durations."""
        out = self(batch)
        mask = mask_from_lengths(batch.mel_lengths, batch.mels.size(2))
        return MelOutput(
            mel=out.mel_postnet * mask.unsqueeze(1),
            lengths=batch.mel_lengths,
            frames=durations_from_alignments(out.alignments, batch.token_lengths, batch.mel_lengths),
            alignments=out.alignments * mask.unsqueeze(2),
        )

    def begin(self, tokens: Tensor, lengths: Tensor) -> tuple[RunSteps, tuple[Tensor, Tensor, Tensor]]:
        memory, _ = self.encode(tokens, lengths)
        if memory.is_cuda:
            memory = F.pad(memory, (0, 0, 0, -memory.size(1) % SYMBOL_STEP))
        processed = self.decoder.attention_layer.memory_layer(memory)  # of autocast's dtype, if that is enabled
        run = self._prepared.get(processed.dtype) if self._prepared is not None else None
        if run is None:
            with torch.autocast(memory.device.type, enabled=False):
                run = partial(run_steps, DecoderStep(self.decoder, processed.dtype))
            if self._prepared is not None:
                run = GraphRecorder("Tacotron 2's decoder").by_shape(run) if memory.is_cuda else run
                self._prepared[processed.dtype] = run
        return run, (memory.to(processed.dtype), processed.transpose(1, 2).contiguous(), lengths)

    def prepare_for_inference(self) -> None:
        """Join the weights of a decoder's step, and record CUDA graphs of it; don't train afterwards."""
        self.eval()
        self._prepared = {}

    @torch.inference_mode()
    def teach(self, tokens: Sequence[Tensor], mels: Sequence[Tensor]) -> MelOutput:
        """`teacher_forced` of utterances, tokens (L,) and mels (n_mels, F), in evaluation mode."""
        batches = [Tacotron2Batch.of_one(str(row), *pair) for row, pair in enumerate(zip(tokens, mels))]
        return self.teacher_forced(join_batches(batches).to(mels[0].device))


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """A new Tacotron 2 with random weights; ``text`` None leaves the number of symbols unchecked."""
    check_model(config, audio, text)
    return {"tacotron2": Tacotron2(config)}
