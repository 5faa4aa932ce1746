"""FastPitch: text to mel-spectrogram in parallel, with predicted pitch and durations (Lancucki 2021)."""

from copy import copy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from common.checkpoints.loading import check_model
from common.config import AudioConfig
from common.data.text_mel import TextMelBatch
from common.errors import InputError
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from fastpitch.aligner import Alignment, ConvAttention
from fastpitch.config import ModelConfig
from fastpitch.discriminator import MelDiscriminator
from fastpitch.prosody import (
    SpeakerPitch,
    TemporalPredictor,
    durations_from_logs,
    energies_of_tokens,
    means_over_tokens,
    regulate_length,
    whole_frames,
)
from fastpitch.transformer import FFTransformer


@dataclass(frozen=True)
class FastPitchBatch(TextMelBatch):
    """A batch with targets for durations, pitch and energy; zero after an utterance's end."""

    durations: Tensor | None = None  # (B, L) int64, frames; they sum to mel_lengths. None: the model aligns
    pitch: Tensor | None = None  # (B, L) float32, normalized; with durations
    pitch_frames: Tensor | None = None  # (B, F) float32, normalized, 0 where unvoiced; without durations
    prior: Tensor | None = None  # (B, F, L) float32, alignment prior; without durations
    speakers: Tensor | None = None  # (B,) int64
    window: Tensor | None = None  # (B,) float32 from 0 to 1: position of the frames that the discriminator scores


@dataclass(frozen=True)
class FastPitchOutput(MelOutput):
    """Output of a training pass, with its targets (B, L), None if there are none."""

    target_durations: Tensor | None = None  # int64, frames
    target_pitch: Tensor | None = None  # normalized
    target_energy: Tensor | None = None  # like ``energy``
    alignment: Alignment | None = None  # the source of the target durations, if the model aligned


