"""The HTTP interface with real tiny networks: what the public OpenAI client sends is answered as offline speech is."""

import asyncio
import base64
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import av
import httpx
import pytest
import soundfile
import tiny_served
import torch
from limits import HANG_LIMIT

from common.audio.wav import resample
from common.errors import OptionError
from common.serving.app import Service
from common.serving.options import Limits
from common.synthesis.speech import subtitles

TEXT = "go on. and a longer sentence, of several words!"


@pytest.fixture(scope="module")
def folder(make_once) -> Path:
    return make_once("served_with_recognizer", tiny_served.make_with_recognizer)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[SimpleNamespace]:
    import openai  # which takes a second

    names = ("--alias", "af_bob=bob", "heart=voice")
    models = tiny_served.served_models(folder, "--jasper", str(folder / "ear.pt"), *names)
    limits = Limits(max_characters=300, max_body=200_000, max_audio_seconds=3.0, batch_size=4, deadline=HANG_LIMIT)
    service = Service(models, limits=limits)
    service.warm_up()
    with tiny_served.serving(service) as address:
        client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0, timeout=HANG_LIMIT)
        http = httpx.Client(base_url=address, timeout=HANG_LIMIT)
        yield SimpleNamespace(address=address, client=client, http=http, models=models, service=service)
        client.close()
        http.close()


def samples(data: bytes) -> tuple[torch.Tensor, int]:
    """The samples and the rate of a file's bytes."""
    wave, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    return torch.from_numpy(wave), rate


def offline(served, text: str = TEXT, **options) -> torch.Tensor:
    """What the same voice says without a server, as 16-bit files have it."""
    return (served.models.voice.speak(text, **options).wave * 32768).round().clamp(-32768, 32767) / 32768


def assert_same(first: torch.Tensor, second: torch.Tensor, *, tolerance: float = 1.1 / 32768) -> None:
    assert first.shape == second.shape
    assert float((first - second).abs().max()) <= tolerance


