"""Speaks by a Triton Inference Server with a repository of scripts/make_triton_repository.sh: numpy alone.

    python -m scripts.demos.triton_client "hello, {W ER1 L D} again!" -o hello.wav --pace 1.1

What text it reads, onnx_speaker.py says. The server says what voice it has, so no file of it is needed here. Requests
are in the KServe protocol (HTTP), with tensors in binary: JSON has no NaN, which stands for what the voice predicts.
"""

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.request
from typing import Any

import numpy as np

from scripts.demos.onnx_speaker import METADATA_KEY, Speaker, add_arguments, number, speak_to_file

TYPES = {"INT64": np.dtype("<i8"), "FP32": np.dtype("<f4")}  # KServe's -> numpy's
PADDED_TO = 16  # tokens
# What follows an utterance's last token; the others are 0. A pace of 0 would divide by it.
PADDING = {"pace": 1.0, "durations": np.nan, "pitch": np.nan, "energy": np.nan}


class TritonSpeaker(Speaker):
    """A voice and a vocoder in a Triton Inference Server."""

    def __init__(
        self, url: str, *, model: str = "speech", padded_to: int | None = None, timeout: float | None = None
    ) -> None:
        """``model`` is the ensemble's name; ``timeout`` in seconds, None: none.

        Requests are run together where they have equal numbers of tokens, so these are padded to multiples of
        ``padded_to``, which changes nothing else. None: `PADDED_TO`, and 1 for a voice that padding does change.

        Raises:
            ValueError: there is no such server or model, or it is another program's.
        """
        self._url, self._timeout, self._model = url.rstrip("/"), timeout, model
        config = self._get(f"v2/models/{model}/config")
        try:
            about = json.loads(config["parameters"][METADATA_KEY]["string_value"])
            self._voice = config["ensemble_scheduling"]["step"][0]["model_name"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{url}: model {model} is not of scripts/make_triton_repository.sh") from error
        super().__init__(about)
        is_masked = about["config"]["model"].get("mask_convolutions", True)
        self._padded_to = padded_to or (PADDED_TO if is_masked else 1)

    def run_voice(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As `Speaker.run_voice`."""
        made = self._infer(self._voice, inputs, outputs=list(self.about["outputs"]))
        n_tokens = inputs["tokens"].shape[1]
        per_token = [name for name, shape in self.about["outputs"].items() if shape[1:] == ["tokens"]]
        return made | {name: made[name][:, :n_tokens] for name in per_token}

    def make_sound(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """As `Speaker.make_sound`."""
        made = self._infer(self._model, inputs, outputs=["wave", "mel_lengths"])
        # The sound is as long as the longest of the requests that were run together.
        return made["wave"][0, : int(made["mel_lengths"][0, 0]) * self.audio["hop_length"]].copy()

    def tensors(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The voice's inputs as they are sent, (1, L, ...) with more tokens to a multiple of what is padded to."""
        sent = {}
        for name, value in inputs.items():
            if value.ndim == 1:  # the server knows no tensor of the batch alone
                sent[name] = value[:, None]
                continue
            widths = [(0, 0), (0, -value.shape[1] % self._padded_to)] + [(0, 0)] * (value.ndim - 2)
            sent[name] = np.pad(value, widths, constant_values=PADDING.get(name, 0))
        return sent

    def _infer(self, model: str, inputs: dict[str, np.ndarray], *, outputs: list[str]) -> dict[str, np.ndarray]:
        """Outputs by their names, with a batch of one."""
        described, blocks = [], []
        for name, value in self.tensors(inputs).items():
            datatype = next(kind for kind, dtype in TYPES.items() if dtype == value.dtype)
            blocks.append(value.astype(TYPES[datatype]).tobytes())
            described.append(
                {
                    "name": name,
                    "shape": list(value.shape),
                    "datatype": datatype,
                    "parameters": {"binary_data_size": len(blocks[-1])},
                }
            )
        wanted = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
        header = json.dumps({"inputs": described, "outputs": wanted}).encode()
        return self._post(f"v2/models/{model}/infer", header, b"".join(blocks))

    def _post(self, path: str, header: bytes, tensors: bytes) -> dict[str, np.ndarray]:
        """The tensors that the server answers with."""
        content = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))}
        body, headers = self._request(path, data=header + tensors, headers=content)
        made, place = {}, int(headers.get("Inference-Header-Content-Length", len(body)))
        try:
            for tensor in json.loads(body[:place])["outputs"]:
                end = place + tensor["parameters"]["binary_data_size"]
                values = np.frombuffer(body[place:end], TYPES[tensor["datatype"]])
                made[tensor["name"]], place = values.reshape(tensor["shape"]), end
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self._url}: an answer that is no tensors in binary ({error!r})") from error
        return made

    def _get(self, path: str) -> dict[str, Any]:
        """An object in JSON that the server has."""
        body, _ = self._request(path)
        try:
            return json.loads(body)
        except ValueError as error:
            raise ValueError(f"{self._url}: answers without JSON; is it a Triton Inference Server?") from error

    def _request(self, path: str, **content: Any) -> tuple[bytes, Any]:
        """The body and the headers of an answer."""
        try:
            request = urllib.request.Request(f"{self._url}/{path}", **content)
            with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                return answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            raise ValueError(f"{self._url}: {_message(error)} (status {error.code} of {path})") from error
        except (OSError, ValueError, http.client.HTTPException) as error:  # of urllib, sockets, and no URL at all
            reason = getattr(error, "reason", error)
            raise ValueError(f"{self._url}: no answer ({reason}); is Triton running there?") from error


def _message(error: urllib.error.HTTPError) -> str:
    """What a server says of an error, on one line."""
    body = error.read().decode("utf-8", "replace")
    try:
        body = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        body = body[:200] or error.reason
    return " ".join(str(body).split())


def main(argv: list[str] | None = None) -> int:
    """Speak one text into a WAV file."""
    parser = argparse.ArgumentParser(prog="triton_client.py", description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser)
    parser.add_argument("--url", default="http://localhost:8000", help="of Triton's HTTP service")
    parser.add_argument("--model", default="speech", help="name of the ensemble")
    text = "pad the tokens to a multiple of it: requests of equal numbers are run together (default: 16, and 1 for "
    parser.add_argument(
        "--pad-tokens", type=number(1, 10000, int), metavar="N", help=f"{text}a voice whose sound depends on padding)"
    )
    parser.add_argument("--timeout", type=number(0.001, 1e6), default=60.0, help="seconds to wait for an answer")
    args = parser.parse_args(argv)
    options = {"model": args.model, "padded_to": args.pad_tokens, "timeout": args.timeout}
    return speak_to_file(parser, args, lambda: TritonSpeaker(args.url, **options))


if __name__ == "__main__":
    sys.exit(main())
