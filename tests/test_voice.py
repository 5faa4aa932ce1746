"""One call to speak: whole texts, streams, words in time, styles of words, and prosody tables."""

import json
import re
from pathlib import Path

import pytest
import tiny_tacotron2
import torch
from tiny_voice import AUDIO, save_vocoder, save_voice

from common.audio.wav import load_wav
from common.config import to_plain
from common.errors import InputError
from common.synthesis.loading import load_voice
from common.synthesis.speech import Prosody, Speech, parse_prosody, subtitles
from common.synthesis.voice import Voice

TEXT = "Mr. Hill paid $3.50 for it. Was it dear? No, my friend!"
HOP = AUDIO.hop_length / AUDIO.sampling_rate  # s


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("voice")
    return save_voice(folder / "FastPitch.pt"), save_vocoder(folder / "HiFi-GAN.pt")


@pytest.fixture(scope="module")
def voice(paths: tuple[Path, Path]) -> Voice:
    return load_voice(str(paths[0]), vocoder=str(paths[1]), device="cpu")


def frames_of(speech: Speech, text: str) -> int:
    """Frames of the first word of that text."""
    word = next(word for word in speech.words if word.text == text)
    return round((word.end - word.start) / HOP)


def test_a_text_is_spoken_in_one_call_with_its_words_in_time(voice: Voice, tmp_path: Path):
    speech = voice.speak(TEXT)
    assert speech.sampling_rate == 22050
    assert speech.wave.dtype == torch.float32
    assert len(speech.wave) == speech.mel.size(1) * AUDIO.hop_length == round(speech.duration * 22050)
    assert [word.text for word in speech.words] == "Mr Hill paid $3.50 for it Was it dear No my friend".split()
    times = [time for word in speech.words for time in (word.start, word.end)]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] <= speech.duration
    assert [one.text for one in speech.utterances] == ["Mr. Hill paid $3.50 for it.", "Was it dear?", "No, my friend!"]
    speech.save(tmp_path / "a.flac")
    torch.testing.assert_close(load_wav(tmp_path / "a.flac", sampling_rate=22050), speech.wave, rtol=0, atol=2**-15)


@pytest.mark.parametrize("vocoder", ["HiFi-GAN", "Griffin-Lim"])
def test_a_stream_is_the_whole_in_pieces(paths: tuple[Path, Path], voice: Voice, vocoder: str):
    text = " ".join([TEXT, TEXT.replace(".", ","), TEXT])
    speaks = voice if vocoder == "HiFi-GAN" else load_voice(paths[0], device="cpu")
    pieces = list(speaks.stream(text, pace=1.1, pitch=1.05, volume=0.5, speaker="bob"))
    whole = speaks.speak(text, pace=1.1, pitch=1.05, volume=0.5, speaker="bob")
    assert len(pieces) >= len(whole.utterances)
    assert all(piece.dtype == torch.float32 and piece.dim() == 1 for piece in pieces)
    torch.testing.assert_close(torch.cat(pieces), whole.wave, rtol=0, atol=1e-5)


def test_pace_pitch_volume_and_speaker_change_what_they_name(voice: Voice):
    plain, slow = voice.speak("Go on now."), voice.speak("Go on now.", pace=0.5)
    assert slow.mel.size(1) == pytest.approx(2 * plain.mel.size(1), rel=0.1)
    quiet = voice.speak("Go on now.", volume=0.25)
    torch.testing.assert_close(quiet.wave, plain.wave * 0.25)

    def pitches(speech: Speech) -> torch.Tensor:
        return torch.tensor([one.pitch for one in next(iter(speech.table.utterances)).symbols])

    torch.testing.assert_close(pitches(voice.speak("Go on now.", pitch=1.5)), pitches(plain) * 1.5, rtol=1e-4, atol=0)
    assert torch.equal(voice.speak("Go on now.", speaker="ann").wave, plain.wave)
    assert torch.equal(voice.speak("Go on now.", speaker=1).wave, voice.speak("Go on now.", speaker="bob").wave)
    assert not torch.equal(voice.speak("Go on now.", speaker=1).mel, plain.mel)


def test_markup_changes_the_words_that_it_stands_around(voice: Voice):
    plain = voice.speak("One little word is there.")
    slow = voice.speak('One <prosody rate="50%">little</prosody> word is there.')
    assert [word.text for word in slow.words] == [word.text for word in plain.words]
    assert frames_of(slow, "little") == pytest.approx(2 * frames_of(plain, "little"), abs=len("little"))
    for word in ("One", "word", "is", "there"):
        assert frames_of(slow, word) == frames_of(plain, word)

    high = voice.speak('One <prosody pitch="+50%">little</prosody> word is there.')
    for before, after in zip(plain.table.utterances[0].words, high.table.utterances[0].words):
        factor = 1.5 if before.text == "little" else 1.0
        # The space after a word is said as the word.
        if before.text:
            assert [one.pitch for one in after.symbols] == pytest.approx([factor * one.pitch for one in before.symbols])

    loud = voice.speak('One <prosody volume="-20dB">little</prosody> word is there.')
    word = next(one for one in plain.words if one.text == "little")
    inner = slice(round((word.start + HOP) * 22050), round((word.end - HOP) * 22050))
    torch.testing.assert_close(loud.wave[inner], plain.wave[inner] * 0.1)
    before = slice(0, round((word.start - 2 * HOP) * 22050))
    assert torch.equal(loud.wave[before], plain.wave[before])