def refused(response: httpx.Response, status: int, *words: str) -> dict:
    """The error of an answer, which is one line with those words."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "\n" not in error["message"]
    assert [word for word in words if word not in error["message"]] == []
    return error


def speak(served, **fields) -> httpx.Response:
    return served.http.post("/v1/audio/speech", json={"response_format": "wav"} | fields)


def test_the_openai_client_gets_the_sound_that_the_voice_makes_offline(served):
    answer = served.client.audio.speech.create(model="tts-1", voice="alloy", input=TEXT, response_format="wav")
    wave, rate = samples(answer.content)
    assert rate == 22050
    assert_same(wave, offline(served))
    other = served.client.audio.speech.create(model="voice", voice="bob", input=TEXT, response_format="wav")
    assert_same(samples(other.content)[0], offline(served, speaker="bob"))
    assert other.content != answer.content
    newer = speak(served, input=TEXT, voice={"id": "bob"})  # as newer clients name it
    assert newer.content == other.content


MEANT = {  # fields, and those that ask for the same
    "a dated model": ({"model": "gpt-4o-mini-tts-2025-12-15"}, {}),
    "an alias of a speaker": ({"voice": "af_bob"}, {"voice": "bob"}),
    "an alias of the voice": ({"voice": {"id": "heart"}}, {"voice": "voice"}),
    "a number as text": ({"speed": "1.2"}, {"speed": 1.2}),
    "a whole number": ({"speed": 2, "seed": "3"}, {"speed": 2.0, "seed": 3}),
    "null": ({"speed": None, "instructions": None}, {}),
}


@pytest.mark.parametrize("case", MEANT)
def test_what_clients_call_things_stands_for_what_there_is(served, case: str):
    given, meant = MEANT[case]
    answer = speak(served, input="go on", **given)
    assert answer.status_code == 200 and answer.content == speak(served, input="go on", **meant).content


@pytest.mark.parametrize("alias", ["heart", "=voice", "heart=", "heart=eve"])
def test_a_wrong_alias_is_one_line_about_the_option(folder: Path, alias: str, capsys):
    with pytest.raises((OptionError, SystemExit)) as caught:
        tiny_served.served_models(folder, "--alias", alias)
    said = f"{caught.value} {capsys.readouterr().err}"
    assert "--alias" in said and alias in said and "expected" in said


def test_subtitles_are_answered_of_texts_and_of_recordings(served):
    text = "Go on. And a longer sentence!"
    expected = served.models.voice.speak(text)
    for kind, media in (("srt", "application/x-subrip"), ("vtt", "text/vtt")):
        answer = served.client.audio.speech.create(model="tts-1", voice="alloy", input=text, response_format=kind)
        assert answer.response.headers["content-type"].startswith(media)
        assert answer.content.decode() == subtitles(expected, kind)
        found, verbose = (
            served.http.post("/v1/audio/transcriptions", files={"file": recording()}, data={"response_format": form})
            for form in (kind, "verbose_json")
        )
        assert found.status_code == 200 and found.text.count("-->") == len(verbose.json()["segments"])


def test_what_will_be_said_is_shown_in_words_and_phones(served):
    answer = speak(served, input="Go on. No #.", show=True).json()
    assert answer["utterances"] == [{"words": "go on.", "phones": ""}, {"words": "no #.", "phones": ""}]
    assert "'#'" in answer["warning"]
    refused(speak(served, input="<speak>", show=True), 400, "input")


def test_the_openai_client_streams_and_sets_the_speed(served):
    options = {"model": "tts-1", "voice": "alloy", "input": TEXT}
    with served.client.audio.speech.with_streaming_response.create(**options, response_format="pcm") as answer:
        assert answer.headers["x-sampling-rate"] == "24000"  # which OpenAI's clients play it at
        assert answer.headers["content-type"] == "audio/pcm"
        pieces = list(answer.iter_bytes())
    expected = resample(served.models.voice.speak(TEXT).wave, ratio=24000 / 22050)
    found = torch.frombuffer(bytearray(b"".join(pieces)), dtype=torch.int16) / 32768
    assert_same(found, expected, tolerance=1e-4)
    fast = served.client.audio.speech.create(**options, speed=2.0, response_format="wav")
    assert_same(samples(fast.content)[0], offline(served, pace=2.0))


def test_a_long_text_arrives_in_pieces_whose_first_comes_before_the_last_is_made(served):
    made = served.service.gate.metrics.audio._value
    before, body = made.get(), {"input": "la " * 90 + ".", "response_format": "wav"}
    with served.http.stream("POST", "/v1/audio/speech", json=body) as response:
        sizes = [len(piece) for piece in response.iter_raw()]
    assert len(sizes) > 2
    assert sum(sizes) == 44 + round((made.get() - before) * 22050) * 2


CODED = {  # kind of content, rate that FFmpeg decodes to, most samples more than were spoken
    "flac": ("audio/flac", 22050, 0),
    "ogg": ("audio/ogg", 22050, 0),
    "mp3": ("audio/mpeg", 22050, 3000),  # begins and ends with a little silence, and so do the next two
    "opus": ("audio/ogg; codecs=opus", 48000, 3000),
    "aac": ("audio/aac", 22050, 3000),
}


@pytest.mark.parametrize("form", CODED)
def test_compressed_formats_hold_the_same_sound(served, form: str):
    answer = served.client.audio.speech.create(model="tts-1", voice="ann", input=TEXT, response_format=form)
    kind, rate, more = CODED[form]
    assert answer.response.headers["content-type"] == kind
    with av.open(io.BytesIO(answer.content)) as file:
        resampler = av.AudioResampler("fltp", "mono", rate)
        frames = [made for frame in file.decode(audio=0) for made in resampler.resample(frame)]
        assert file.streams.audio[0].rate == rate
    wave = torch.cat([torch.from_numpy(frame.to_ndarray()[0]) for frame in frames])
    expected = resample(offline(served), ratio=rate / 22050)
    if form == "flac":
        assert_same(wave, expected)
    if form == "mp3":
        assert answer.content == served.http.post("/v1/audio/speech", json={"input": TEXT, "voice": "ann"}).content
    assert -1100 <= len(wave) - len(expected) <= more  # a Vorbis decoder of FFmpeg's leaves out the last block
    assert correlation(wave, expected) > 0.9


def test_a_format_whose_package_is_missing_is_refused_by_its_name(served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "av", None)
    answer = speak(served, input="hello", response_format="aac")
    assert answer.status_code == 501 and "package av" in answer.json()["error"]["message"]


def correlation(first: torch.Tensor, second: torch.Tensor) -> float:
    """Of two waves at the shift where it is largest, without their lowest frequencies, which Opus leaves out."""
    n = len(first) + len(second)
    spectra = [torch.fft.rfft(wave, n).index_fill(0, torch.arange(n // 200), 0) for wave in (first, second)]
    waves = [torch.fft.irfft(spectrum, n) for spectrum in spectra]
    shifted = torch.fft.irfft(spectra[0] * spectra[1].conj(), n)
    return float(shifted.max() / (waves[0].norm() * waves[1].norm()))


def test_server_sent_events_hold_the_same_bytes(served):
    with served.client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=TEXT, stream_format="sse", response_format="pcm"
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert sound == speak(served, input=TEXT, response_format="pcm").content
    usage = events[-1]["usage"]
    assert events[-1]["type"] == "speech.audio.done"
    assert usage["output_tokens"] * 256 == len(offline(served))
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_timings_hold_words_mel_and_a_prosody_that_says_the_same_again(served):
    body = speak(served, input=TEXT, timings=True).json()
    wave, _ = samples(base64.b64decode(body["audio"]))
    speech = served.models.voice.speak(TEXT)
    assert_same(wave, offline(served))
    assert body["duration"] == pytest.approx(len(wave) / 22050)
    assert [word["text"] for word in body["words"]] == [word.text for word in speech.words]
    mel = torch.frombuffer(bytearray(base64.b64decode(body["mel"]["data"])), dtype=torch.uint8)
    mel = mel.view(body["mel"]["n_mels"], body["mel"]["frames"])
    shown = body["mel"]["min"] + mel / 255 * (body["mel"]["max"] - body["mel"]["min"])
    assert float((shown - speech.mel).abs().max()) < 0.6 * (body["mel"]["max"] - body["mel"]["min"]) / 255
    again = speak(served, prosody=body["prosody"])
    assert_same(samples(again.content)[0], wave)
    assert [one["speaker"] for one in body["prosody"]["utterances"]] == ["ann"] * len(body["prosody"]["utterances"])
    assert speak(served, prosody=body["prosody"], voice="bob").content != again.content
    body["prosody"]["utterances"][0]["words"][0]["symbols"][0]["frames"] += 7
    longer, _ = samples(speak(served, prosody=body["prosody"]).content)
    assert len(longer) == len(wave) + 7 * 256


def test_what_the_voice_has_no_symbol_for_is_left_out_and_said_in_the_log_and_the_answer(served, caplog):
    warning = "3 characters that this voice has no symbol for were left out: '😀' (2), '#' (1)"
    answer = speak(served, input="go #on😀😀.", timings=True).json()
    assert answer["warning"] == warning
    assert [word["text"] for word in answer["words"]] == ["go", "#on😀😀"]
    assert_same(samples(speak(served, input="go #on😀😀.").content)[0], offline(served, "go on."))
    lines = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert lines == [f"warning: {warning}"] * 2
    assert speak(served, input="go on.", timings=True).json()["warning"] is None


def test_requests_at_once_share_batches_and_answer_as_alone(served):
    texts = ["go on", "go in there", "no", "words, words, words", "the rain had stopped", "he read the letter twice"]
    sizes = served.service.gate.metrics.batch.labels("speech")
    before, path, body = sizes._sum.get(), "/v1/audio/speech", {"response_format": "wav"}

    async def ask_all() -> list[bytes]:
        async with httpx.AsyncClient(base_url=served.address, timeout=HANG_LIMIT) as client:
            answers = await asyncio.gather(*(client.post(path, json=body | {"input": one}) for one in texts))
        return [answer.content for answer in answers]

    for text, content in zip(texts, asyncio.run(ask_all())):
        assert_same(samples(content)[0], offline(served, text))
    assert sizes._sum.get() - before == len(texts)


def test_the_openai_client_gets_the_transcript_that_the_recognizer_makes_offline(served):
    wave = 0.3 * torch.sin(torch.arange(12000) * 0.2)
    file = io.BytesIO()
    soundfile.write(file, wave.numpy(), 8000, format="WAV", subtype="FLOAT")
    expected = served.models.recognizer.transcribe(wave)[0]
    create, given = served.client.audio.transcriptions.create, ("a.wav", file.getvalue())
    assert create(model="whisper-1", file=given).text == expected.text
    assert create(model="ear", file=given, response_format="text") == expected.text + "\n"
    verbose = create(model="ear", file=given, response_format="verbose_json")
    assert (verbose.text, verbose.duration) == (expected.text, 1.5)


def test_models_and_voices_are_listed(served):
    assert [model.id for model in served.client.models.list()] == ["voice", "ear", "heart"]
    for name in ("voice", "ear", "heart", "tts-1", "tts-1-1106", "whisper-1"):
        assert served.client.models.retrieve(name).id == name
    refused(served.http.get("/v1/models/gpt-9"), 404, "gpt-9")
    names = ["voice", "ann", "bob", "af_bob", "heart"]
    assert served.http.get("/v1/audio/voices").json() == {"voices": [{"id": name, "name": name} for name in names]}
    for path in ("/v1/models", "/healthz", "/"):
        head = served.http.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["Content-Length"] == str(len(served.http.get(path).content))
    (voice,) = served.http.get("/v1/voices").json()["data"]
    expected = {"id": "voice", "vocoder": "vocoder (hifigan)", "language": "en", "speakers": ["ann", "bob"]}
    assert voice == voice | expected | {"shapes_prosody": True, "has_energy": False, "pitch_mean": 200.0}


SILENT = ("...", "🎉🎉 👍", "<speak>🎉</speak>", "***")


@pytest.mark.parametrize("text", SILENT)
def test_a_text_of_which_nothing_is_said_is_a_short_silence(served, text: str):
    wave, rate = samples(speak(served, input=text).content)
    assert 0.2 < len(wave) / rate < 0.6 and not wave.any()
    assert_same(wave, offline(served, text))
    body = speak(served, input=text, timings=True).json()
    assert (body["words"], body["prosody"]) == ([], None) and body["duration"] == pytest.approx(len(wave) / rate)


BAD = {
    "no input": ({}, 400, "input: give text"),
    "both": ({"input": "a", "prosody": {}}, 400, "not both"),
    "not a number": ({"input": "a", "speed": "fast"}, 400, "speed: input should be a valid number"),
    "a number that is none": ({"input": "a", "speed": "nan"}, 400, "speed"),
    "letters and emoji": ({"input": "日本🎉"}, 400, "日本"),
    "a word that is long when it is written out": (
        {"input": f"<speak><say-as interpret-as='digits'>{'7' * 220}</say-as></speak>"},
        400,
        "input: 1319 symbols, this server's limit is 1200",
    ),
    "an utterance that would be long": (
        {"input": f"<speak><prosody rate='0.11'>{'word ' * 50}</prosody></speak>"},
        400,
        "input: an utterance of about 13",
        "limit is 120",
    ),
    "unknown field": ({"input": "a", "sped": 2}, 400, "sped: unknown field"),
    "unknown voice": ({"input": "a", "voice": "eve"}, 400, "voice: 'eve', expected one of voice, ann, bob"),
    "unknown model": ({"input": "a", "model": "gpt-9"}, 404, "model: 'gpt-9', expected voice"),
    "unknown format": ({"input": "a", "response_format": "au"}, 400, "response_format", "'wav', 'pcm'", "got 'au'"),
    "too fast": ({"input": "a", "speed": 11}, 400, "speed: input should be less than or equal to 10, got 11"),
    "too long": ({"input": "a" * 301}, 400, "input: 301 characters, this server's limit is 300"),
    "wrong SSML": ({"input": "<speak>a <prosody pitch='loud'>b</prosody></speak>"}, 400, "input: line 1, column 10"),
    "no SSML": ({"input": "a", "ssml": True}, 400, "holds no SSML"),
    "SSML that is not wanted": ({"input": "<speak>a</speak>", "ssml": False}, 400, "holds SSML"),
    "an entity": ({"input": "<!DOCTYPE a [<!ENTITY b 'c'>]><speak>&b;</speak>"}, 400, "input: line 1"),
    "no table": ({"prosody": {"format": "x"}}, 400, "prosody: not a prosody table"),
    "too slow": ({"input": "<speak><prosody rate='0.1'>a</prosody></speak>", "speed": 0.25}, 400, "rate is below 0.1"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_spoken_is_refused_in_one_line_that_says_why(served, case: str):
    fields, status, *words = BAD[case]
    error = refused(speak(served, **fields), status, *words)
    assert error["type"] == "invalid_request_error"
    assert error["param"] == error["message"].partition(":")[0] or "日本" in error["message"]


def test_a_table_of_endless_sound_is_refused_before_it_is_made(served):
    table = speak(served, input="go on", timings=True).json()["prosody"]
    symbols = table["utterances"][0]["words"][0]["symbols"]
    for symbol in symbols:
        symbol["frames"] = 2000
    refused(
        speak(served, prosody={**table, "utterances": [{**table["utterances"][0], "pause": 60}] * 40}),
        400,
        "s of pauses and given durations",
    )
    table["utterances"][0]["words"][0]["symbols"] = symbols * 20
    refused(speak(served, prosody=table), 400, "an utterance of about", "limit is 120")
    table["utterances"][0]["words"][0]["symbols"] = symbols * 300
    refused(speak(served, prosody=table), 400, "symbols, this server's limit is 300")


def test_paths_methods_and_kinds_of_content_are_refused_in_the_same_form(served):
    refused(served.http.get("/v2"), 404, "Not Found")
    refused(served.http.get("/v1/audio/speech"), 405)
    text = {"Content-Type": "text/plain"}  # which a page of another site may send
    refused(served.http.post("/v1/audio/speech", content=b'{"input": "a"}', headers=text), 400, "application/json")
    refused(served.http.post("/v1/audio/transcriptions", json={}), 400, "file: missing")
    cross = served.http.post("/v1/audio/speech", json={"input": "a"}, headers={"Sec-Fetch-Site": "cross-site"})
    refused(cross, 403, "other sites")


def recording(*, seconds: float = 0.5, rate: int = 8000, channels: int = 1, form: str = "WAV", subtype=None) -> bytes:
    file = io.BytesIO()
    wave = 0.3 * torch.sin(torch.arange(round(seconds * rate)) * 0.2)
    soundfile.write(file, wave[:, None].repeat(1, channels).numpy(), rate, format=form, subtype=subtype)
    return file.getvalue()


UPLOADS = {
    "no sound": (b"hello", {}, "not a sound file"),
    "too long": (recording(seconds=3.2), {}, "longer than 3 s"),
    "cut": (recording()[:-100], {}, "file: truncated"),
    "unknown field": (recording(), {"lang": "de"}, "lang: unknown field"),
    "a rate of 2 GHz": (recording(rate=2_000_000_000, seconds=1e-7), {}, "2000000000 Hz"),
    "too many channels": (recording(channels=40, seconds=0.1), {}, "40 channels"),
}


@pytest.mark.parametrize("case", UPLOADS)
def test_a_recording_that_cannot_be_transcribed_is_refused_in_one_line(served, case: str):
    data, fields, words = UPLOADS[case]
    refused(served.http.post("/v1/audio/transcriptions", files={"file": ("a.wav", data)}, data=fields), 400, words)


def test_stereo_and_other_rates_and_formats_are_transcribed(served):
    recordings = [recording(channels=2, rate=44100), *(recording(form=form) for form in ("FLAC", "OGG", "MP3"))]
    # what the server itself streams, with lengths that its headers leave open
    forms = ("wav", "flac", "ogg", "mp3", "opus")
    streams = [speak(served, input="go on", response_format=form).content for form in forms]
    for data in (*recordings, *streams):
        assert served.http.post("/v1/audio/transcriptions", files={"file": ("a", data)}).status_code == 200
