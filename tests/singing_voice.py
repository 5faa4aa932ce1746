"""A voice that sings what it is told: its sound has exactly the pitch, lengths and volume of the prosody table."""

import torch
from torch import Tensor

from common.config import AudioConfig
from common.precision import precision_of_device
from common.registry import get_model
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.utterances import Controls, MelOutput
from common.synthesis.voice import Voice
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd

AUDIO = AudioConfig(n_mels=20)
MEAN, STD = 160.0, 40.0  # Hz
QUIET = -11.0


class SingingNetwork:
    """tokens (B, L) -> mel, whose lowest channel is the logarithm of the pitch; the others are a picture of it."""

    pitch_mean, pitch_std = torch.tensor([MEAN]), torch.tensor([STD])

    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """Lengths and pitch follow from the symbols, unless they are given."""
        controls = Controls() if controls is None else controls
        valid = torch.arange(tokens.size(1)) < lengths[:, None]
        speaker = torch.as_tensor(controls.speaker).view(-1, 1)
        pitch = (130.0 + 10.0 * (tokens % 7)).double() * (1 + 0.5 * speaker) * (tokens % 9 != 0)
        if controls.pitch_transform is not None:
            mean, std = torch.full_like(pitch[:, :1], MEAN), torch.full_like(pitch[:, :1], STD)
            changed = controls.pitch_transform((pitch - mean) / std, lengths, mean, std) * std + mean
            pitch = changed * (pitch > 0)
        pitch = pitch if controls.pitch_hz is None else controls.pitch_hz
        durations = (4.0 + tokens % 5) if controls.durations is None else controls.durations
        frames = (durations / controls.pace).round().long() * valid
        energy = 1.0 + 0.1 * (tokens % 4) if controls.energy is None else controls.energy
        sizes = frames.sum(1)
        mel = torch.zeros(len(tokens), AUDIO.n_mels, int(sizes.max()))
        for row, length in enumerate(lengths.tolist()):
            notes = pitch[row, :length].repeat_interleave(frames[row, :length]).float()
            loudness = energy[row, :length].repeat_interleave(frames[row, :length])
            channels = torch.arange(AUDIO.n_mels)[:, None]
            drawn = loudness + 3 * torch.cos(channels * 100 / notes.clamp(min=50)) - 0.2 * channels
            drawn[0] = notes.log().clamp(min=QUIET)
            mel[row, :, : len(notes)] = drawn
        energy = energy.float()
        return MelOutput(mel, sizes, durations, frames, pitch, energy, pitch_hz=pitch, decoded_energy=energy)


class SingingVocoder:
    """A sawtooth of five harmonics at the pitch that a `SingingNetwork`'s mel tells."""

    name, max_batch, audio, path = "singer", 1, AUDIO, None

    def speak(self, mel: Tensor, lengths: list[int]) -> list[Tensor]:
        """As `common.synthesis.Vocoder.speak`."""
        return [torch.cat(list(self.stream(one[:, :length]))) for one, length in zip(mel, lengths)]

    def stream(self, mel: Tensor):
        """As `common.synthesis.Vocoder.stream`."""
        pitch = mel[0].exp().repeat_interleave(AUDIO.hop_length)
        phase = 2 * torch.pi * torch.cumsum(pitch.double() / AUDIO.sampling_rate, 0)
        wave = sum(torch.sin(k * phase) / k for k in range(1, 6))
        yield (0.2 * wave * (pitch > 1)).float()


def singing_voice(*, model: str = "FastPitch", speakers: tuple[str, ...] = (), text: TextConfig | None = None) -> Voice:
    """It reads English with ARPAbet, or as ``text`` says; of ``model`` "Tacotron2" its prosody cannot be set."""
    arpabet = TextConfig(cleaners=("english_cleaners_v3",), p_arpabet=1.0, arpabet_ambiguous="first", speakers=speakers)
    text = text or arpabet
    return Voice(
        spec=get_model(model),
        synthesizer=Synthesizer(
            audio=AUDIO, precision=precision_of_device("cpu"), network=SingingNetwork(), vocoder=SingingVocoder()
        ),
        front_end=TextFrontEnd(text),
        n_speakers=max(1, len(speakers)),
    )
