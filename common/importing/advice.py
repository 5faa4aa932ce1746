"""Check a corpus for recordings that training refuses, and suggest the import command."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from common.audio.decoding import decode
from common.audio.wav import CONTAINERS, open_wav
from common.errors import AudioError, InputError
from common.importing.options import LONGEST_CLIP, import_command


def long_clips(lengths: Mapping[str, float]) -> str:
    """Return a line that names the longest of the clips that are too long, or ""; ``lengths`` are in s."""
    longest = sorted((name for name in lengths if lengths[name] > LONGEST_CLIP), key=lambda name: -lengths[name])
    named = ", ".join(f"{name} ({lengths[name]:.0f} s)" for name in longest[:3])
    more = f" and {len(longest) - 3} more" if len(longest) > 3 else ""
    return f"clips longer than {LONGEST_CLIP:g} s: {named}{more}" if longest else ""


def check_recordings(corpus: Path, recordings: Sequence[str]) -> Mapping[str, float]:
    """Return recordings' lengths (s); raises InputError unless all are mono WAV or FLAC at one sampling rate."""
    by_rate: dict[int, list[str]] = defaultdict(list)
    lengths = {}
    for name in recordings:
        problem = ""
        try:
            with open_wav(corpus / name) as file:
                rate, lengths[name] = file.samplerate, file.frames / file.samplerate
                if file.format not in CONTAINERS:
                    problem = f"{file.format} instead of WAV or FLAC"
                elif file.channels != 1:
                    problem = f"{file.channels} channels, {rate} Hz"
            by_rate[rate].append(name)
        except AudioError:
            with suppress(AudioError):  # extraction lists all damaged files
                decode(corpus / name)
                problem = "a format that training does not read"
        if problem:
            raise InputError(f"{corpus / name}: {problem}; run {import_command(corpus)}")
    if len(by_rate) > 1:
        most = sorted(by_rate.items(), key=lambda item: -len(item[1]))[:2]
        found = " and ".join(f"{len(names)} of {rate} Hz ({names[0]})" for rate, names in most)
        raise InputError(f"{corpus}: sampling rates differ, {found}; run {import_command(corpus)}")
    return lengths
