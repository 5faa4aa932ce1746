"""From mel-spectrograms to sound: Griffin-Lim, neural vocoders, and the check that a vocoder fits its mels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio.denoiser import BIAS_FRAMES, Denoiser
from common.audio.mel import griffin_lim
from common.config import AudioConfig, differences
from common.errors import InputError
from common.precision import Precision
from common.synthesis.cuda_graphs import FRAME_STEP, GraphRecorder
from common.synthesis.networks import MelToWave, VocoderSettings
from common.synthesis.options import ACCEPTABLE_DIFFERENCES, GRIFFIN_LIM_ITERATIONS

FIRST_FRAMES = 8  # of the first piece, 0.1 s of the usual mels, so that sound starts early
GROWTH = 2  # ratio of each piece to the previous one, so that the overlap becomes a small share of the work
LONGEST_PIECE = 512  # frames, 6 s; longer pieces need more memory and save little work


@dataclass(frozen=True)
class GriffinLimVocoder:
    """Griffin-Lim with seeded initial phases, one utterance at a time; used like `NetworkVocoder`."""

    audio: AudioConfig
    seed: int
    n_iter: int = GRIFFIN_LIM_ITERATIONS
    name: str = "griffin_lim"
    max_batch: int | None = 1
    path: Path | None = None

    def speak(self, mel: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        """mel (B, n_mels, F), lengths B frames -> each utterance's wave (lengths[i] * hop,) float32 on the CPU."""
        return [
            griffin_lim(one[:, :length], self.audio, n_iter=self.n_iter, seed=self.seed)
            for one, length in zip(mel.float().cpu(), lengths)
        ]

    def stream(self, mel: Tensor) -> Iterator[Tensor]:
        """mel (n_mels, F) -> the wave in one piece, because every iteration changes all of it."""
        yield from self.speak(mel[None], [mel.size(1)])


def plan_pieces(n_frames: int, *, context: int) -> Iterator[tuple[int, int]]:
    """Yield pieces, frames [start, end) of a mel of ``n_frames``, to be read with ``context`` frames on each side.

    The first is short, and later ones grow. None of these is shorter than ``context``, so that at most two thirds of
    a network's input is context. A shorter remainder is part of the last piece.
    """
    start, size = 0, FIRST_FRAMES
    while start < n_frames:
        end = start + size if n_frames - start - size > context else n_frames
        yield start, end
        start, size = end, max(min(size * GROWTH, LONGEST_PIECE), context)


