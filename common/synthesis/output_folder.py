"""Write the results of synthesis: sound, mels, pictures, subtitles, timings and prosody, each file atomically."""

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
from common.synthesis.speech import Speech, SymbolProsody, subtitles
from common.synthesis.utterances import Phrase, SynthesisResult, silences
from common.synthesis.voice import Voice
from common.torch_file import save_tensor


class OutputFolder:
    """Files of synthesized phrases: the sound as ``<output>``, ``mels/<output>.pt`` when mels are kept, and others."""

    def __init__(self, options: CommandOptions, audio: AudioConfig, voice: Voice | None = None) -> None:
        """``options`` name the folder, or the file of one text; nothing is written before `prepare`.

        ``audio`` describes the mels, which ``voice`` makes unless they are given.
        """
        assert options.folder is not None
        self.path = options.folder
        self.n_written = 0  # phrases
        self._options = options
        self._audio = audio
        self._voice = voice
        self._parts: defaultdict[PurePosixPath, list[SynthesisResult]] = defaultdict(list)  # of unfinished phrases
        # Folders below `path`, suffixes in place of the sound's, and what writes each file: "a.srt" beside "a.wav"
        self._kinds: list[tuple[str, str, Callable[[Speech, Path], None]]] = []
        if options.save_mels:
            self._kinds.append(("mels", ".pt", lambda speech, path: save_tensor(path, speech.mel)))
        if not options.no_audio:
            self._kinds.append(("", "", Speech.save))
        if options.plots:
            self._kinds.append(("", ".png", draw_speech))
        if (kind := options.subtitles) is not None:
            self._kinds.append(("", f".{kind}", lambda speech, path: write_text(path, subtitles(speech, kind))))
        if options.timings:
            self._kinds.append(("", ".timings.json", lambda speech, path: write_json(path, speech.timings())))
        if options.save_prosody:
            self._kinds.append(("", ".prosody.json", lambda speech, path: speech.table.save(path)))

    def files(self, phrases: Iterable[Phrase]) -> Iterator[tuple[str, Path]]:
        """All files that are written of ``phrases``, as `check_apart` takes them."""
        for phrase in phrases:
            yield from ((f"{phrase.where}: the file", path) for path, _ in self._files_of(phrase.output))
        if self._options.save_mels:
            yield "--save-mels:", self.path / "mels" / SETTINGS

    def prepare(self) -> None:
        """Make the folder, now rather than after the work, and say what the mels are that are to come."""
        make_folder(self.path, "; choose another --output")
        if self._options.save_mels:
            write_json(self.path / "mels" / SETTINGS, to_plain(self._audio))

    def _files_of(self, output: PurePosixPath) -> list[tuple[Path, Callable[[Speech, Path], None]]]:
        """The files of one phrase, and what writes each."""
        return [
            (self.path / folder / output.with_suffix(suffix or output.suffix), write)
            for folder, suffix, write in self._kinds
        ]

    def add(self, result: SynthesisResult) -> str | None:
        """Write a phrase's files when its last utterance is there, each completely or not at all; returns a line."""
        output = result.item.phrase.output
        parts = self._parts[output]
        parts.append(result)
        if len(parts) < result.item.n_parts:
            return None
        del self._parts[output]
        parts = sorted(parts, key=lambda part: part.item.part)
        speech = Speech(tuple(parts), self._audio) if self._voice is None else self._voice.join(parts)
        sound, files = self.path / output, self._files_of(output)
        with writing(sound, f"; files of {self.n_written} phrases are complete: make room, and run again"):
            for path, write in files:
                write(speech, path)
        self.n_written += 1
        if speech.has_sound:
            return f"{sound}: {speech.duration:.2f} s"
        return f"{files[0][0]}: {speech.mel.size(1)} frames"


def draw_speech(speech: Speech, path: Path) -> None:
    """Write a picture of what was spoken as a PNG, with what its generator tells of it.

    Pitch is drawn as measured in the sound, where there is one, and as the generator spoke with it. Raises InputError
    if the file cannot be written.
    """
    from common.plots import PITCH, plot_utterance, save_png  # matplotlib takes half a second to import

    first, n_frames = speech.parts[0], speech.mel.size(1)
    pitch: dict[str, torch.Tensor] = {}
    curves = {PITCH: pitch}
    durations, alignment = None, None
    symbols: list[str] = []
    if speech.has_sound:
        with suppress(AudioError):  # too short to tell
            pitch["measured"] = torch.from_numpy(estimate_pitch(speech.wave.numpy(), speech.audio, n_frames=n_frames))
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
        title=first.item.phrase.text or str(first.item.phrase.output),
        symbols=symbols,
        durations=durations,
        alignment=alignment,
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
