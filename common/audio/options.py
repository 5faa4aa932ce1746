"""What mel-spectrograms are: their options, and the file audio.json that says it of a corpus or of features."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

from common.config import FRAMINGS, AudioConfig, audio_preset, differences, from_plain
from common.errors import InputError, OptionError
from common.files import read_json
from common.options import option

SETTINGS = "audio.json"  # in a corpus's folder and beside features: what the mels are


@dataclass(frozen=True)
class AudioOptions:
    """What the mel-spectrograms are; an option that is left out (None) sets nothing."""

    sampling_rate: int | None = option(None, f"Hz [{AudioConfig.sampling_rate}]", least=1, names=("-sr",))
    filter_length: int | None = option(None, f"size of the FFT, samples [{AudioConfig.filter_length}]", least=1)
    hop_length: int | None = option(None, f"samples [{AudioConfig.hop_length}]", least=1)
    win_length: int | None = option(None, f"samples [{AudioConfig.win_length}]", least=1)
    n_mels: int | None = option(
        None, f"mel channels [{AudioConfig.n_mels}]", least=1, names=("--n-mel-channels",), published=("--num-mels",)
    )
    mel_fmin: float | None = option(None, f"Hz [{AudioConfig.mel_fmin}]", least=0)
    mel_fmax: float | None = option(None, f"Hz [{AudioConfig.mel_fmax}]", above=0)
    framing: str | None = option(
        None,
        f"where frames start: centered as Tacotron 2's, aligned as HiFi-GAN's [{AudioConfig.framing}]",
        choices=FRAMINGS,
    )
    peak: float | None = option(None, "scale each clip to this largest absolute sample", above=0)
    audio_config: Path | None = option(
        None,
        f"JSON whose values are the defaults of these (default: {SETTINGS} in the dataset's folder, if there is one)",
        metavar="FILE",
        variable="AUDIO_CONFIG",
    )

    def config(self, *, corpus: Path, base: AudioConfig | None = None) -> AudioConfig:
        """``base`` with the options that were given; by default the ``corpus``'s mels, or what suits the sampling rate.

        Raises:
            OptionError: they describe no mel-spectrogram.
        """
        names = [field.name for field in fields(AudioConfig)]
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if base is None and (found := self.of_corpus(corpus)) is not None:
            base = found[1]
        try:
            return replace(base or audio_preset(self.sampling_rate or AudioConfig.sampling_rate), **given)
        except InputError as error:
            raise OptionError(str(error)) from error

    def of_corpus(self, folder: Path) -> tuple[Path, AudioConfig] | None:
        """The file that says what the mels of the corpus in ``folder`` are, and what it says; None without one.

        It is --audio-config, else the audio.json that scripts/prepare_dataset.sh writes there.
        """
        path = self.audio_config or folder / SETTINGS
        return (path, read_audio_config(path)) if self.audio_config or path.is_file() else None


def mel_lines(audio: AudioConfig, corpus: tuple[Path, AudioConfig] | None) -> list[str]:
    """What a training says at its start: what its mels are, and `corpus_note`."""
    top = audio.sampling_rate / 2 if audio.mel_fmax is None else audio.mel_fmax
    band = f"{audio.n_mels} channels from {audio.mel_fmin:g} to {top:g} Hz"
    peak = "" if audio.peak is None else f", peak {audio.peak:g}"
    frames = f"window {audio.win_length}, hop {audio.hop_length}, {audio.framing}{peak}"
    return [f"mels: {audio.sampling_rate} Hz, {band}, {frames}", *corpus_note(audio, corpus)]


def corpus_note(audio: AudioConfig, corpus: tuple[Path, AudioConfig] | None) -> list[str]:
    """A line where mels are made otherwise than the corpus's file says; none where they are not."""
    lines = [] if corpus is None else differences(corpus[1], audio, names=("there", "here"))
    return [f"note: other mels than {corpus[0]} says: {'; '.join(lines)}"] if corpus and lines else []


def features_config(folder: Path) -> AudioConfig | None:
    """What the mels in ``folder`` are, by the audio.json that extract_mels.py wrote there; None without one."""
    path = folder / SETTINGS
    return read_audio_config(path) if path.is_file() else None


def read_audio_config(path: Path) -> AudioConfig:
    """The AudioConfig in a JSON file; raises InputError where there is none."""
    return from_plain(AudioConfig, read_json(path), where=str(path))