@dataclass(eq=False)
class NetworkVocoder:
    """A trained vocoder and its denoiser, which subtracts the output of ``network`` for a mel of zeros.

    On a CPU, it synthesizes one utterance at a time, which is faster there than batches and needs no padding.
    """

    network: MelToWave
    audio: AudioConfig  # the mels it reads
    name: str  # in the log's keys: ``<name>_samples/s``
    precision: Precision
    path: Path | None = None  # of the checkpoint, for errors
    denoising_strength: float = 0.0  # 0: no denoiser
    settings: VocoderSettings = VocoderSettings()
    graph_recorder: GraphRecorder | None = None  # None: no CUDA graphs

    def __post_init__(self) -> None:
        # The best batch size; None: any
        self.max_batch = 1 if self.precision.device.type == "cpu" else None
        self._run: Callable[[Tensor, Tensor | None], Tensor] = self._infer
        if self.graph_recorder is not None:
            self._recorded, self._run = self.graph_recorder.by_shape(self._infer), self._infer_padded
        self._denoiser = None
        if self.denoising_strength > 0:
            zeros = torch.zeros(1, self.audio.n_mels, BIAS_FRAMES, device=self.precision.device)
            with torch.inference_mode():
                noise = self._infer(zeros, None, **self.settings.silent)[0]
                self._denoiser = Denoiser(noise, self.audio, strength=self.denoising_strength)

    @torch.inference_mode()
    def speak(self, mel: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        """mel (B, n_mels, F), lengths B frames, the longest F -> each utterance's wave (lengths[i] * hop,) float32.

        An utterance's wave does not depend on the rest of its batch.
        """
        frames = torch.tensor(lengths, device=mel.device) if min(lengths) < mel.size(2) else None
        padded = self._run(mel.contiguous(), frames)
        waves = [wave[: length * self.audio.hop_length] for wave, length in zip(padded, lengths)]
        return waves if self._denoiser is None else [self._denoiser(wave) for wave in waves]

    @torch.inference_mode()
    def stream(self, mel: Tensor) -> Iterator[Tensor]:
        """mel (n_mels, F) -> pieces (T_i,) float32 on the CPU, together the wave of `speak`.

        Each is computed on demand, in memory that doesn't grow with the mel. A network without
        `VocoderSettings.context` makes one piece.
        """
        n_frames, hop, context = mel.size(1), self.audio.hop_length, self.settings.context
        context = n_frames if context is None else context
        context += 0 if self._denoiser is None else self._denoiser.context
        for start, end in plan_pieces(n_frames, context=context):
            first = max(start - context, 0)
            wave = self._run(mel[None, :, first : end + context].to(self.precision.device).contiguous(), None)[0]
            wave = wave if self._denoiser is None else self._denoiser(wave)
            yield wave[(start - first) * hop : (end - first) * hop].cpu()

    def _infer(self, mel: Tensor, lengths: Tensor | None, **further: Any) -> Tensor:
        with self.precision.autocast():
            return self.network.infer(mel, lengths, **{**self.settings.infer, **further}).float()

    def _infer_padded(self, mel: Tensor, lengths: Tensor | None) -> Tensor:
        """Do what `_infer` does by replaying the CUDA graph of a padded mel."""
        n_frames = mel.size(2)
        if lengths is None:
            lengths = torch.full((len(mel),), n_frames, device=mel.device)
        wave = self._recorded(F.pad(mel, (0, -n_frames % FRAME_STEP)), lengths)
        return wave[:, : n_frames * self.audio.hop_length]


Vocoder = GriffinLimVocoder | NetworkVocoder


@dataclass(frozen=True)
class AudioContract:
    """The mels that a vocoder's checkpoint reads, for comparison with those it is given."""

    audio: AudioConfig
    owner: str  # the checkpoint's path, for messages
    assumed: tuple[str, ...] = ()  # fields that its file does not record, which may differ
    accepted: tuple[str, ...] = ()  # fields that the user lets differ

    def differences(self, audio: AudioConfig, *, owner: str = "", assumed: tuple[str, ...] = ()) -> list[str]:
        """Return a line for each field in which the mels of ``owner`` differ but must not."""
        ignored = (*self.assumed, *assumed, *self.accepted)
        return differences(audio, self.audio, names=(owner, self.owner), ignored=ignored)

    def check(self, audio: AudioConfig, *, owner: str, assumed: tuple[str, ...] = ()) -> None:
        """Refuse mels with another description. ``audio`` is ``owner``'s, which doesn't record the fields ``assumed``.

        Fields that one side doesn't record are assumed to match, with a note on stdout. Raises an InputError that
        lists each field that differs, and what to do.
        """
        if lines := self.differences(audio, owner=owner, assumed=assumed):
            message = f"{owner} and {self.owner} use different mel-spectrograms: {'; '.join(lines)}"
            refused = [line.partition(":")[0] for line in lines]
            if set(refused) <= set(ACCEPTABLE_DIFFERENCES):
                option = f"--accept-audio-differences {' '.join([*self.accepted, *refused])}"
                message += f"; fine-tune the vocoder on these mels (scripts/fine_tune.sh), or give {option}"
            raise InputError(message)
        unrecorded = dict.fromkeys((*self.assumed, *assumed))
        if names := " and ".join(name for name in unrecorded if getattr(audio, name) != getattr(self.audio, name)):
            print(f"note: {self.owner} and {owner} do not both record {names} of their mels; assuming that they match")
