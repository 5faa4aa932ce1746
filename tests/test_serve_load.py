"""The load test of the server counts what is lost or wrong, and shows how long all took."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_served
from limits import HANG_LIMIT
from shell import dry_run

from common.audio.wav import pcm16
from common.serving.app import Service
from common.serving.options import Limits
from scripts.benchmarks import serving
from scripts.benchmarks.serving import ask_in_rounds

CLIENTS, TEXTS = 3, ("go on", "a longer sentence, of several words")


@pytest.fixture(scope="module")
def served(make_once) -> Iterator[SimpleNamespace]:
    folder = make_once("served_for_load", tiny_served.make_checkpoints)
    service = Service(tiny_served.served_models(folder), limits=Limits(max_queue=CLIENTS, deadline=HANG_LIMIT))
    with tiny_served.serving(service) as address:
        yield SimpleNamespace(host=address.removeprefix("http://").rstrip("/"), voice=service.models.voice)


def test_every_answer_comes_back_and_is_as_the_voice_speaks_it(served):
    answers, seconds = ask_in_rounds(served.host, TEXTS, clients=CLIENTS, rounds=2)
    assert [one.text for one in answers] == [TEXTS[(client + number) % 2] for client in range(3) for number in (0, 1)]
    assert all(0 < answer.first_byte <= answer.seconds <= seconds for answer in answers)
    for answer in answers:
        wave = served.voice.speak(answer.text).wave
        made = np.frombuffer(answer.body, "<i2").astype(int)
        np.testing.assert_allclose(made, np.frombuffer(pcm16(wave), "<i2"), atol=1)
        assert answer.spoken == pytest.approx(len(wave) / served.voice.sampling_rate)


def test_options_that_the_load_test_does_not_have_go_to_the_server(monkeypatch: pytest.MonkeyPatch):
    load, options = "--clients 7", "--fastpitch v.pt --batch-size 2"
    (words,) = dry_run("scripts/benchmark.sh", "serving", *load.split(), *options.split(), NUM_GPUS="0")
    assert words[:3] == ["py", "-m", "scripts.benchmarks.serving"]
    started: list[list[str]] = []

    def start(command: list[str], **_: object) -> None:
        started.append(command)
        raise KeyboardInterrupt

    monkeypatch.setattr(serving.subprocess, "Popen", start)
    with pytest.raises(KeyboardInterrupt):
        serving.main(words[3:])
    command = " ".join(started[0])
    assert options in command and "--max-queue 14" in command and "--clients" not in command
