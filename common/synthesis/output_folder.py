"""Files of what was spoken: sound, mels, pictures, subtitles, timings and prosody, each complete or not there."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from common.audio import estimate_pitch, save_wav
from common.audio.options import SETTINGS
from common.config import AudioConfig, to_plain
from common.errors import AudioError
from common.files import make_folder, write_json, write_text, writing
from common.synthesis.options import CommandOptions
from common.synthesis.phrases import Phrase
from common.synthesis.speech import Speech, SymbolProsody, subtitles
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.utterances import SynthesisResult, silences
from common.torch_file import save_tensor

_HINT = "; choose another --output"


class OutputFolder:
    """Files of synthesized phrases: the sound as ``<output>``, ``mels/<output>.pt`` when mels are kept, and others."""

    def __init__(self, options: CommandOptions, synthesizer: Synthesizer) -> None:
        """``options`` name the folder, or the file of one text; nothing is written before `prepare`."""
        assert options.folder is not None
        self.path = options.folder
        self.n_written = 0  # phrases
        self._options = options
        self._synthesizer = synthesizer
        self._parts: defaultdict[PurePosixPath, list[SynthesisResult]] = defaultdict(list)  # of unfinished phrases
        self._beside: dict[str, Callable[[Speech, Path], None]] = {}  # by suffix: what writes "a.srt" of "a.wav"
        if options.plots:
            self._beside[".png"] = draw_speech
        if (kind := options.subtitles) is not None:
            self._beside[f".{kind}"] = lambda speech, path: write_text(path, subtitles(speech, kind))
        if options.timings:
            self._beside[".timings.json"] = lambda speech, path: write_json(path, speech.timings())
        if options.save_prosody:
            self._beside[".prosody.json"] = lambda speech, path: speech.table.save(path)

    def files(self, phrases: Iterable[Phrase]) -> Iterator[tuple[str, Path]]:
        """All files that are written of ``phrases``, as `check_apart` takes them."""
        for phrase in phrases:
            yield from ((f"{phrase.where}: the file", path) for path in self._files_of(phrase.output))
        if self._options.save_mels:
            yield "--save-mels:", self.path / "mels" / SETTINGS

    def prepare(self) -> None:
        """Make the folder, now rather than after the work, and say what the mels are that are to come."""
        make_folder(self.path, _HINT)
        if self._options.save_mels:
            with writing(self.path, _HINT):
                write_json(self.path / "mels" / SETTINGS, to_plain(self._synthesizer.audio))

    def _files_of(self, output: PurePosixPath) -> list[Path]:
        """The files of one phrase: its mel, its sound, and those beside it."""
        mel, sound = self._mel_path(output), self.path / output
        files = [mel] * self._options.save_mels + [sound] * (not self._options.no_audio)
        return [*files, *map(sound.with_suffix, self._beside)]

    def _mel_path(self, output: PurePosixPath) -> Path:
        return self.path / "mels" / output.with_suffix(".pt")

    def summary(self, n_phrases: int) -> str:
        """How many of the phrases are there."""
        return f"{self.n_written} of {n_phrases} phrases are in {self.path}"

    def add(self, result: SynthesisResult) -> str | None:
        """Write a phrase's files when its last utterance is there; returns a line that says so."""
        output = result.phrase.output
        parts = self._parts[output]
        parts.append(result)
        if len(parts) < result.item.n_parts:
            return None
        del self._parts[output]
        return self._write(self._synthesizer.join(sorted(parts, key=lambda part: part.item.part)), output)

    def _write(self, speech: Speech, output: PurePosixPath) -> str:
        """Write one phrase's files, each completely or not at all; returns a line that says so."""
        sound, rate = self.path / output, speech.sampling_rate
        with writing(sound, f"; files of {self.n_written} phrases are complete: make room, and run again"):
            if self._options.save_mels:
                save_tensor(self._mel_path(output), speech.mel)
            if speech.has_sound:
                save_wav(sound, speech.wave, sampling_rate=rate)
            for suffix, write in self._beside.items():
                write(speech, sound.with_suffix(suffix))
        self.n_written += 1
        if speech.has_sound:
            return f"{sound}: {len(speech.wave) / rate:.2f} s"
        return f"{self._files_of(output)[0]}: {speech.mel.size(1)} frames"


def draw_speech(speech: Speech, path: Path) -> None:
    """Write a picture of what was spoken as a PNG, with what its generator tells of it.

    Pitch is drawn as measured in the sound, where there is one, and as the generator spoke with it.

    Raises:
        InputError: the file cannot be written.
    """
    from common.plots import plot_utterance, save_png  # matplotlib takes half a second to import

    first, n_frames = speech.parts[0], speech.mel.size(1)
    pitch, curves = {}, {}
    durations, alignment = None, None
    symbols: list[str] = []
    if speech.has_sound:
        pitch["measured"] = _measured_pitch(speech.wave, speech.audio, n_frames=n_frames)
    if len(speech.parts) == 1 and first.output is not None and first.output.alignments is not None:
        symbols = list(first.item.symbols)
        alignment = first.output.alignments[first.row, : first.mel.size(1), : first.item.length]
    elif first.item.tokens is not None:
        rows = list(_symbols_of(speech))
        symbols = [one.symbol for one in rows]
        durations = torch.tensor([one.frames for one in rows])
        if all(one.pitch is not None for one in rows):
            pitch["model"] = torch.tensor([one.pitch for one in rows]).repeat_interleave(durations)
        if all(one.energy is not None for one in rows):
            curves["energy"] = {"model": torch.tensor([one.energy for one in rows]).repeat_interleave(durations)}
    figure = plot_utterance(
        {"": speech.mel},
        audio=speech.audio,
        title=first.phrase.text or str(first.phrase.output),
        symbols=symbols,
        durations=durations,
        alignment=alignment,
        pitch=pitch,
        curves=curves,
    )
    save_png(figure, path)


def _symbols_of(speech: Speech) -> Iterator[SymbolProsody]:
    """The symbols of a text, with nameless ones for the silence around its utterances."""
    for part, utterance in zip(speech.parts, speech.table.utterances):
        lead, pause = (
            [SymbolProsody("", n_frames, pitch=0.0, energy=0.0)] * (n_frames > 0)
            for n_frames in silences(part.item, speech.audio)
        )
        yield from (*lead, *utterance.symbols, *pause)


def _measured_pitch(wave: Tensor, audio: AudioConfig, *, n_frames: int) -> Tensor:
    """Pitch (n_frames,) of wave (T,) in Hz, 0 where unvoiced, and everywhere in what is too short to tell."""
    try:
        return torch.from_numpy(estimate_pitch(wave.numpy(), audio, n_frames=n_frames))
    except AudioError:
        return torch.zeros(n_frames)
