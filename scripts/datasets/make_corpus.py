"""Makes a corpus in LJSpeech's layout: a server with OpenAI's speech API reads a list of texts."""

import os
import statistics
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from common.audio.decoding import decode
from common.audio.levels import find_sound, loudness_meter
from common.audio.wav import check_wav, save_wav
from common.cli import ArgumentParser, run
from common.errors import AudioError, InputError, OptionError, shown
from common.files import read_json, read_lines, write_json, write_text, writing
from common.importing.clips import level_and_trim
from common.importing.options import SPEAKERS, USUAL_RATE, ImportOptions
from common.importing.recordings import safe_name
from common.options import add_options, option, read_options
from common.progress import progress
from common.signals import ended_by
from common.synthesis.phrases import read_phrases
from scripts.datasets.choose_texts import SYMBOLS_PER_MINUTE, choose_texts, find_phones
from scripts.datasets.speech_server import ServerError, SpeechServer, read_address

_CARD = "corpus.json"
_END = 0.02  # s at the end of the sound
# dB relative to the speech: complete sentences end below -28; more than half of those that were cut end above this.
_LOUD_END = -15.0
_SILENT = 1e-4  # of full scale; samples below it at the end are padding
_SILENCES = 2 * ImportOptions.silence  # s, at both ends of a clip together
_ENOUGH = 8  # clips that suffice to estimate the speaking rate of a voice


@dataclass(frozen=True)
class ReadingOptions:
    """Who reads, how, and into which folder."""

    output: Path = option(None, "folder of the corpus", names=("-o",), required=True, writes=True)
    minutes: float | None = option(None, "minutes of speech; phonetically rich texts come first; default: all", above=0)
    from_server: str = option(None, "address; OPENAI_API_KEY holds its key", required=True, read=read_address)
    voice: tuple[str, ...] = option((), "voices of the server; each one reads all texts", required=True)
    model: str = option("tts-1", "model of the server")
    license: str | None = option(None, "license of the speech, for corpus.json, such as Apache-2.0")
    requests: int = option(4, "concurrent requests", least=1, most=64)
    retries: int = option(6, "retries of a failed request, after increasing pauses", least=0, most=100)
    sampling_rate: int = option(USUAL_RATE, "sampling rate of the clips, Hz", least=8000, most=192000)
    g2p_language: str = option("en-us", "language tag of eSpeak NG, to estimate the length of a text")


class Reading(NamedTuple):
    """A text that a voice reads."""

    clip: str  # path in wavs/, without suffix
    voice: str
    text: str
    n_symbols: int  # of the set `espeak`

    @property
    def line(self) -> str:
        """Its line of metadata.csv."""
        return f"{self.clip}|{self.text}\n"


def make_corpus(texts: Mapping[str, str], server: SpeechServer, options: ReadingOptions) -> int:
    """Let each voice read all ``texts``, by id, into a corpus; return the exit status, 1 if no clip was made.

    A signal ends it with status 128 + its number; finished clips are kept.

    Raises:
        OptionError: the folder holds something else.
        InputError: the server cannot be reached, or refuses the first text of a voice.
    """
    folder, several = options.output, len(options.voice) > 1
    table = folder / "metadata.csv"  # also the journal of an interrupted run
    card = {"model": options.model, "voices": [*options.voice], "sampling_rate": options.sampling_rate}
    before = read_json(folder / _CARD) if (folder / _CARD).exists() else {}
    if (folder / "wavs").exists() and not before.items() >= card.items():
        raise OptionError(f"{folder}: its corpus has other settings than {shown(card)}; name another folder")
    card |= {"server": options.from_server, "license": options.license or before.get("license")}
    write_json(folder / _CARD, card)
    if several:
        write_text(folder / SPEAKERS, "".join(f"{name}\n" for name in sorted(map(safe_name, options.voice))))
    phones = find_phones(texts, language=options.g2p_language)
    if options.minutes is not None:
        order = choose_texts(phones)
        ends = accumulate(len(phones[name]) / SYMBOLS_PER_MINUTE for name in order)
        phones = {name: phones[name] for name, end in zip(order, ends) if end <= options.minutes}
    readings = [
        Reading(f"{safe_name(voice)}/{one}" if several else one, voice, texts[one], len(phones[one]))
        for voice in options.voice
        for one in phones
    ]
    made = {f"{line}\n" for line in read_lines(table)} if table.is_file() else set()
    kept = dict.fromkeys(one for one in readings if one.line in made and _seconds(one, options))
    write_text(table, "".join(one.line for one in kept))
    try:
        left_out = _read_all(readings, kept, server, options)
    except KeyboardInterrupt as stop:
        message, status = ended_by(stop)
        print(f"{message}; the same command resumes")
        return status
    seconds = {one: _seconds(one, options) for one in readings if one.clip not in left_out}
    left_out |= find_odd_lengths(seconds)
    clips = [one for one in seconds if one.clip not in left_out]
    minutes = sum(seconds[one] for one in clips) / 60
    write_text(table, "".join(one.line for one in clips))
    write_json(folder / _CARD, card | {"clips": len(clips), "minutes": round(minutes, 2), "left_out": left_out})
    print(f"{folder}: {len(clips)} of {len(readings)} clips, {minutes:.1f} minutes of speech")
    for clip, reason in left_out.items():
        print(f"left out: {clip}: {reason}")
    return int(not clips)


