"""Home Assistant's protocol with real tiny networks, spoken by the public package's own client over TCP."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_served
import torch
from limits import HANG_LIMIT
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient, AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event, Eventable
from wyoming.info import Describe, Info
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeVoice

from common.audio.wav import to_int16
from common.serving.app import Service
from common.serving.options import Limits
from common.serving.server import bind

TEXT = "Go on. And a longer sentence, of several words! No."
LIMITS = Limits(max_characters=300, max_body=100_000, max_audio_seconds=3.0, deadline=HANG_LIMIT)


@pytest.fixture(scope="module")
def folder(make_once) -> Path:
    return make_once("served_with_recognizer", tiny_served.make_with_recognizer)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[SimpleNamespace]:
    models = tiny_served.served_models(folder, "--jasper", str(folder / "ear.pt"))
    with bind("127.0.0.1", 0) as bound:
        service = Service(models, limits=LIMITS, wyoming=bound)
        with tiny_served.serving(service):
            uri = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
            yield SimpleNamespace(uri=uri, models=models, service=service)


def talk(served, work: Callable[[AsyncClient], Awaitable]):
    """What ``work`` returns of a client that is connected."""

    async def main():
        async with AsyncClient.from_uri(served.uri) as client:
            return await asyncio.wait_for(work(client), HANG_LIMIT)

    return asyncio.run(main())


def ask(served, *requests: Eventable, until: Sequence[str] = ()) -> list[Event]:
    """The events that answer requests, up to one of a kind, else until the server closes the connection."""

    async def work(client: AsyncClient) -> list[Event]:
        for one in requests:
            await client.write_event(one.event())
        found: list[Event] = []
        while (event := await client.read_event()) is not None:
            found.append(event)
            if event.type in until:
                break
        return found

    return talk(served, work)


def sound_of(events: Sequence[Event]) -> bytes:
    """The samples between audio-start and audio-stop, which come once."""
    kinds = [event.type for event in events]
    assert (kinds[0], kinds.count("audio-start"), kinds.count("audio-stop")) == ("audio-start", 1, 1)
    start, chunks = AudioStart.from_event(events[0]), [AudioChunk.from_event(one) for one in events if one.payload]
    assert {(one.rate, one.width, one.channels) for one in (start, *chunks)} == {(22050, 2, 1)}
    assert [one.timestamp for one in chunks] == sorted(one.timestamp for one in chunks)
    return b"".join(one.audio for one in chunks)


def assert_spoken(events: Sequence[Event], served, text: str = TEXT, **options) -> None:
    sound, expected = (
        torch.frombuffer(bytearray(data), dtype=torch.int16)
        for data in (sound_of(events), to_int16(served.models.voice.speak(text, **options).wave.numpy()).tobytes())
    )
    assert sound.shape == expected.shape
    assert int((sound.int() - expected.int()).abs().max()) <= 1


def test_voices_and_recognizers_are_listed_with_their_languages(served):
    (event,) = ask(served, Describe(), until=["info"])
    info = Info.from_event(event)
    (voice,), (model,) = info.tts[0].voices, info.asr[0].models
    assert (voice.name, [speaker.name for speaker in voice.speakers]) == ("voice", ["ann", "bob"])
    assert (model.name, voice.languages, model.languages) == ("ear", ["en"], ["en"])
    assert all(one.installed for one in (info.tts[0], voice, info.asr[0], model))


@pytest.mark.parametrize("speaker", [None, "bob"])
def test_a_text_is_spoken_as_the_voice_makes_it_offline(served, speaker: str | None):
    voice = SynthesizeVoice(name="voice", speaker=speaker)
    events = ask(served, Synthesize(TEXT, voice=voice), until=["audio-stop"])
    assert_spoken(events, served, speaker=speaker)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_recording_is_transcribed_as_offline(served, channels: int):
    wave = (0.3 * torch.sin(torch.arange(12000) * 0.2) * 32767).round() / 32768
    form = {"rate": 8000, "width": 2, "channels": channels}
    parts = wave.repeat_interleave(channels).split(1000)
    chunks = [AudioChunk(**form, audio=to_int16(part.numpy()).tobytes()) for part in parts]
    (event,) = ask(served, Transcribe(), AudioStart(**form), *chunks, AudioStop(), until=["transcript"])
    assert Transcript.from_event(event).text == served.models.recognizer.transcribe(wave)[0].text


def chunk(*, seconds: float, width: int = 2) -> AudioChunk:
    return AudioChunk(rate=8000, width=width, channels=1, audio=bytes(round(seconds * 8000) * width))


START = AudioStart(rate=8000, width=2, channels=1)
BAD = {
    "no text": ([Synthesize(" ")], "input: contains nothing to speak"),
    "unknown speaker": ([Synthesize("go", voice=SynthesizeVoice("eve"))], "voice: 'eve', expected one of voice, ann"),
    "too long": ([Synthesize("a" * 301)], "input: 301 characters, this server's limit is 300"),
    "wrong SSML": ([Synthesize("<speak>", text_format="ssml")], "input: line 1"),
    "too long a recording": ([START, *[chunk(seconds=1.1)] * 3], "audio-chunk: more than 3 s of sound"),
    "a rate that changes": (
        [START, chunk(seconds=2.9), AudioChunk(rate=10, width=2, channels=1, audio=bytes(2))],
        "audio-chunk: 10 Hz, 1 channels and 2 bytes per sample, expected 4000 to 384000 Hz",
    ),
    "a rate of 2 GHz": ([AudioStart(rate=2 * 10**9, width=2, channels=1)], "audio-start: 2000000000 Hz"),
    "a thousand channels": ([AudioStart(rate=8000, width=2, channels=1000)], "Hz, 1000 channels and 2"),
    "too many bytes": (
        [AudioStart(48000, 2, 2), *[AudioChunk(48000, 2, 2, bytes(60_000))] * 2],
        "audio-chunk: more than 3 s of sound, or 100000 bytes",
    ),
    "no sound": ([START, AudioStop()], "audio-stop: no sound came before it"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_request_that_fails_ends_with_an_error_event_and_the_connection(served, case: str):
    requests, message = BAD[case]
    (event,) = ask(served, *requests)
    text = Error.from_event(event).text
    assert message in text and "\n" not in text and "--" not in text


def test_without_a_recognizer_none_is_listed_and_a_recording_is_refused(served):
    models = replace(served.models, recognizer=None, recognizer_name="")
    with bind("127.0.0.1", 0) as bound:
        other = SimpleNamespace(uri=f"tcp://127.0.0.1:{bound.getsockname()[1]}")
        with tiny_served.serving(Service(models, limits=LIMITS, wyoming=bound)):
            assert Info.from_event(ask(other, Describe(), until=["info"])[0]).asr == []
            asked = [[START, *[chunk(seconds=1.0)] * 300, AudioStop()]]  # all of which it sends first
            text_rate = AudioChunk(rate="x", width=2, channels=1, audio=bytes(2))  # type: ignore[arg-type]
            asked += [[START], [Transcribe()], [AudioStop()], [chunk(seconds=1.0)], [text_rate]]
            events = [event for requests in asked for event in ask(other, *requests)]
    assert [Error.from_event(event).code for event in events] == ["no_recognizer"] * len(asked)


NO_EVENT = {
    b"hello\n": "not an event of the Wyoming protocol",
    b'{"type": "x", "payload_length": "a"}\n': "not an event",
    b'{"type": "x", "payload_length": 200000}\n': "more than 100000 bytes",
    b'{"type": "synthesize"}\n': "synthesize: missing or wrong field",
    b'{"type": "synthesize", "data": {"text": "a", "voice": 5}}\n': "synthesize: missing or wrong field",
    b'{"type": "audio-start", "data": {"rate": "a", "width": 2, "channels": 1}}\n': "audio-start: 'a' Hz, 1 channels",
    b'{"type": "audio-start", "data": {"rate": null, "width": 2, "channels": 1}}\n': "audio-start: None Hz, 1",
}


@pytest.mark.parametrize("data", NO_EVENT)
def test_what_is_no_event_is_an_error_event_and_the_server_goes_on(served, data: bytes, caplog):
    async def work(client: AsyncTcpClient) -> list[Event | None]:
        client._writer.write(data)
        return [await client.read_event(), await client.read_event()]

    event, end = talk(served, work)
    text = Error.from_event(event).text
    assert NO_EVENT[data] in text and "\n" not in text and end is None
    assert "Traceback" not in caplog.text
    (event,) = ask(served, Ping("a"), until=["pong"])
    assert event.data == {"text": "a"}


def test_connections_that_say_nothing_are_closed_and_their_number_is_bounded(served):
    async def work(client: AsyncClient) -> list[Event | None]:
        async with AsyncClient.from_uri(served.uri) as more:
            return [await more.read_event(), await client.read_event()]

    with bind("127.0.0.1", 0) as bound:
        limits = replace(LIMITS, max_queue=1, deadline=0.5)
        served = SimpleNamespace(uri=f"tcp://127.0.0.1:{bound.getsockname()[1]}", models=served.models)
        with tiny_served.serving(Service(served.models, limits=limits, wyoming=bound)):
            refused, silent = talk(served, work)
    assert Error.from_event(refused).code == "queue_full"
    assert silent is None


def test_stopping_finishes_what_is_spoken_and_closes_connections(served):
    async def main(uri: str, stop: Callable[[], None]) -> list[list[Event]]:
        async def read(client: AsyncClient) -> list[Event]:
            found: list[Event] = []
            while (event := await client.read_event()) is not None:
                found.append(event)
                if event.type == "audio-start":
                    stop()
            return found

        async with AsyncClient.from_uri(uri) as idle, AsyncClient.from_uri(uri) as busy:
            await busy.write_event(Synthesize(TEXT * 5).event())
            return await asyncio.wait_for(asyncio.gather(read(idle), read(busy)), HANG_LIMIT)

    with bind("127.0.0.1", 0) as bound:
        service = Service(served.models, limits=LIMITS, wyoming=bound)
        with tiny_served.stoppable(service) as server:
            uri = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
            idle, busy = asyncio.run(main(uri, lambda: setattr(server, "should_exit", True)))
    assert idle == []
    assert_spoken(busy, served, TEXT * 5)
