"""Many clients at once: every answer of the server comes back, and is as the voice speaks it."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import tiny_served
from limits import HANG_LIMIT
from shell import dry_run

from common.audio import pcm16
from common.serving import Limits, Service

TEXTS = ("go on", "a longer sentence, of several words")


def test_every_answer_comes_back_and_is_as_the_voice_speaks_it(make_once):
    folder = make_once("served_for_load", tiny_served.make_checkpoints)
    models = tiny_served.served_models(folder)

    def speak(text: str) -> bytes:
        with closing(http.client.HTTPConnection(host, timeout=HANG_LIMIT)) as connection:
            body = json.dumps({"input": text, "response_format": "pcm"})
            connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200
            return response.read()

    with tiny_served.serving(Service(models, limits=Limits(max_queue=6, deadline=HANG_LIMIT))) as address:
        host = address.removeprefix("http://").rstrip("/")
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(speak, TEXTS * 3))
    for text, answer in zip(TEXTS * 3, answers, strict=True):
        expected = np.frombuffer(pcm16(models.voice.speak(text).wave), "<i2").astype(int)
        np.testing.assert_allclose(np.frombuffer(answer, "<i2").astype(int), expected, atol=1)


def test_the_script_serves_what_its_variables_name():
    variables = {"TACOTRON2": "t.pt", "WAVEGLOW": "w.pt", "JASPER": "j.pt", "AMP": "true", "NUM_GPUS": "0"}
    (words,) = dry_run("scripts/serve.sh", "--port", "90", **variables)
    assert words[1:] == "serve.py --tacotron2 t.pt --waveglow w.pt --jasper j.pt --amp --port 90".split()
