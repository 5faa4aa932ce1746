"""What is wrong with which clip: every finding with its line of the list, the reason, and what to do."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from common.audio import CONTAINERS, FULL_SCALE, SHORTEST, MelExtractor
from common.config import AudioConfig
from common.data_report.arguments import Limits
from common.data_report.clip import Clip, measured, quantile
from common.extraction import refuse_duplicates
from common.extraction.features import Utterance
from common.text import name_symbol

REFUSED, SUSPICIOUS = "refused", "suspicious"
LEAST_VOICED = 0.05  # of the values of pitch
LEAST_CLIPPED = 9  # samples, three flat tops: a coarse recording has one by chance
SMALLEST_GROUP = 8  # clips that have a median worth comparing with; a smaller speaker is compared with all
MAD_TO_STD = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation
# The least robust standard deviations: differences below them are inaudible, however similar the other clips are.
LEAST_RATE_SPREAD = 0.05  # of the logarithm
LEAST_LEVEL_SPREAD = 1.5  # dB
LEAST_PITCH_SPREAD = 0.75  # semitones


@dataclass(frozen=True)
class Kind:
    """A kind of finding."""

    level: str  # REFUSED: extraction or training stops or leaves it out; SUSPICIOUS: it would be learned
    title: str
    advice: str


_KINDS = {
    REFUSED: """
    missing | missing files | correct the path, or take the line out of the list
    unreadable | unreadable files | copy or convert the file again; is it complete?
    empty_text | empty transcripts | write what is said, or take the line out
    unknown_symbols | characters outside the symbol set | correct the text, or choose other cleaners or another \
symbol set
    format | sample formats | convert to WAV or FLAC of 16 bits, from the original if there is one
    channels | more than one channel | mix the recording down to mono
    sampling_rate | sampling rates | resample to the corpus's rate; never only change the header
    range | samples beyond full scale | scale the float samples down to [-1, 1]
    same_path | the same file twice | take one of the two lines out, or rename the file
    too_short | too short for a mel-spectrogram or pitch | take the line out
    too_few_frames | more symbols than mel frames | the transcript is of another recording, or the recording is \
