"""Write the results of synthesis: sound, mels, plots, subtitles and prosody, each file atomically."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import torch

from common.audio.options import SETTINGS
from common.audio.pitch import estimate_pitch
from common.config import AudioConfig, to_plain
from common.errors import AudioError
from common.files import make_folder, write_json, write_text, writing
from common.synthesis.options import CommandOptions
from common.synthesis.speech import Speech, subtitles
from common.synthesis.utterances import Phrase, SynthesisResult, silences
from common.synthesis.voice import Voice
from common.torch_file import save_tensor

Write = Callable[[Speech, Path], None]


class OutputFolder:
    """Writes files of synthesized phrases: sound to ``<output>``, mels to ``mels/<output>.pt``, and others."""

    def __init__(self, options: CommandOptions, audio: AudioConfig, voice: Voice | None = None) -> None:
        """``options`` name the folder, or the file for one text; nothing is written before `prepare`.

        ``audio`` describes the mels; ``voice`` is None if mels are given.
        """
        assert options.folder is not None
        self.path = options.folder
        self.n_written = 0  # phrases
        self._options, self._audio, self._voice = options, audio, voice
        self._parts: defaultdict[PurePosixPath, list[SynthesisResult]] = defaultdict(list)  # of unfinished phrases

    def files(self, phrases: Iterable[Phrase]) -> Iterator[tuple[str, Path]]:
        """Yield all files to write for ``phrases``, as arguments for `check_apart`."""
        for phrase in phrases:
            yield from ((f"{phrase.where}: the file", path) for path in self._files_of(phrase.output))
        if self._options.save_mels:
            yield "--save-mels:", self.path / "mels" / SETTINGS

    def prepare(self) -> None:
        """Create the folder before the work begins, and describe the mels in it."""
        make_folder(self.path, "; choose another --output")
        if self._options.save_mels:
            write_json(self.path / "mels" / SETTINGS, to_plain(self._audio))

    def _files_of(self, output: PurePosixPath) -> dict[Path, Write]:
        """Return the files of one phrase and their writers: "a.srt" next to "a.wav"."""
        options, sound, kind = self._options, self.path / output, self._options.subtitles
        files: dict[Path, Write] = {}
        if options.save_mels:
            files[self.path / "mels" / output.with_suffix(".pt")] = lambda speech, path: save_tensor(path, speech.mel)
        if not options.no_audio:
            files[sound] = Speech.save
        if options.plots:
            files[sound.with_suffix(".png")] = plot_speech
        if kind is not None:
            files[sound.with_suffix(f".{kind}")] = lambda speech, path: write_text(path, subtitles(speech, kind))
        if options.save_prosody:
            files[sound.with_suffix(".prosody.json")] = lambda speech, path: speech.table.save(path)
        return files

    def add(self, result: SynthesisResult) -> str | None:
        """Write a phrase's files once its last utterance is added, each completely or not at all; return a line."""
        output = result.item.phrase.output
        self._parts[output].append(result)
        if len(self._parts[output]) < result.item.n_parts:
            return None
        parts = sorted(self._parts.pop(output), key=lambda part: part.item.part)
        speech = Speech(tuple(parts), self._audio) if self._voice is None else self._voice.join(parts)
        sound, files = self.path / output, self._files_of(output)
        with writing(sound, f"; the files of {self.n_written} phrases are complete: free some space, and rerun"):
            for path, write in files.items():
                write(speech, path)
        self.n_written += 1
        if not self._options.no_audio:
            return f"{sound}: {speech.duration:.2f} s"
        return f"{next(iter(files))}: {speech.mel.size(1)} frames"


def plot_speech(speech: Speech, path: Path) -> None:
    """Save a PNG of the mel-spectrogram with its symbols, and the pitch: measured, and from the model."""
    from common.plots import PITCH, plot_utterance, save_png  # matplotlib takes half a second to import

    columns: list[tuple[str, int, float]] = []
    for part, row in zip(speech.parts, speech.table.utterances):
        lead, pause = silences(part.item, speech.audio)
        spoken = ((one.symbol, one.frames, one.pitch or 0.0) for one in row.symbols)
        columns += [("", lead, 0.0), *spoken, ("", pause, 0.0)]
    symbols, frames, pitch = zip(*columns)
    curves: dict[str, torch.Tensor] = {}
    if speech.parts[0].wave is not None:
        with suppress(AudioError):  # too short to measure
            measured = estimate_pitch(speech.wave.numpy(), speech.audio, n_frames=speech.mel.size(1))
            curves["measured"] = torch.from_numpy(measured)
    durations = torch.tensor(frames)
    curves["model"] = torch.tensor(pitch).repeat_interleave(durations)
    phrase = speech.parts[0].item.phrase
    figure = plot_utterance(
        {"": speech.mel},
        audio=speech.audio,
        title=phrase.text or str(phrase.output),
        symbols=symbols,
        durations=durations,
        curves={PITCH: curves},
    )
    save_png(figure, path)
