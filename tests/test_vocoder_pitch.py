"""The voice's pitch told to a vocoder that takes one: what is heard, in files, Python and requests."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import tiny_served
import torch
from limits import HANG_LIMIT
from tiny_harmonic import save_harmonic
from tiny_voice import save_vocoder, save_voice
from torch import Tensor

import inference
from common.audio.pitch import AT_FRAMES, PITCH_LIMITS, estimate_pitch
from common.checkpoints.loading import open_checkpoint
from common.config import AudioConfig, to_plain
from common.errors import InputError
from common.precision import Precision
from common.serving.app import Service
from common.serving.options import Limits
from common.synthesis.loading import load_voice, make_voice
from common.synthesis.options import SpeakingOptions, VoiceOptions
from common.synthesis.speech import Prosody, parse_prosody
from common.synthesis.utterances import MelOutput, Phrase, SynthesisInput, SynthesisResult
from common.synthesis.voice import Voice

TEXT = "a voice that is heard for a second or two."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice, a HiFi-GAN, and a Harmonic that takes every frame for voiced."""
    folder = tmp_path_factory.mktemp("pitch")
    save_voice(folder / "voice.pt", audio=AudioConfig(n_mels=16))
    save_vocoder(folder / "hifigan.pt")
    save_harmonic(folder / "harmonic.pt", AudioConfig(n_mels=16), voiced=True)
    return folder


@pytest.fixture(scope="module")
def voice(folder: Path) -> Voice:
    opened = [open_checkpoint(folder / f"{name}.pt", ema=True) for name in ("voice", "harmonic")]
    return make_voice(*opened, VoiceOptions(SpeakingOptions(vocoder_pitch="voice", fade_out=0)), precision=Precision())


def with_pitch(table: Prosody, *values: float) -> Prosody:
    """A table whose symbols have these values in Hz, in turn, and eight frames each."""
    plain, place = to_plain(table), 0
    for utterance in plain["utterances"]:
        for word in utterance["words"]:
            for symbol in word["symbols"]:
                symbol |= {"pitch": values[place % len(values)], "frames": 8}
                place += 1
    return parse_prosody(plain, where="table")


def cents_off(wave: Tensor, wanted: Tensor) -> float:
    """The median error of a wave's F0 from that of each frame in Hz."""
    heard = torch.from_numpy(estimate_pitch(wave.numpy(), AudioConfig(), n_frames=len(wanted), method=AT_FRAMES))
    assert float((heard > 0).float().mean()) > 0.8
    return float((1200 * (heard / wanted).log2().abs())[heard > 0].median())


def test_the_pitch_of_frames_is_interpolated_in_the_logarithm_between_the_centers_of_symbols():
    frames, pitch = [3, 0, 5, 2, 1], [100.0, 500.0, 200.0, 0.0, 5000.0]
    output = MelOutput(
        torch.zeros(1, 4, 11),
        torch.tensor([11]),
        frames=torch.tensor([frames]),
        pitch_hz=torch.tensor([pitch]).double(),
    )
    phrase = Phrase("here", PurePosixPath("a.wav"))
    item = SynthesisInput(phrase, tokens=torch.zeros(5, dtype=torch.int64))
    found = SynthesisResult(item, torch.zeros(4, 11), output=output).pitch_of_frames()
    centers, logs = [1.0, 5.0, 10.0], np.log([100.0, 200.0, PITCH_LIMITS[1]])  # none without frames or pitch
    torch.testing.assert_close(found, torch.tensor(np.exp(np.interp(range(11), centers, logs)), dtype=torch.float32))


@pytest.mark.parametrize("values", [(150.0,), (210.0,), (140.0, 150.0, 170.0, 190.0, 180.0, 160.0)])
def test_a_given_curve_is_what_is_heard(voice: Voice, values: tuple[float, ...]):
    table = with_pitch(voice.speak(TEXT).prosody, *values)
    (part,) = (speech := voice.speak(table)).parts
    assert cents_off(speech.wave, part.pitch_of_frames()) < 10
    torch.testing.assert_close(torch.cat(list(voice.stream(table))), speech.wave, atol=1e-5, rtol=0)


def test_who_has_no_pitch_or_takes_none_is_refused_in_one_line(folder: Path, tmp_path: Path, voice: Voice):
    words = ["--fastpitch", str(folder / "voice.pt"), "--hifigan", str(folder / "hifigan.pt")]
    with pytest.raises(SystemExit):
        inference.main([*words, "--text", "a", "-o", str(tmp_path / "a.wav"), "--vocoder-pitch", "voice"])
    with pytest.raises(InputError, match="vocoder_pitch: hifigan takes no pitch, so it cannot be the voice's"):
        load_voice(folder / "voice.pt", folder / "hifigan.pt", vocoder_pitch="voice")
    with pytest.raises(InputError, match="vocoder_pitch 'praat': expected one of mel, voice"):
        load_voice(folder / "voice.pt", folder / "harmonic.pt", vocoder_pitch="praat")
    with pytest.raises(InputError, match="table: --vocoder-pitch voice: the voice gives no pitch in Hz"):
        voice.synthesizer.speak_inputs(
            voice.plan(with_pitch(voice.speak(TEXT).prosody, 0.0), phrase=Phrase("table", PurePosixPath("a")))
        )


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[SimpleNamespace]:
    models = tiny_served.load_models(
        ["--fastpitch", str(folder / "voice.pt"), "--harmonic", str(folder / "harmonic.pt"), "--fade-out", "0"]
    )
    serving = tiny_served.serving(Service(models, limits=Limits()))
    with serving as address, httpx.Client(base_url=address, timeout=HANG_LIMIT) as http:
        yield SimpleNamespace(http=http, voice=models.voice)


def test_a_request_may_ask_for_the_given_pitch(served: SimpleNamespace, voice: Voice):
    assert served.http.get("/v1/voices").json()["data"][0]["vocoder_pitch"] == "mel"
    table = with_pitch(voice.speak(TEXT).prosody, 180.0)
    body = {"prosody": to_plain(table), "response_format": "wav"}
    waves = {}
    for asked in (None, "mel", "voice"):
        wav = served.http.post("/v1/audio/speech", json=body | {"vocoder_pitch": asked})
        assert wav.status_code == 200
        waves[asked] = torch.from_numpy(np.frombuffer(wav.content[44:], dtype="<i2") / 32768).float()
    assert torch.equal(waves[None], waves["mel"])
    assert cents_off(waves["voice"], torch.full((len(waves["voice"]) // 256,), 180.0)) < 10
    torch.testing.assert_close(waves["voice"], voice.speak(table).wave.clamp(-1, 1), atol=1e-4, rtol=0)