cut: no alignment exists
    """,
    SUSPICIOUS: """
    overlap | in more than one list | take it out of one list: a model must not be validated on its training data
    same_audio | the same sound in several files | keep the one whose transcript is right
    same_text | the same text twice | listen to both: one may be a copied line or a repeated take
    damaged_text | characters that a wrong encoding leaves | save the text as UTF-8 from its source again
    short | short clips | listen: is the recording cut? very short clips teach little
    long | long clips | cut at a pause, or the batch that holds it needs the most memory of the run
    speaking_rate | odd speaking rates | compare text and recording: words are missing, or of another line
    clipping | clipping | record at a lower level, or take it out: the crackle would be learned
    silence | silence at an end | cut it to a tenth of a second; --trim-silence does it where TextGrids exist
    pause | long pauses | cut the clip there, or shorten the pause
    near_silent | near-silent clips | is it speech? else record again or take it out
    level | odd levels | scale the clip to the level of the others
    dc_offset | DC offset | filter it out, with a high-pass filter of 20 Hz
    unvoiced | no voice | listen: is it noise, a whisper or another sound than speech?
    pitch | odd pitch | listen: is it another speaker, or a sung or shouted line?
    """,
}
KINDS = {
    kind.strip(): Kind(level, title, advice)
    for level, table in _KINDS.items()
    for kind, title, advice in (line.split(" | ") for line in table.strip().split("\n"))
}


@dataclass(frozen=True)
class Finding:
    """Something about one clip."""

    kind: str  # of KINDS
    index: int  # of the utterance
    where: str  # "list.txt:7"
    wav: str
    reason: str

    @property
    def level(self) -> str:
        return KINDS[self.kind].level


def find_issues(
    clips: Sequence[Clip], *, audio: AudioConfig, limits: Limits, max_wav_value: float | None
) -> list[Finding]:
    """All findings of ``clips``, in order of KINDS and then of the lists."""
    extractor = MelExtractor(audio)
    found = [
        _finding(clip, kind, words)
        for clip in clips
        for kind, words in (
            *_of_file(clip, audio, max_wav_value),
            *_of_text(clip),
            *_of_length(clip, extractor, limits),
            *_of_sound(clip, limits),
        )
    ]
    found += _duplicates(clips)
    found += _outliers(clips, limits)
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(found, key=lambda finding: (order[finding.kind], finding.index))


def _finding(clip: Clip, kind: str, words: str) -> Finding:
    return Finding(kind, clip.utterance.index, clip.utterance.where, clip.utterance.wav, words)


Found = Iterator[tuple[str, str]]  # kind and reason


def _of_file(clip: Clip, audio: AudioConfig, max_wav_value: float | None) -> Found:
    if clip.fault is not None:
        yield clip.fault
    if (sound := clip.sound) is None:
        return
    scale = FULL_SCALE.get(sound.subtype)
    if sound.container not in CONTAINERS or scale is None:
        yield "format", f"{sound.container} file with {sound.subtype} samples"
    elif max_wav_value is not None and scale != max_wav_value:
        reason = f"{sound.subtype} samples have full scale {scale:.0f}, --max-wav-value demands {max_wav_value:g}"
        yield "format", reason
    if sound.n_channels != 1:
        yield "channels", f"{sound.n_channels} channels"
    if sound.sampling_rate != audio.sampling_rate:
        yield "sampling_rate", f"{sound.sampling_rate} Hz, expected {audio.sampling_rate}"
    if sound.lowest < -1 or sound.highest > 1:
        yield "range", f"samples from {sound.lowest:g} to {sound.highest:g}"


def _of_text(clip: Clip) -> Found:
    transcript = clip.transcript
    if transcript.n_tokens == 0:
        yield "empty_text", "nothing to speak is left" if clip.utterance.text else "the transcript is empty"
    if transcript.unknown:
        named = ", ".join(f"{name_symbol(symbol)} {count}x" for symbol, count in transcript.unknown.items())
        yield "unknown_symbols", named
    if transcript.damaged:
        yield "damaged_text", ", ".join(name_symbol(character) for character in transcript.damaged)


def _of_length(clip: Clip, extractor: MelExtractor, limits: Limits) -> Found:
    if (sound := clip.sound) is None:
        return
    rate = extractor.config.sampling_rate
    n_samples = round(sound.seconds * rate)  # once it is resampled, where it has to be
    n_frames, n_tokens = extractor.n_frames(n_samples), clip.transcript.n_tokens
    if n_samples < max(extractor.min_samples, SHORTEST * rate):
        yield "too_short", f"{sound.seconds:.3f} s"
        return
    if n_frames < n_tokens:
        yield "too_few_frames", f"{n_tokens} symbols, {n_frames} frames ({sound.seconds:.2f} s)"
    if sound.seconds < limits.min_seconds:
        yield "short", f"{sound.seconds:.2f} s, --report-min-seconds is {limits.min_seconds:g}"
    if sound.seconds > limits.max_seconds:
        yield "long", f"{sound.seconds:.1f} s, --report-max-seconds is {limits.max_seconds:g}"


def _of_sound(clip: Clip, limits: Limits) -> Found:
    if (sound := clip.sound) is None:
        return
    if abs(sound.dc_offset) > limits.max_dc:
        yield "dc_offset", f"mean {sound.dc_offset:+.3f} of full scale, --report-max-dc is {limits.max_dc:g}"
    if sound.level < limits.min_level:
        yield "near_silent", f"{sound.level:.1f} dBFS, --report-min-level is {limits.min_level:g}"
        return  # its silences and its pitch mean nothing
    n_clipped = round(sound.clipping * sound.n_samples * sound.n_channels)
    if sound.clipping > limits.max_clipping and n_clipped >= LEAST_CLIPPED:
        yield "clipping", f"{n_clipped} samples ({sound.clipping:.3%}) in flat tops at {sound.peak:.1f} dBFS"
    for name, seconds in (("start", sound.leading), ("end", sound.trailing)):
        if seconds > limits.max_silence:
            yield "silence", f"{seconds:.2f} s at the {name}, --report-max-silence is {limits.max_silence:g}"
    if sound.pause > limits.max_pause:
        yield "pause", f"a pause of {sound.pause:.2f} s, --report-max-pause is {limits.max_pause:g}"
    if sound.voiced < LEAST_VOICED:
        yield "unvoiced", f"{sound.voiced:.1%} of the clip has a pitch"


def _duplicates(clips: Sequence[Clip]) -> Iterator[Finding]:
    """Files, sounds and texts that stand on an earlier line too."""
    by_index = {clip.utterance.index: clip for clip in clips}
    refused = refuse_duplicates([clip.utterance for clip in clips])
    for index, words in refused.items():
        yield _finding(by_index[index], "same_path", words.removeprefix(f"{by_index[index].utterance.wav}: "))
    firsts: dict[tuple[str | None, ...], Clip] = {}  # by path, sound, or speaker and text
    for clip in clips:
        item = clip.utterance
        recording = firsts.setdefault(("path", item.wav), clip)
        if clip.sound is not None:
            same_sound = firsts.setdefault(("sound", clip.sound.digest), clip)
            if same_sound.utterance.wav != item.wav:
                yield _finding(clip, "same_audio", f"its samples are those of {_place(same_sound.utterance)}")
            recording = same_sound if recording is clip else recording
        first, what = recording, "recording"
        if clip.transcript.n_tokens:
            same_text = firsts.setdefault(("text", item.speaker, " ".join(clip.transcript.cleaned.split())), clip)
            first, what = (same_text, "text") if recording is clip else (recording, "recording")
        if first.utterance.list_index != item.list_index:
            yield _finding(clip, "overlap", f"the same {what} as {_place(first.utterance)}")
        elif first is not clip and what == "text":
            yield _finding(clip, "same_text", f"the text of {_place(first.utterance)}")


def _place(utterance: Utterance) -> str:
    return f"{utterance.wav} ({utterance.where})"


def _spread(values: Sequence[float], *, least: float) -> tuple[float, float]:
    """Median, and median absolute deviation as a normal distribution's standard deviation, ``least`` at least."""
    median = float(np.median(values))
    deviation = MAD_TO_STD * float(np.median(np.abs(np.asarray(values) - median)))
    return median, max(deviation, least)


