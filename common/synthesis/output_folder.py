"""Files of what was spoken: sound, mels, pictures, subtitles, timings and prosody, each complete or not there."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from common.audio import save_wav
from common.audio.options import SETTINGS
from common.config import to_plain
from common.files import make_folder, write_json, write_text, writing
from common.synthesis.captions import subtitles
from common.synthesis.options import OutputOptions
from common.synthesis.phrases import Phrase
from common.synthesis.pictures import draw_speech
from common.synthesis.speech import Speech
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.utterances import SynthesisResult
from common.torch_file import save_tensor

_HINT = "; choose another --output"


class OutputFolder:
    """Files of synthesized phrases: the sound as ``<output>``, ``mels/<output>.pt`` when mels are kept, and others."""

    def __init__(self, kept: OutputOptions, synthesizer: Synthesizer) -> None:
        """``kept`` names the folder, or the file of one text; nothing is written before `prepare`."""
        assert kept.folder is not None
        self.path = kept.folder
        self.n_written = 0  # phrases
        self._kept = kept
        self._synthesizer = synthesizer
        self._parts: defaultdict[PurePosixPath, list[SynthesisResult]] = defaultdict(list)  # of unfinished phrases
        self._beside: dict[str, Callable[[Speech, Path], None]] = {}  # by suffix: what writes "a.srt" of "a.wav"
        if kept.plots:
            self._beside[".png"] = draw_speech
        if (kind := kept.subtitles) is not None:
            self._beside[f".{kind}"] = lambda speech, path: write_text(path, subtitles(speech, kind))
        if kept.timings:
            self._beside[".timings.json"] = lambda speech, path: write_json(path, speech.timings())
        if kept.save_prosody:
            self._beside[".prosody.json"] = lambda speech, path: speech.table.save(path)

    def files(self, phrases: Iterable[Phrase]) -> Iterator[tuple[str, Path]]:
        """All files that are written of ``phrases``, as `check_apart` takes them."""
        for phrase in phrases:
            yield from ((f"{phrase.where}: the file", path) for path in self._files_of(phrase.output))
        if self._kept.save_mels:
            yield "--save-mels:", self.path / "mels" / SETTINGS

    def prepare(self) -> None:
        """Make the folder, now rather than after the work, and say what the mels are that are to come."""
        make_folder(self.path, _HINT)
        if self._kept.save_mels:
            with writing(self.path, _HINT):
                write_json(self.path / "mels" / SETTINGS, to_plain(self._synthesizer.audio))

    def _files_of(self, output: PurePosixPath) -> list[Path]:
        """The files of one phrase: its mel, its sound, and those beside it."""
        mel, sound = self._mel_path(output), self.path / output
        files = [mel] * self._kept.save_mels + [sound] * (not self._kept.no_audio)
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
            if self._kept.save_mels:
                save_tensor(self._mel_path(output), speech.mel)
            if speech.has_sound:
                save_wav(sound, speech.wave, sampling_rate=rate)
            for suffix, write in self._beside.items():
                write(speech, sound.with_suffix(suffix))
        self.n_written += 1
        if speech.has_sound:
            return f"{sound}: {len(speech.wave) / rate:.2f} s"
        return f"{self._files_of(output)[0]}: {speech.mel.size(1)} frames"
