"""Files of what was spoken: sound, mels, pictures, subtitles, timings and prosody, each complete or not there."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from common.audio import save_wav
from common.audio.options import SETTINGS
from common.config import AudioConfig, to_plain
from common.files import make_folder, write_json, write_text, writing
from common.synthesis.captions import subtitles
from common.synthesis.options import OutputOptions
from common.synthesis.phrases import Phrase
from common.synthesis.pictures import draw_speech
from common.synthesis.speech import Speech
from common.synthesis.utterances import SynthesisResult
from common.torch_file import save_tensor

_HINT = "; choose another --output"
Companions = dict[str, Callable[[Speech, Path], None]]  # by suffix: files beside the sound, "a.srt" of "a.wav"


class OutputFolder:
    """Files of synthesized phrases: the sound as ``<output>``, ``mels/<output>.pt`` when mels are kept, and others."""

    def __init__(
        self,
        folder: Path,
        *,
        audio: AudioConfig,
        join: Callable[[Sequence[SynthesisResult]], Speech],
        save_mels: bool = False,
        companions: Companions | None = None,
        with_sound: bool = True,
    ) -> None:
        """``join`` makes speech of a phrase's utterances; ``companions`` write what stands beside each sound.

        Nothing is written before `prepare`.
        """
        self.n_written = 0  # phrases
        self.path = folder
        self._audio = audio
        self._join = join
        self._save_mels = save_mels
        self._companions = companions or {}
        self._with_sound = with_sound
        self._settings = folder / "mels" / SETTINGS
        self._parts: defaultdict[PurePosixPath, list[SynthesisResult]] = defaultdict(list)  # of unfinished phrases

    def files(self, phrases: Iterable[Phrase]) -> Iterator[tuple[str, Path]]:
        """All files that are written of ``phrases``, as `check_apart` takes them."""
        for phrase in phrases:
            mel, sound, beside = self._paths(phrase.output)
            name = f"{phrase.where}: the file"
            yield from ((name, path) for path in ([mel] * self._save_mels + [sound] * self._with_sound))
            yield from ((name, path) for path in beside.values())
        if self._save_mels:
            yield "--save-mels:", self._settings

    def prepare(self) -> None:
        """Make the folder, now rather than after the work, and say what the mels are that are to come."""
        make_folder(self.path, _HINT)
        if self._save_mels:
            with writing(self.path, _HINT):
                write_json(self._settings, to_plain(self._audio))

    def _paths(self, output: PurePosixPath) -> tuple[Path, Path, dict[str, Path]]:
        """Paths of the mel, of the sound, and by suffix of the files beside the sound."""
        beside = {suffix: self.path / output.with_suffix(suffix) for suffix in self._companions}
        return self.path / "mels" / output.with_suffix(".pt"), self.path / output, beside

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
        return self.write(self._join(sorted(parts, key=lambda part: part.item.part)), output)

    def write(self, speech: Speech, output: PurePosixPath) -> str:
        """Write one phrase's files, each completely or not at all; returns a line that says so."""
        mel, sound, beside = self._paths(output)
        line = f"{mel if self._save_mels else next(iter(beside.values()), sound)}: {speech.mel.size(1)} frames"
        with writing(sound, f"; files of {self.n_written} phrases are complete: make room, and run again"):
            if self._save_mels:
                save_tensor(mel, speech.mel)
            if speech.has_sound:
                save_wav(sound, speech.wave, sampling_rate=self._audio.sampling_rate)
                line = f"{sound}: {len(speech.wave) / self._audio.sampling_rate:.2f} s"
            for suffix, path in beside.items():
                self._companions[suffix](speech, path)
        self.n_written += 1
        return line


def companions_of(kept: OutputOptions) -> Companions:
    """What is written beside a sound, its picture, subtitles, timings and prosody, as far as it is asked for."""
    kind = kept.subtitles
    files: Companions = {}
    if kept.plots:
        files[".png"] = draw_speech
    if kind is not None:
        files[f".{kind}"] = lambda speech, path: write_text(path, subtitles(speech, kind))
    if kept.timings:
        files[".timings.json"] = lambda speech, path: write_json(path, speech.timings())
    if kept.save_prosody:
        files[".prosody.json"] = lambda speech, path: speech.table.save(path)
    return files
