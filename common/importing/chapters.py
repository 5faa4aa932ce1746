"""Cut long recordings into several clips by their texts."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import torch

from common.audio.decoding import decode
from common.audio.wav import save_wav
from common.errors import AudioError, InputError, OutputError
from common.files import check_file
from common.importing.clips import ImportedClip, import_clip, level_and_trim
from common.importing.cutting import CONFIDENT, LONGEST, SHORTEST, AlignedClip, align_reading
from common.importing.frames import RATE
from common.importing.options import ImportOptions
from common.importing.recordings import RecordingIndex, files_below, without_suffix
from common.importing.subtitles import TEXT_SUFFIXES, ReadingText, read_reading_text, split_sentences
from common.importing.transcripts import Transcript
from common.text.config import TextConfig
from common.text.languages import guess_language
from common.text.options import check_language_tag


def match_readings(source: Path, text: Path) -> tuple[list[Transcript], dict[str, str]]:
    """Each recording of ``source`` with the path of its text in place of a transcript, and why others are left out.

    ``text`` is a file, or a folder with a file for each recording, named alike. Raises InputError where there is none.
    """
    if source.is_dir():
        files, left = files_below(source)
        index = RecordingIndex(files)
        recordings = index.recordings
        left |= {str(one): reason for one, reason in index.reasons.items()}
    else:
        recordings, left = [PurePosixPath(source.name)], {}
    recordings = [one for one in recordings if str(one) not in left]
    if text.is_dir():
        names = {one: [f"{without_suffix(one)}{suffix}" for suffix in TEXT_SUFFIXES] for one in recordings}
        texts = {one: [text / name for name in names[one] if (text / name).is_file()] for one in recordings}
        left |= {str(one): f"no text {text / names[one][-1]}" for one in recordings if not texts[one]}
        matched = [Transcript(str(one), str(texts[one][0]), None, "") for one in recordings if texts[one]]
        if not matched:
            raise InputError(f"{text}: no {', '.join(TEXT_SUFFIXES)} is named as one of the recordings in {source}")
        return matched, left
    check_file(text, kind="text of the reading")
    if len(recordings) != 1:
        count = f"{len(recordings)} recordings" if recordings else "no recording"
        raise InputError(f"{source}: {count}; name one recording, or as --text a folder with a text for each")
    return [Transcript(str(recordings[0]), str(text), None, "")], left


def choose_language(options: ImportOptions, matched: Sequence[Transcript]) -> str:
    """The language of what is cut: the one that is asked for, else what the texts look like; or OptionError."""
    if options.language is not None:
        check_language_tag(options.language, option="--language")
        return options.language
    texts = [one.text for one in matched]
    if options.text is not None:
        with suppress(InputError, OSError):  # which the recording's own row will say
            texts = [sentence for path in texts for sentence in read_reading_text(Path(path)).sentences]
    found = guess_language(texts)
    return TextConfig.g2p_language if found in ("", "en") else found


def import_recording(row: ImportedClip, *, source: Path, target: Path, options: ImportOptions) -> list[ImportedClip]:
    """Make a recording's clip, or cut it into several: their rows, as `import_clip` and `cut_recording` do."""
    clip = import_clip(row, source=source, target=target, options=options) if options.text is None else None
    return [clip] if clip is not None else cut_recording(row, source=source, target=target, options=options)


def cut_recording(row: ImportedClip, *, source: Path, target: Path, options: ImportOptions) -> list[ImportedClip]:
    """Cut a recording into clips; their rows, those of what does not match, and last its own, or why it is refused."""
    recording = source / row.source
    try:
        read = ReadingText(tuple(split_sentences(row.text)))
        if options.text is not None:
            read = read_reading_text(Path(row.text))
        blocks = decode(recording, sampling_rate=RATE).blocks
        assert options.language is not None, "import_recordings has chosen one"
        reading = align_reading(blocks, read.sentences, language=options.language, windows_s=read.windows_s)
        rows = [*_import_clips(row, reading.clips, recording=recording, target=target, options=options)]
    except OutputError:
        raise
    except (InputError, OSError) as error:
        return [replace(row, state="refused", reason=str(error).removeprefix(f"{recording}: "))]
    for clip in reading.odd_lengths:
        seconds, reason = clip.end_s - clip.start_s, f"expected {SHORTEST:g} to {LONGEST:g}: {clip.text}"
        rows.append(ImportedClip(row.source, _part(clip.start_s, clip.end_s), reason=f"{seconds:.1f} s, {reason}"))
    for start, end in reading.unmatched_sound:
        rows.append(ImportedClip(row.source, _part(start, end), reason="says what the text does not"))
    for number, sentence in enumerate(reading.unmatched_text, 1):
        rows.append(ImportedClip(row.source, f"text {number}", reason=f"not found in the recording: {sentence}"))
    return [*rows, replace(row, state="cut")]


def _import_clips(
    row: ImportedClip, clips: Sequence[AlignedClip], *, recording: Path, target: Path, options: ImportOptions
) -> Iterator[ImportedClip]:
    """Write the clips of a recording that are certain, each as short recordings are; their rows."""
    decoded = decode(recording, sampling_rate=options.sampling_rate)
    waves = _stretches(decoded.blocks, clips, options.sampling_rate)
    for number, (clip, wave) in enumerate(zip(clips, waves), 1):
        made = replace(
            row,
            part=_part(clip.start_s, clip.end_s),
            clip=f"{row.clip}_{number:04d}",
            state="imported",
            sampling_rate=decoded.sampling_rate,
            channels=decoded.n_channels,
            seconds_before=round(clip.end_s - clip.start_s, 3),
            confidence=round(clip.confidence, 3),
            text=clip.text,
        )
        if clip.confidence < CONFIDENT:
            yield replace(made, state="refused", reason=f"may not say: {clip.text}")
            continue
        try:
            trimmed, facts = level_and_trim(wave, options)
        except AudioError as error:
            yield replace(made, state="refused", reason=str(error))
            continue
        path = target / "wavs" / f"{made.clip}.wav"
        save_wav(path, torch.from_numpy(trimmed), sampling_rate=options.sampling_rate, durable=False)
        yield replace(made, **facts)


def _stretches(blocks: Iterator[np.ndarray], clips: Sequence[AlignedClip], rate: int) -> Iterator[np.ndarray]:
    """The samples of each clip, of which none begins before another one ends; no more than one is in memory."""
    held, first = np.zeros(0, np.float32), 0  # samples, and the place of the first one
    for clip in clips:
        start, end = round(clip.start_s * rate), round(clip.end_s * rate)
        while first + len(held) < end and (block := next(blocks, None)) is not None:
            held = np.concatenate([held, block])
            passed = min(max(start - first, 0), len(held))
            held, first = held[passed:], first + passed
        yield held[max(start - first, 0) : end - first].copy()


def _part(start_s: float, end_s: float) -> str:
    return f"{start_s:.2f} to {end_s:.2f} s"