class FastPitch(SpeakerPitch, nn.Module):
    """Encoder, pitch and duration predictors, length regulation, decoder; ``infer`` speaks, ``forward`` trains."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.symbols_embedding_dim
        self.mask_convolutions = config.mask_convolutions
        self.n_speakers, self.speaker_emb_weight = config.n_speakers, config.speaker_emb_weight
        if config.symbol_type == "pf":
            embedding: nn.Module = nn.Linear(config.n_symbols, width, bias=False)
        else:
            embedding = nn.Embedding(config.n_symbols, width, padding_idx=config.padding_idx)
        self.encoder = FFTransformer(config, "in", embedding)
        self.speaker_emb = nn.Embedding(config.n_speakers, width) if config.n_speakers > 1 else None
        self.duration_predictor = TemporalPredictor(config, "dur")
        self.decoder = FFTransformer(config, "out")
        self.pitch_predictor = TemporalPredictor(config, "pitch")
        size = config.pitch_embedding_kernel_size
        self.pitch_emb = nn.Conv1d(1, width, size, padding=size // 2)
        has_energy = config.energy_conditioning
        self.energy_predictor = TemporalPredictor(config, "energy") if has_energy else None
        size = config.energy_embedding_kernel_size
        self.energy_emb = nn.Conv1d(1, width, size, padding=size // 2) if has_energy else None
        self.proj = nn.Linear(width, config.n_mel_channels)
        aligner = partial(ConvAttention, config.n_mel_channels, width, mask_padding=config.mask_convolutions)
        self.attention = aligner() if config.learned_alignment else None
        n_voices = config.n_speakers if config.pitch_statistics_per_speaker else 1
        self.register_buffer("pitch_mean", torch.zeros(n_voices))
        self.register_buffer("pitch_std", torch.zeros(n_voices))

    @torch.jit.export
    def encode(self, tokens: Tensor, token_lengths: Tensor, speakers: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """tokens (B, L), token_lengths (B,), speakers (B,) -> encoded (B, L, C), log durations and pitch (B, L)."""
        mask = mask_from_lengths(token_lengths, tokens.size(1)).unsqueeze(2)
        conditioning: Tensor | None = None
        if self.speaker_emb is not None and speakers is not None:
            conditioning = self.speaker_emb(speakers).unsqueeze(1) * self.speaker_emb_weight
        encoded = self.encoder(tokens, mask, conditioning)
        return encoded, self.duration_predictor(encoded, mask), self.pitch_predictor(encoded, mask)

    @torch.jit.export
    def add_pitch(self, encoded: Tensor, token_lengths: Tensor, pitch: Tensor) -> tuple[Tensor, Tensor | None]:
        """encoded (B, L, C), normalized pitch (B, L) -> encoded (B, L, C), predicted energy (B, L)."""
        mask = mask_from_lengths(token_lengths, pitch.size(1))
        if self.mask_convolutions:
            pitch = pitch * mask
        encoded = encoded + self.pitch_emb(pitch.unsqueeze(1)).transpose(1, 2)
        energy: Tensor | None = None
        if self.energy_predictor is not None:
            energy = self.energy_predictor(encoded, mask.unsqueeze(2))
        return encoded, energy

    @torch.jit.export
    def decode(
        self, encoded: Tensor, token_lengths: Tensor, energy: Tensor | None, frames: Tensor, n_frames: int | None
    ) -> tuple[Tensor, Tensor]:
        """encoded (B, L, C), energy, frames (B, L) -> mel (B, n_mels, F), lengths (B,); F as in `regulate_length`."""
        regulated, lengths = regulate_length(self.add_energy(encoded, token_lengths, energy), frames, n_frames)
        return self.decode_frames(regulated, lengths), lengths

    @torch.jit.export
    def add_energy(self, encoded: Tensor, token_lengths: Tensor, energy: Tensor | None) -> Tensor:
        """encoded (B, L, C), energy (B, L) -> encoded (B, L, C)."""
        if self.energy_emb is not None and energy is not None:
            if self.mask_convolutions:
                energy = energy * mask_from_lengths(token_lengths, energy.size(1))
            encoded = encoded + self.energy_emb(energy.unsqueeze(1)).transpose(1, 2)
        return encoded

    @torch.jit.export
    def decode_frames(self, regulated: Tensor, lengths: Tensor) -> Tensor:
        """regulated (B, F, C), lengths (B,) frames -> mel (B, n_mels, F)."""
        mask = mask_from_lengths(lengths, regulated.size(1)).unsqueeze(2)
        mel = self.proj(self.decoder(regulated, mask, None)) * mask
        return mel.transpose(1, 2)

    @torch.jit.unused
    def forward(self, batch: FastPitchBatch, *, pace: float = 1.0, max_duration: float = 75.0) -> FastPitchOutput:
        """Return mels (B, n_mels, F) for a batch with its durations, pitch and energy, or with predicted ones.

        A model with an aligner aligns a batch without durations.
        """
        encoded, log_durations, predicted_pitch = self.encode(batch.tokens, batch.token_lengths, batch.speakers)
        predicted_durations = durations_from_logs(log_durations, max_duration)
        durations, pitch, energy, alignment = batch.durations, batch.pitch, None, None
        if durations is None and self.attention is not None:
            alignment = self._align(batch, batch.prior)
            durations = alignment.durations
        if pitch is None and batch.pitch_frames is not None and durations is not None:
            pitch = means_over_tokens(batch.pitch_frames, durations)
        if self.energy_emb is not None and durations is not None:
            energy = energies_of_tokens(batch.mels, durations)
        spoken_pitch = predicted_pitch if pitch is None else pitch
        encoded, predicted_energy = self.add_pitch(encoded, batch.token_lengths, spoken_pitch)
        frames = whole_frames((predicted_durations if durations is None else durations).float() / pace)
        decoded_energy = predicted_energy if energy is None else energy
        mel, lengths = self.decode(encoded, batch.token_lengths, decoded_energy, frames, batch.mels.size(2))
        predicted = predicted_durations, frames, predicted_pitch, predicted_energy, log_durations
        targets = {"target_durations": durations, "target_pitch": pitch, "target_energy": energy}
        return FastPitchOutput(mel, lengths, *predicted, **targets, alignment=alignment)

    def _align(self, batch: FastPitchBatch, prior: Tensor | None) -> Alignment:
        assert self.attention is not None, "there is an aligner"
        embedded = self.encoder.word_emb(batch.tokens)
        return self.attention(batch.mels, batch.mel_lengths, embedded, batch.token_lengths, prior)

    @torch.no_grad()
    def misfits(self, batch: FastPitchBatch) -> Tensor:
        """Return how badly transcripts fit: nats per frame (B,) between the best tokens and those on the path."""
        alignment = self._align(batch, None)
        behind = alignment.log_attention.amax(2) - alignment.on_path
        return (behind * mask_from_lengths(batch.mel_lengths, behind.size(1))).sum(1) / batch.mel_lengths

    teacher_forced = forward  # the name that all text-to-mel models share

    @torch.no_grad()
    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """Speak tokens (B, L) of ``lengths`` (B,), each as if alone; raises InputError for unsupported controls."""
        controls = Controls() if controls is None else controls
        speakers = self.speaker_ids(controls.speaker, tokens)
        hz = controls.pitch_hz
        given_pitch = controls.pitch if hz is None else self.normalized_pitch(hz, speakers)
        encoded, log_durations, pitch = self.encode(tokens, lengths, speakers)
        durations = durations_from_logs(log_durations, controls.max_duration)
        given_durations = durations if controls.durations is None else controls.durations
        frames = whole_frames(given_durations.float() / controls.pace)
        if controls.pitch_transform is not None and given_pitch is None:
            pitch = controls.pitch_transform(pitch, lengths, *self.pitch_statistics(speakers))
        pitch_hz = self.pitch_in_hz(pitch.double(), speakers)
        if given_pitch is not None:
            pitch_hz = self.pitch_in_hz(given_pitch.double(), speakers) * (given_pitch != 0)
        encoded, energy = self.add_pitch(encoded, lengths, pitch if given_pitch is None else given_pitch)
        if energy is None and controls.energy is not None:
            raise InputError("this model predicts no energy (it was trained without --energy-conditioning)")
        decoded_energy = energy if controls.energy is None else controls.energy
        n_frames = None
        if controls.frame_step > 1:
            n_frames = -(-int(frames.sum(1).max()) // controls.frame_step) * controls.frame_step
        mel, mel_lengths = self.decode(encoded, lengths, decoded_energy, frames, n_frames)
        spoken = {"pitch_hz": pitch_hz, "decoded_energy": decoded_energy}
        return MelOutput(mel, mel_lengths, durations, frames, pitch, energy, log_durations, **spoken)


def to_torchscript(network: FastPitch) -> FastPitch:
    """Return a FastPitch with the same weights whose ``infer`` calls TorchScript."""
    script, scripted = torch.jit.script(network.eval()), copy(network)
    for step in ("encode", "add_pitch", "decode"):
        setattr(scripted, step, getattr(script, step))
    return scripted


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Build a FastPitch with random weights and, for adversarial training, its discriminator."""
    check_model(config, audio, text)
    networks: dict[str, nn.Module] = {"fastpitch": FastPitch(config)}
    if config.adversarial and not inference:
        networks["mel_discriminator"] = MelDiscriminator()
    return networks
