"""Check the recordings of a corpus for what training refuses or learns badly, and name the import command."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from common.audio.decoding import decode
from common.audio.levels import find_sound
from common.audio.wav import CONTAINERS, open_wav
from common.errors import AudioError, InputError
from common.importing.options import LONGEST_CLIP, LONGEST_SILENCE, USUAL_RATE, import_command

LEAST_LEVEL = -35.0  # dBFS of the speech: with 16 bits, quieter recordings have audible noise once they are amplified
_TRIED = 20  # recordings whose samples are looked at


def long_clips(lengths: Mapping[str, float]) -> str:
    """A line that names the longest of the clips that are too long, by their lengths (s); "" if none is."""
    longest = sorted((name for name in lengths if lengths[name] > LONGEST_CLIP), key=lambda name: -lengths[name])
    named = ", ".join(f"{name} ({lengths[name]:.0f} s)" for name in longest[:3])
    more = f" and {len(longest) - 3} more" if len(longest) > 3 else ""
    return f"clips longer than {LONGEST_CLIP:g} s: {named}{more}" if longest else ""


def check_recordings(corpus: Path, recordings: Sequence[str]) -> Mapping[str, float]:
    """The lengths (s) of recordings, which InputError refuses unless all are mono WAV or FLAC of one sampling rate."""
    rates: dict[int, str] = {}
    counts: Counter[int] = Counter()
    lengths = {}
    for name in recordings:
        problem = ""
        try:
            with open_wav(corpus / name) as file:
                rate, lengths[name] = file.samplerate, file.frames / file.samplerate
                if file.format not in CONTAINERS:
                    problem = f"{file.format} in place of WAV or FLAC"
                elif file.channels != 1:
                    problem = f"{file.channels} channels, {rate} Hz"
            rates.setdefault(rate, name)
            counts[rate] += 1
        except AudioError:
            with suppress(AudioError):  # extraction lists all damaged files
                decode(corpus / name)
                problem = "a format that training does not read"
        if problem:
            raise InputError(f"{corpus / name}: {problem}; run {import_command(corpus)}")
    if len(counts) > 1:
        found = " and ".join(f"{count} of {rate} Hz ({rates[rate]})" for rate, count in counts.most_common(2))
        raise InputError(f"{corpus}: sampling rates differ, {found}; run {import_command(corpus)}")
    return lengths


def note_faults(corpus: Path, lengths: Mapping[str, float]) -> list[str]:
    """Lines on recordings that train but badly: an unusual sampling rate, long clips, silence, a low level."""
    names = list(lengths)
    if not names:
        return []
    notes = []
    with open_wav(corpus / names[0]) as file:
        rate = file.samplerate
    if rate != USUAL_RATE:
        notes.append(f"the recordings have {rate} Hz, usual vocoders {USUAL_RATE} Hz")
    if long := long_clips(lengths):
        notes.append(long)
    tried = names[:: max(1, len(names) // _TRIED)][:_TRIED]
    silences, levels = {}, {}
    for name in tried:
        with suppress(AudioError):
            sound = find_sound(np.concatenate([*decode(corpus / name).blocks, np.zeros(0)]), rate)
            if sound is not None:
                silences[name] = max(sound.start, lengths[name] - sound.end)
                levels[name] = sound.level
    silent = [name for name, seconds in silences.items() if seconds > LONGEST_SILENCE]
    quiet = [name for name, level in levels.items() if level < LEAST_LEVEL]
    of = f"of {len(tried)} recordings tried"
    if silent:
        notes.append(f"{len(silent)} {of} have {silences[silent[0]]:.1f} s of silence at an end ({silent[0]})")
    if quiet:
        notes.append(f"{len(quiet)} {of} are quiet, speech at {levels[quiet[0]]:.0f} dBFS ({quiet[0]})")
    lines = [f"note: {corpus}: {one}" for one in notes]
    return [*lines, f"note: to mend it: {import_command(corpus)}"] if lines else []
