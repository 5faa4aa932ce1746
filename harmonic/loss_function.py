"""The harmonic vocoder's losses: spectra and mel of the sound, and pitch and voicing found in the mel."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio import MelExtractor, full_precision_products
from common.config import AudioConfig
from common.data import input_mel_extractor
from common.training import AdversarialObjective, Example, LogStyle, Networks, Term, cut, shown
from harmonic.arg_parser import TrainingOptions
from harmonic.data_function import CONTEXT, HarmonicBatch
from harmonic.model import HarmonicVocoder, PitchOutput, pitch_grid
from harmonic.source import HIGHEST, LOWEST

_CORRECTIONS = 1  # mel corrections in training
_FAINTEST = 1e-3  # of the magnitudes whose logarithms are compared
_QUIETEST = 1e-2  # norm of a segment's spectrum that errors are divided by, at least
_BLUR = 0.7  # standard deviation of a pitch's target, in bins
_NEAR = 2  # frames around voiced ones in which pitch is learned too
_WEIGHTS = {"stft_loss": 1.0, "mel_loss": 2.0, "pitch_loss": 0.2, "voicing_loss": 0.2}
_ADVERSARIAL_WEIGHT = _WEIGHTS["mel_loss"] / 45  # as much of the mel loss's weight as in HiFi-GAN


class HarmonicObjective(AdversarialObjective):
    """Spectral losses of the sound that the filter makes of Praat's pitch, and losses of the network's own pitch.

    The two networks share no gradients. In validation complete recordings are copied with the network's pitch.
    ``pitch_error`` is the mean distance of pitch in cents, of voiced frames.
    """

    log_style = LogStyle(
        {"stft_loss": "stft loss", "mel_loss": "mel loss", "pitch_error": "cents"}, format="{:>6.3f}", shows_speed=True
    )

    def __init__(self, audio: AudioConfig, *, adversarial: bool = False) -> None:
        super().__init__("harmonic", _WEIGHTS, adversarial=_ADVERSARIAL_WEIGHT if adversarial else 0.0)
        if adversarial:
            terms = {"d_loss": "d loss"} | self.log_style.terms
            self.log_style = replace(self.log_style, terms=terms, rates={"harmonic": "lrate"})
        self._audio = audio
        self._mel = input_mel_extractor(audio)
        self._loss_mel = MelExtractor(replace(audio, framing="centered", peak=None))

    def own_counts(self, batch: HarmonicBatch) -> dict[str, Tensor]:
        n_segments = torch.full((), len(batch.names), device=batch.audio.device)
        near = _near_voiced(batch.voicing)
        return {
            "stft_loss": n_segments,
            "mel_loss": n_segments,
            "pitch_loss": near.sum(),
            "voicing_loss": torch.full((), near.numel(), device=near.device),
            "pitch_error": batch.voicing.sum(),
        }

    def make_sounds(self, networks: Networks, batch: HarmonicBatch) -> tuple[Tensor, Tensor]:
        network = networks["harmonic"]
        assert isinstance(network, HarmonicVocoder) and batch.noise is not None
        mel = self._mel_of_frames(batch.audio[:, : batch.noise.size(1)])
        n_frames = mel.size(2)
        track = network.track_of(batch.pitch[:, :n_frames], batch.voicing[:, :n_frames])
        made = network(mel, track, batch.noise, corrections=_CORRECTIONS)
        start = self._audio.filter_length // 2 + CONTEXT * self._audio.hop_length
        kept = slice(start, start + (n_frames - 2 * CONTEXT) * self._audio.hop_length)
        return batch.audio[:, kept], made[:, kept]

    def own_sums(self, networks: Networks, batch: HarmonicBatch, recorded: Tensor, made: Tensor) -> dict[str, Tensor]:
        network = networks["harmonic"]
        assert isinstance(network, HarmonicVocoder) and batch.mel_noise is not None
        found = network.pitch(self._mel_of_frames(batch.audio) + batch.mel_noise)
        return self._sound_sums(recorded, made) | self._pitch_sums(found, batch)

    def _mel_of_frames(self, wave: Tensor) -> Tensor:
        """wave (B, T) of complete frames -> (B, n_mels, F) float32."""
        with torch.autocast(wave.device.type, enabled=False), full_precision_products():
            return self._mel.to(wave.device).of_frames(wave)

    def _sound_sums(self, recorded: Tensor, made: Tensor) -> dict[str, Tensor]:
        """Sums over the rows of (B, T) of the sound's losses."""
        size = self._audio.filter_length
        with torch.autocast(made.device.type, enabled=False):
            extractor = self._loss_mel.to(made.device)
            errors = (extractor(made) - extractor(recorded)).abs().mean((1, 2))
            losses = [stft_loss(recorded, made, size=one) for one in (size // 2, size, 2 * size)]
        return {"stft_loss": torch.stack(losses).mean(0).sum(), "mel_loss": errors.sum()}

    def _pitch_sums(self, found: PitchOutput, batch: HarmonicBatch) -> dict[str, Tensor]:
        """Sums over frames of the losses of pitch, in the logarithm, and voicing."""
        log_pitch = batch.pitch.clamp(LOWEST, HIGHEST).log()
        grid = pitch_grid(log_pitch.device)
        distances = (grid.unsqueeze(1) - log_pitch.unsqueeze(1)) / (grid[1] - grid[0])  # (B, N_PITCHES, F) in bins
        targets = torch.softmax(-0.5 * (distances / _BLUR).square(), dim=1)
        errors = F.cross_entropy(found.scores, targets, reduction="none")
        voicing = F.binary_cross_entropy_with_logits(found.voicing, batch.voicing, reduction="sum")
        cents = 1200 / math.log(2) * (found.log_pitch.detach() - log_pitch).abs()
        return {
            "pitch_loss": (errors * _near_voiced(batch.voicing)).sum(),
            "voicing_loss": voicing,
            "pitch_error": (cents * batch.voicing).sum(),
        }

    def evaluate(self, networks: Networks, batch: HarmonicBatch) -> dict[str, Term]:
        network = networks["harmonic"]
        assert isinstance(network, HarmonicVocoder)
        terms: dict[str, Term] = {}
        for index in range(len(batch.names)):
            one = _utterance(batch, index, self._mel)
            mel = self._mel.to(one.audio.device)(one.audio)
            sums = self._pitch_sums(network.pitch(mel), one)
            size = 2 * self._audio.filter_length  # of the longest window
            pair = [one.audio, network.infer(mel)[:, : one.audio.size(1)]]
            recorded, made = (F.pad(wave, (0, max(size - wave.size(1), 0))) for wave in pair)
            counts = self.counts("harmonic", one)
            for name, total in (self._sound_sums(recorded[:, : made.size(1)], made) | sums).items():
                before = terms.get(name, Term(torch.zeros_like(total), torch.zeros_like(counts[name])))
                terms[name] = Term(before.total + total, before.count + counts[name])
        return terms

    def examples(self, networks: Networks, batch: HarmonicBatch) -> list[Example]:
        network = networks["harmonic"]
        assert isinstance(network, HarmonicVocoder)
        examples = []
        for index in shown(batch):
            one = _utterance(batch, index, self._mel)
            extractor = self._mel.to(one.audio.device)
            mel = extractor(one.audio)
            track = network.track(mel)
            generated = network.infer(mel, track=track)[:, : one.audio.size(1)]
            n_samples, n_frames = one.audio.size(1), mel.size(2)
            mels = {"recorded": cut(mel, 0, n_frames), "generated": cut(extractor(generated), 0, n_frames)}
            sounds = {"recorded": cut(one.audio, 0, n_samples), "generated": cut(generated, 0, n_samples)}
            pitch = {
                "recorded": cut(one.pitch * one.voicing, 0, n_frames),
                "found": cut(track[:, 0] * (track[:, 1] > 0.5), 0, n_frames),
            }
            examples.append(Example(batch.names[index], mels, pitch=pitch, audio=sounds))
        return examples


def stft_loss(recorded: Tensor, made: Tensor, *, size: int) -> Tensor:
    """Spectral convergence and the L1 of log magnitudes, of (B, T) -> (B,); windows of ``size`` samples.

    Source: Yamamoto et al., Parallel WaveGAN (arXiv:1910.11480), section 2.2.
    """
    window = torch.hann_window(size, device=made.device)
    first, second = (torch.fft.rfft(wave.unfold(1, size, size // 4) * window) for wave in (recorded, made))
    real = first.abs()
    fake = (second.real.square() + second.imag.square()).clamp(min=1e-12).sqrt()
    norm = torch.linalg.vector_norm(real, dim=(1, 2)).clamp(min=_QUIETEST)
    convergence = torch.linalg.vector_norm(real - fake, dim=(1, 2)) / norm
    logs = real.clamp(min=_FAINTEST).log() - fake.clamp(min=_FAINTEST).log()
    return convergence + logs.abs().mean((1, 2))


def _near_voiced(voicing: Tensor) -> Tensor:
    """voicing (B, F), 0 or 1 -> the same with the `_NEAR` frames around voiced ones."""
    return F.max_pool1d(voicing, 2 * _NEAR + 1, stride=1, padding=_NEAR)


def _utterance(batch: HarmonicBatch, index: int, extractor: MelExtractor) -> HarmonicBatch:
    """One utterance of a validation batch, without padding."""
    n_samples = batch.n_samples[index]
    n_frames = extractor.n_frames(n_samples)
    return replace(
        batch,
        names=batch.names[index : index + 1],
        audio=batch.audio[index : index + 1, :n_samples],
        n_samples=(n_samples,),
        pitch=batch.pitch[index : index + 1, :n_frames],
        voicing=batch.voicing[index : index + 1, :n_frames],
    )


def build_objective(options: TrainingOptions, audio: AudioConfig) -> HarmonicObjective:
    """The objective that the options describe."""
    return HarmonicObjective(audio, adversarial=options.adversarial)