def test_a_table_gives_the_same_sound_again_and_its_text_the_same_table(voice: Voice, tmp_path: Path):
    speech = voice.speak(f"{TEXT} <prosody rate='fast' volume='soft'>Said the clerk.</prosody>", speaker="bob")
    table = speech.prosody
    assert table is not None
    table.save(tmp_path / "a.json")
    read = parse_prosody(json.loads((tmp_path / "a.json").read_text()), where="request")
    assert read == table
    again = voice.speak(read)
    assert torch.equal(again.wave, speech.wave)
    assert again.words == speech.words
    assert again.prosody == table
    torch.testing.assert_close(torch.cat(list(voice.stream(read))), speech.wave, rtol=0, atol=1e-5)


def edited(table: Prosody, **changes: float) -> Prosody:
    """The table with these values for the first word's symbols."""
    content = to_plain(table)
    for symbol in content["utterances"][0]["words"][0]["symbols"]:
        symbol |= changes
    return parse_prosody(content, where="table")


def test_what_is_edited_in_a_table_is_what_is_spoken(voice: Voice):
    speech = voice.speak("Go on now.")
    table = speech.table
    longer = voice.speak(edited(table, frames=20))
    assert frames_of(longer, "Go") == 20 * len("Go")
    higher = voice.speak(edited(table, pitch=321.5))
    assert [one.pitch for one in higher.table.utterances[0].words[0].symbols] == pytest.approx([321.5] * 2)
    assert not torch.equal(higher.mel, speech.mel)
    louder = voice.speak(edited(table, energy=3.0))
    assert [one.energy for one in louder.table.utterances[0].words[0].symbols] == [3.0, 3.0]
    assert not torch.equal(louder.mel, speech.mel)
    silent = voice.speak(edited(table, volume=0.0))
    assert not silent.wave[: (frames_of(speech, "Go") - 1) * AUDIO.hop_length].any()
    assert torch.equal(silent.mel, speech.mel)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"symbol": "ŋŋ"}, r"prosody: symbol 'ŋŋ' is not in symbol set english_basic"),
        ({"frames": -1}, r"table: not a prosody table: utterances\.0\.words\.0\.symbols\.0\.frames: .*got -1"),
    ],
)
def test_a_wrong_value_in_a_table_is_named(voice: Voice, change: dict, reason: str):
    table = voice.speak("Go on now.").table
    with pytest.raises(InputError, match=reason) as error:
        voice.speak(edited(table, **change))
    assert "\n" not in str(error.value)


def test_tacotron_2_warns_once_of_what_it_cannot_do_and_tells_its_words_times(tmp_path: Path, capsys):
    path = tiny_tacotron2.save_voice(tmp_path / "Tacotron2.pt")
    voice = load_voice(path, device="cpu")
    text = '<prosody pitch="high">Go on.</prosody> Now <prosody rate="slow">stop.</prosody>'
    speech = voice.speak(text)
    warnings = [line for line in capsys.readouterr().err.splitlines() if "cannot change pace and pitch" in line]
    assert warnings == ["warning: Tacotron2 cannot change pace and pitch; they are ignored"]
    assert [word.text for word in speech.words] == ["Go", "on", "Now", "stop"]
    assert speech.prosody is None
    assert next(one.pitch for one in speech.table.utterances[0].symbols) is None
    with pytest.raises(InputError, match="Tacotron2 cannot speak with a given prosody"):
        voice.speak(speech.table)


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (" \n", {}, "empty text"),
        ("Go.", {"speaker": "carol"}, "speaker 'carol', expected a number from 0 to 1 or one of ann, bob"),
        ("Go.", {"pace": 0}, "pace 0: expected a factor"),
        ('<prosody rate="often">Go.</prosody>', {}, "line 1, column 1"),
    ],
)
def test_what_cannot_be_spoken_says_why(voice: Voice, text: str, options: dict, reason: str):
    with pytest.raises(InputError, match=reason):
        voice.speak(text, **options)


def seconds(clock: str) -> float:
    hours, minutes, rest = clock.replace(",", ".").split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(rest)


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_subtitles_hold_every_word_when_it_is_said(voice: Voice, kind: str):
    speech = voice.speak(f"{TEXT} And then, as nobody had expected it of them, they walked along the river bank.")
    content = subtitles(speech, kind)
    assert content.startswith("1\n" if kind == "srt" else "WEBVTT\n\n1\n")
    cues = re.findall(r"^\d+\n(\S+) --> (\S+)\n((?:.+\n)+)", content, re.MULTILINE)
    assert " ".join(cue[2].replace("\n", " ").strip() for cue in cues) == " ".join(
        one.text for one in speech.utterances
    )
    times = [seconds(time) for cue in cues for time in cue[:2]]
    assert times == sorted(times)
    assert times[0] == pytest.approx(speech.words[0].start, abs=1e-3)
    assert times[-1] == pytest.approx(speech.words[-1].end, abs=1e-3)
    assert all(len(cue[2].strip().split("\n")) <= 2 for cue in cues)


def test_silence_alone_is_kept_at_the_beginning_in_between_and_at_the_end(voice: Voice):
    text = '<break time="1s"/>Go.<break time="1s"/><break time="2s"/>Stop.<break time="500ms"/>'
    speech, go = voice.speak(text), voice.speak("Go.")
    first, second = speech.utterances
    assert first.start == pytest.approx(1, abs=HOP)
    assert second.start - first.end == pytest.approx(3, abs=HOP)
    assert speech.duration - second.end == pytest.approx(0.5, abs=HOP)
    start = round(first.start * 22050)
    assert torch.equal(speech.wave[start : start + len(go.wave)], go.wave)
    assert len(speech.wave) == speech.mel.size(1) * AUDIO.hop_length
    assert speech.prosody is not None
    assert torch.equal(voice.speak(speech.prosody).wave, speech.wave)
    torch.testing.assert_close(torch.cat(list(voice.stream(text))), speech.wave, rtol=0, atol=1e-5)
