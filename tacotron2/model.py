"""Tacotron 2: text to mel-spectrogram with attention (Shen et al. 2018), with dropout in place of zoneout."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from common.checkpoints.fit import check_model
from common.config import AudioConfig
from common.data.batch import join_batches
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import MelOutput
from common.text.config import TextConfig
from tacotron2.config import ModelConfig
from tacotron2.data_function import Tacotron2Batch
from tacotron2.decoder import Decoder, PrenetMasks
from tacotron2.inference import DecoderSteps, Inference, StepGraphs, durations_from_alignments
from tacotron2.layers import Encoder, Postnet

PADDED_GATE_LOGIT = 1e3  # of frames after an utterance's end, which are certain to be after it
_EVALUATION_SEED = 0  # of the prenet's dropout, which stays on in evaluation


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
        self._graphs = StepGraphs()

    def encode(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """tokens (B, L), lengths (B,) -> memory (B, L, C), zero at padding, and padding (B, L) bool."""
        mask = mask_from_lengths(lengths, tokens.size(1))
        memory = self.encoder(self.embedding(tokens), lengths, mask if self.config.mask_convolutions else None)
        return memory, ~mask

    def forward(self, batch: Tacotron2Batch, *, prenet_masks: Tensor | None = None) -> TrainingOutput:
        """Teacher-forced pass over a batch in any order of lengths.

        ``prenet_masks`` (F, layers, B or 1, prenet_dim) replace the prenet's dropout, which is random in training and
        comes from one seed in evaluation mode, so that an utterance's result is always the same.
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

    def begin(self, tokens: Tensor, lengths: Tensor, *, gate_threshold: float) -> DecoderSteps:
        """Encode tokens (B, L) with ``lengths`` (B,); return the steps that decode them."""
        memory, _ = self.encode(tokens, lengths)
        begin = self._graphs.begin if memory.is_cuda else DecoderSteps
        return begin(self.decoder, memory, lengths, config=self.config, gate_threshold=gate_threshold)

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
