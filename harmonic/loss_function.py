"""The harmonic vocoder's losses for spectra, mel, pitch and voicing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio.mel import MelExtractor, full_precision_products
from common.config import AudioConfig
from common.data.recordings import input_mel_extractor
from common.training.adversarial import AdversarialObjective
from common.training.objective import N_EXAMPLES, Example, LogStyle, Networks, Term, sound_example
from harmonic.arg_parser import TrainingOptions
from harmonic.data_function import CONTEXT, HarmonicBatch
from harmonic.model import PitchOutput, pitch_grid
from harmonic.source import HIGHEST, LOWEST

_CORRECTIONS = 1  # mel corrections in training
_FAINTEST = 1e-3  # lower bound of magnitudes before their logarithms are compared
_QUIETEST = 1e-2  # lower bound of the norm of a spectrum that errors are divided by
# Weight of the distance between two sounds generated from a mel. With 0.5, as in the energy distance, noise masks the
# pulses of voiced sounds above 4 kHz; with 0, the pulses are too strong.
_REPULSION = 0.15
_BLUR = 0.7  # standard deviation of a pitch's target, in bins
_NEAR = 2  # frames around voiced ones in which pitch is also learned
_WEIGHTS = {"stft_loss": 1.0, "mel_loss": 2.0, "pitch_loss": 0.2, "voicing_loss": 0.2}
_ADVERSARIAL_WEIGHT = _WEIGHTS["mel_loss"] / 45  # same ratio to the mel loss as in HiFi-GAN


class HarmonicObjective(AdversarialObjective):
    """Spectral losses of the sound made with Praat's pitch, and losses of the network's own pitch.

    Validation uses the network's pitch. ``pitch_error`` is in cents, averaged over voiced frames.
    """

    log_style = LogStyle(
        {"d_loss": "d loss", "stft_loss": "stft loss", "mel_loss": "mel loss", "pitch_error": "cents"},
        format="{:>6.3f}",
        shows_speed=True,
        rates={"harmonic": "lrate"},
    )

    def __init__(self, options: TrainingOptions, audio: AudioConfig) -> None:
        weights = dict.fromkeys(("adversarial_loss", "feature_loss"), _ADVERSARIAL_WEIGHT)
        super().__init__("harmonic", _WEIGHTS, weights if options.adversarial else {})
        self._audio = audio
        self._mel = input_mel_extractor(audio)
        self._loss_mel = MelExtractor(replace(audio, framing="centered", peak=None))

    def own_counts(self, batch: HarmonicBatch) -> dict[str, Tensor]:
        near, counts = _near_voiced(batch.voicing), dict.fromkeys(("stft_loss", "mel_loss"), batch.n_utterances)
        counts |= {"pitch_loss": near.sum(), "voicing_loss": torch.ones_like(near).sum()}
        return counts | {"pitch_error": batch.voicing.sum()}

    def generate(self, networks: Networks, batch: HarmonicBatch) -> tuple[Tensor, Tensor]:
        network = networks["harmonic"]
        assert batch.noise is not None, "only validation batches have none"
        n_frames = 1 + (batch.noise.size(2) - self._audio.filter_length) // self._audio.hop_length
        mel = self._mel_of_frames(batch.audio[:, : batch.noise.size(2)]) if batch.mels is None else batch.mels
        track = network.track_of(batch.pitch[:, :n_frames], batch.voicing[:, :n_frames])
        noise = batch.noise.transpose(0, 1).flatten(0, 1)
        made = network(mel[:, :, :n_frames], track, noise, corrections=_CORRECTIONS)
        start = self._audio.filter_length // 2 + CONTEXT * self._audio.hop_length
        kept = slice(start, start + (n_frames - 2 * CONTEXT) * self._audio.hop_length)
        return batch.audio[:, kept], made[:, kept]

    def own_sums(self, networks: Networks, batch: HarmonicBatch, output: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        assert batch.mel_noise is not None, "only validation batches have none"
        mel = self._mel_of_frames(batch.audio) if batch.mels is None else batch.mels
        found = networks["harmonic"].pitch(mel + batch.mel_noise)
        recorded, made = output
        return self.sound_sums(recorded, *made.chunk(2)) | self._pitch_sums(found, batch)

    def _mel_of_frames(self, wave: Tensor) -> Tensor:
        """wave (B, T) of complete frames -> (B, n_mels, F) float32."""
        with torch.autocast(wave.device.type, enabled=False), full_precision_products():
            return self._mel.to(wave.device).of_frames(wave)

    def sound_sums(self, recorded: Tensor, *made: Tensor) -> dict[str, Tensor]:
        """Sum the losses of one or two sounds (B, T), generated from the same mels, over the batch.

        The distance between two sounds is subtracted in part; otherwise the network would make the noise too weak.
        Source: Gritsenko et al., A Spectral Energy Distance (arXiv:2008.01160).
        """
        sounds, n_sounds = torch.cat([recorded, *made]), 1 + len(made)
        extractor, size = self._loss_mel.to(sounds.device), self._audio.filter_length

        def loss(distance: Callable[[int, int], Tensor]) -> Tensor:
            if n_sounds == 2:
                return distance(0, 1)
            return 0.5 * (distance(0, 1) + distance(0, 2)) - _REPULSION * distance(1, 2)

        with torch.autocast(sounds.device.type, enabled=False):
            mels = extractor(sounds).chunk(n_sounds)
            mel_loss = loss(lambda a, b: (mels[a] - mels[b]).abs().mean((1, 2)))
            stft_losses = []
            for one in (size // 2, size, 2 * size):
                spectra = magnitudes(sounds, size=one).chunk(n_sounds)
                stft_losses.append(loss(partial(stft_distance, spectra)))
        return {"stft_loss": torch.stack(stft_losses).mean(0).sum(), "mel_loss": mel_loss.sum()}

    def _pitch_sums(self, found: PitchOutput, batch: HarmonicBatch) -> dict[str, Tensor]:
        """Sum the losses of log pitch and voicing over frames."""
        log_pitch = batch.pitch.clamp(LOWEST, HIGHEST).log()
        grid = pitch_grid(log_pitch.device)
        distances = (grid.unsqueeze(1) - log_pitch.unsqueeze(1)) / (grid[1] - grid[0])  # (B, N_PITCHES, F) in bins
        targets = torch.softmax(-0.5 * (distances / _BLUR).square(), dim=1)
        errors = F.cross_entropy(found.scores, targets, reduction="none")
        voicing = F.binary_cross_entropy_with_logits(found.voicing, batch.voicing, reduction="sum")
        cents = 1200 / math.log(2) * (found.pitch.detach().float().log() - log_pitch).abs()
        return {
            "pitch_loss": (errors * _near_voiced(batch.voicing)).sum(),
            "voicing_loss": voicing,
            "pitch_error": (cents * batch.voicing).sum(),
        }

    def evaluate(self, networks: Networks, batch: HarmonicBatch) -> dict[str, Term]:
        network = networks["harmonic"]
        terms: dict[str, Term] = {}
        for index in range(len(batch.names)):
            one, mel = self._utterance(batch, index)
            sums = self._pitch_sums(network.pitch(mel), one)
            size = 2 * self._audio.filter_length  # of the longest window
            pair = [one.audio, network.infer(mel)[:, : one.audio.size(1)]]
            recorded, made = (F.pad(wave, (0, max(size - wave.size(1), 0))) for wave in pair)
            counts = self.counts("harmonic", one)
            for name, total in (self.sound_sums(recorded[:, : made.size(1)], made) | sums).items():
                before = terms.get(name, Term(torch.zeros_like(total), torch.zeros_like(counts[name])))
                terms[name] = Term(before.total + total, before.count + counts[name])
        return terms

    def examples(self, networks: Networks, batch: HarmonicBatch) -> list[Example]:
        examples = []
        for index, name in enumerate(batch.names[:N_EXAMPLES]):
            one, mel = self._utterance(batch, index)
            pair = one.audio, networks["harmonic"].infer(mel)
            examples.append(sound_example(name, self._mel.to(mel.device), *pair))
        return examples

    def _utterance(self, batch: HarmonicBatch, index: int) -> tuple[HarmonicBatch, Tensor]:
        """Return one utterance of a validation batch, without padding, and its input mel (1, n_mels, F)."""
        row, n_samples = slice(index, index + 1), batch.n_samples[index]
        extractor, audio = self._mel.to(batch.audio.device), batch.audio[row, :n_samples]
        n_frames = extractor.n_frames(n_samples)
        pitch, voicing = batch.pitch[row, :n_frames], batch.voicing[row, :n_frames]
        one = replace(batch, names=batch.names[row], audio=audio, n_samples=(n_samples,), pitch=pitch, voicing=voicing)
        return one, extractor(audio) if batch.mels is None else batch.mels[row, :, :n_frames]


def magnitudes(sounds: Tensor, *, size: int) -> Tensor:
    """sounds (B, T) -> magnitudes (B, F, bins) of windows of ``size`` samples."""
    window = torch.hann_window(size, device=sounds.device)
    spectra = torch.fft.rfft(sounds.unfold(1, size, size // 4) * window)
    return (spectra.real.square() + spectra.imag.square()).clamp(min=1e-12).sqrt()


def stft_distance(spectra: Sequence[Tensor], a: int, b: int) -> Tensor:
    """Spectral convergence, relative to ``spectra[0]``, plus log L1 of spectra a and b, (B, F, bins) each -> (B,).

    Source: Yamamoto et al., Parallel WaveGAN (arXiv:1910.11480), section 2.2.
    """
    first, second = spectra[a], spectra[b]
    norm = torch.linalg.vector_norm(spectra[0], dim=(1, 2)).clamp(min=_QUIETEST)
    convergence = torch.linalg.vector_norm(first - second, dim=(1, 2)) / norm
    logs = first.clamp(min=_FAINTEST).log() - second.clamp(min=_FAINTEST).log()
    return convergence + logs.abs().mean((1, 2))


def _near_voiced(voicing: Tensor) -> Tensor:
    """voicing (B, F), 0 or 1 -> (B, F), with 1 also in the `_NEAR` frames around voiced ones."""
    return F.max_pool1d(voicing, 2 * _NEAR + 1, stride=1, padding=_NEAR)


build_objective = HarmonicObjective