def _seconds(one: Reading, options: ReadingOptions) -> float:
    """Return the length of the clip in seconds, or 0 if it doesn't exist."""
    try:
        wav = options.output / "wavs" / f"{one.clip}.wav"
        return check_wav(wav, sampling_rate=options.sampling_rate).n_samples / options.sampling_rate
    except AudioError:
        return 0.0


def _read_all(
    readings: Sequence[Reading], kept: Collection[Reading], server: SpeechServer, options: ReadingOptions
) -> dict[str, str]:
    """Make the missing clips, and add each to metadata.csv; return why others are left out, by clip."""
    left_out: dict[str, str] = {}
    table, known = options.output / "metadata.csv", {one.voice for one in kept}
    missing = [one for one in readings if one not in kept]
    first = {one.voice: one for one in reversed(missing) if one.voice not in known}.values()

    def record(one: Reading, reason: str) -> None:
        if reason:
            left_out[one.clip] = reason
            return
        with writing(table), table.open("a", encoding="utf-8", newline="") as journal:
            journal.write(one.line)

    for one in first:  # a server that refuses the first text of a voice would refuse thousands
        record(one, _read(one, server, options, may_be_refused=False))
    loudness_meter(options.sampling_rate)  # so that its packages are imported before threads start
    pool = ThreadPoolExecutor(options.requests)
    try:
        futures = {pool.submit(_read, one, server, options): one for one in missing if one not in first}
        for future in progress(as_completed(futures), total=len(futures), desc="reading", unit="text"):
            record(futures[future], future.result())
    finally:
        server.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return left_out


def _read(one: Reading, server: SpeechServer, options: ReadingOptions, *, may_be_refused: bool = True) -> str:
    """Make a clip, leveled and trimmed; return the reason if it's left out, else ""."""
    rate = options.sampling_rate
    try:
        sound = server.speak(one.text, voice=one.voice)
        wave = np.concatenate([*decode(sound, sampling_rate=rate, name=one.clip).blocks])
        check_end(wave, rate)
        wave, _ = level_and_trim(wave, ImportOptions(sampling_rate=rate))
    except AudioError as error:
        return str(error).removeprefix(f"{one.clip}: ")
    except InputError as error:
        if may_be_refused and not isinstance(error, ServerError):
            return str(error)
        raise
    save_wav(options.output / "wavs" / f"{one.clip}.wav", torch.from_numpy(wave), sampling_rate=rate, durable=False)
    return ""


def check_end(wave: np.ndarray, sampling_rate: int) -> None:
    """Raise AudioError if speech (T,) stops at full loudness, possibly followed by padding."""
    speech, sounding = find_sound(wave, sampling_rate), np.flatnonzero(np.abs(wave) > _SILENT)
    if speech is not None and len(sounding):
        end = wave[: sounding[-1] + 1][-round(_END * sampling_rate) :].astype(np.float64)
        level = 10 * np.log10(np.mean(np.square(end - wave.mean())) + 1e-12) - speech.level
        if level > _LOUD_END:
            raise AudioError(f"cut off: its last {_END:g} s are {level:+.0f} dB relative to its speech")


def find_odd_lengths(seconds: Mapping[Reading, float]) -> dict[str, str]:
    """Return what is wrong, by clip, with clips far too short or long for their text at the rate of their voice."""
    odd = {}
    for voice in {one.voice for one in seconds}:
        lengths = {one: length for one, length in seconds.items() if one.voice == voice}
        rates = [one.n_symbols / max(length - _SILENCES, 0.05) for one, length in lengths.items()]
        rate, most = SYMBOLS_PER_MINUTE / 60, 2.5
        if len(rates) >= _ENOUGH:
            rate, most = statistics.median(rates), 1.5
        for one, length in lengths.items():
            usual = one.n_symbols / rate + _SILENCES
            if not usual / most - 0.2 < length < usual * most + 0.5:
                what = "fast" if length < usual else "slow"
                odd[one.clip] = f"far too {what}: {length:.1f} s, expected about {usual:.1f} for its text"
    return odd


def main(argv: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(
        prog="make_corpus.sh",
        description="Make a corpus in LJSpeech's layout by having a server with OpenAI's speech API read texts",
        epilog="Exit status: 0 some clips were made; 1 none, or bad input; 2 wrong options; 128 + a signal's number.",
    )
    parser.add_argument("texts", type=Path, help="phrases, as for inference.py: lines id|text, or just texts")
    add_options(parser, ReadingOptions)
    args = parser.parse_args(argv)
    options: ReadingOptions = read_options(args, ReadingOptions)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    server = SpeechServer(options.from_server, options.model, key=key, retries=options.retries)
    phrases = read_phrases(args.texts)
    if wrong := next((one.where for one in phrases if one.text is None or "|" in one.text), None):
        raise InputError(f"{wrong}: expected id|text, or a text without |; an id has no spaces")
    return make_corpus({str(one.output.with_suffix("")): one.text for one in phrases}, server, options)


if __name__ == "__main__":
    run(main, teardown=False)  # doesn't wait for pending requests