def _spreads(values: Sequence[tuple[Clip, float]], *, least: float) -> dict[str | None, tuple[float, float]]:
    """Speaker -> median and deviation, of all clips for a speaker of few; nothing where there are few of all."""
    if len(values) < SMALLEST_GROUP:
        return {}
    groups = defaultdict(list)
    for clip, value in values:
        groups[clip.utterance.speaker].append(value)
    of_all = _spread([value for _, value in values], least=least)
    return {
        speaker: _spread(group, least=least) if len(group) >= SMALLEST_GROUP else of_all
        for speaker, group in groups.items()
    }


def _outliers(clips: Sequence[Clip], limits: Limits) -> Iterator[Finding]:
    loud = [(clip, sound) for clip, sound in measured(clips) if sound.level >= limits.min_level]
    rates = [(clip, math.log(rate)) for clip, _ in loud if (rate := clip.speaking_rate)]
    levels = [(clip, sound.level) for clip, sound in loud]
    voiced = [(clip, quantile(sound.pitch_counts, 0.5)) for clip, sound in loud if sound.voiced >= LEAST_VOICED]
    semitones = [(clip, 12 * math.log2(pitch)) for clip, pitch in voiced if pitch is not None]
    for kind, values, least, words, shown in (
        ("speaking_rate", rates, LEAST_RATE_SPREAD, "{:.1f} symbols/s, usual are {:.1f}", math.exp),
        ("level", levels, LEAST_LEVEL_SPREAD, "{:.1f} dBFS, usual are {:.1f}", float),
        ("pitch", semitones, LEAST_PITCH_SPREAD, "median pitch {:.0f} Hz, usual are {:.0f}", lambda x: 2 ** (x / 12)),
    ):
        spreads = _spreads(values, least=least)
        for clip, value in values if spreads else ():
            median, deviation = spreads[clip.utterance.speaker]
            distance = abs(value - median) / deviation
            if distance > limits.outlier:
                yield _finding(clip, kind, f"{words.format(shown(value), shown(median))} ({distance:.0f} deviations)")
