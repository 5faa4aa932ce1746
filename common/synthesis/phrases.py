"""Lists of phrases to speak: texts, or the mels or recordings of copy synthesis."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

import torch

from common.audio.mel import MelExtractor
from common.audio.options import features_config
from common.audio.wav import SOUND_FORMATS, SOUND_SUFFIXES, check_wav, load_wav
from common.config import AudioConfig, audio_preset
from common.data.features import load_mel, recorded_samples
from common.data.filelist import FilelistEntry, read_numbered_lines
from common.errors import InputError, shown
from common.synthesis.utterances import Phrase, SynthesisInput
from common.synthesis.vocoder import AudioContract

COLUMNS = ("output", "text", "mel", "wav", "pitch", "duration", "speaker")


def read_phrases(path: Path, *, optional: Collection[str] = ()) -> list[Phrase]:
    """Read a list of phrases in one of these forms.

    - The first line names some of ``COLUMNS``, including ``text``, ``mel`` or ``wav``, separated by tabs or ``|``; the
      other lines contain their values.
    - Every line is ``output.wav|utterance``. Either the first line's name ends in a suffix of `SOUND_FORMATS`, or all
      lines begin with one word and ``|``. Three columns without suffixes are LJSpeech's ``metadata.csv``.
    - One utterance per line. These, and lists without the column ``output``, are named ``audio_0001.wav`` and so on.

    Any other ``|`` is text. Empty lines are skipped. Columns in ``optional`` may be empty. Raises InputError if the
    file is missing or not UTF-8, a line doesn't match the form, a value is empty, an output is outside its folder or
    has another suffix, or two lines have the same output.
    """
    lines = read_numbered_lines(path, kind="list of phrases")  # leading tabs separate empty columns
    if not lines:
        raise InputError(f"{path}: contains no phrases")
    columns, delimiter, rows = _form(path, lines)
    if not rows:
        raise InputError(f"{path}: a header but no phrases")
    # If text is the last column, bars within it are text.
    most = len(columns) - 1 if delimiter == "|" and columns[-1] == "text" else -1
    phrases = []
    seen: dict[PurePosixPath, Phrase] = {}
    for place, (number, line) in enumerate(rows, 1):
        where = f"{path}:{number}"
        values = [value.strip() for value in line.split(delimiter, most)]
        if len(values) != len(columns):
            wanted = " and ".join(name or "a transcript" for name in columns)
            raise InputError(f"{where}: {len(values)} columns, expected {len(columns)}: {wanted}")
        named = {name: value for name, value in zip(columns, values) if name and (value or name not in optional)}
        if empty := [name for name, value in named.items() if not value]:
            raise InputError(f"{where}: empty {empty[0]}")
        output = _output_path(named.pop("output", f"audio_{place:04d}.wav"), where=where)
        phrases.append(Phrase(where, output, **named))
        # Without its suffix: "a.wav" and "a.mp3" would have the same mel and plot.
        if (other := seen.setdefault(output.with_suffix(""), phrases[-1])) is not phrases[-1]:
            raise InputError(f"{where}: output {output}, suffix aside, is also that of {other.where}")
    return phrases


def _form(path: Path, lines: list[tuple[int, str]]) -> tuple[tuple[str, ...], str, list[tuple[int, str]]]:
    """Return the columns of a list, their delimiter, and the lines after the header; see `read_phrases`."""
    number, first = lines[0]
    delimiter = "\t" if "\t" in first else "|"
    columns = tuple(name.strip() for name in first.split(delimiter))
    if not {"text", "mel", "wav"}.isdisjoint(columns):
        if wrong := [name for name in columns if name not in COLUMNS or columns.count(name) > 1]:
            raise InputError(f"{path}:{number}: column {wrong[0]!r}, expected any of {', '.join(COLUMNS)}, each once")
        if {"mel", "wav"} <= set(columns):
            raise InputError(f"{path}:{number}: columns mel and wav both give the mel-spectrogram; keep one of them")
        return columns, delimiter, lines[1:]
    name = PurePosixPath(first.partition("|")[0].strip())
    is_named = all(re.match(r"[^\s|]+\|\S", line) for _, line in lines)
    has_suffix = any(PurePosixPath(line.partition("|")[0]).suffix for _, line in lines)
    if is_named and not has_suffix and all(line.count("|") == 2 for _, line in lines):
        # LJSpeech's: skip the transcript as written, and read the one with numbers in words
        print(f"note: {path} is read as LJSpeech's metadata.csv; the normalized transcripts are spoken")
        return ("output", "", "text"), "|", lines
    if is_named or ("|" in first and name.suffix.lower() in SOUND_FORMATS):
        return ("output", "text"), "|", lines
    if path.suffix == ".tsv":
        raise InputError(f"{path}:{number}: expected a header with the column text, mel or wav, got {first!r}")
    return ("text",), "|", lines


def _output_path(name: str, *, where: str) -> PurePosixPath:
    """Return the sound's path within the output folder; add ``.wav`` to a name without a suffix."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name.endswith("/") or not path.name:
        raise InputError(f"{where}: output {shown(name)}: expected a file name inside the output folder")
    if path.suffix and path.suffix.lower() not in SOUND_FORMATS:
        raise InputError(f"{where}: output {name!r}: expected a name that ends in {SOUND_SUFFIXES}, or has no suffix")
    return path if path.suffix else path.with_name(path.name + ".wav")


@torch.inference_mode()
def load_mels_or_recordings(
    phrases: Sequence[Phrase], *, dataset_path: Path, contract: AudioContract | None
) -> tuple[list[SynthesisInput], AudioConfig]:
    """Load the utterances of a list with the column ``mel`` or ``wav``, and the description of their mels.

    ``contract`` describes the mels that the vocoder reads. If it's None, the ``audio.json`` in the mels' folder or the
    default describes them, and recordings get the usual mels at their sampling rate. Raises an InputError that names
    the line if there is neither column, or a mel or a recording is missing, damaged, or not what the vocoder reads.
    """
    column = "mel" if phrases[0].wav is None else "wav"
    if getattr(phrases[0], column) is None:
        example = "scripts/copy_list.sh LJSpeech-1.1 copy.tsv makes a list of recordings"
        raise InputError(f"{phrases[0].where}: expected a column mel or wav; {example}")
    entries = [FilelistEntry({column: getattr(phrase, column)}, phrase.where) for phrase in phrases]
    if column == "wav":
        first = check_wav(dataset_path / entries[0].fields["wav"], sampling_rate=None, where=entries[0].where)
        audio = contract.audio if contract else audio_preset(first.sampling_rate)
        extractor = MelExtractor(audio)
        mels = []
        for entry in entries:
            recorded_samples(dataset_path, entry, extractor)  # raises if it's too short
            path = dataset_path / entry.fields["wav"]
            wave = load_wav(path, sampling_rate=audio.sampling_rate, where=entry.where)
            mels.append(extractor(wave[None])[0])
    else:
        audio = contract.audio if contract else AudioConfig()
        for folder in sorted({(dataset_path / entry.fields["mel"]).parent for entry in entries}):
            if (described := features_config(folder)) is not None:
                audio, contract = described, contract or AudioContract(described, str(folder))
                contract.check(described, owner=str(folder))
        mels = [load_mel(dataset_path, entry, n_mels=audio.n_mels) for entry in entries]
    return [SynthesisInput(phrase, mel=mel) for phrase, mel in zip(phrases, mels)], audio
