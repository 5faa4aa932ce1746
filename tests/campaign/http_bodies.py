"""One HTTP request to a server of tiny models in this process; an answer 4xx is a refusal, as a command's status 1."""

import sys
from pathlib import Path

from starlette.testclient import TestClient

from common.serving import Limits, Service
from common.serving.arguments import load_models


def main() -> int:
    """Send ``path content-type body-file voice vocoder recognizer`` of the command line."""
    path, kind, body, voice, vocoder, recognizer = sys.argv[1:]
    models = load_models(["--fastpitch", voice, "--hifigan", vocoder, "--jasper", recognizer])
    with TestClient(Service(models, limits=Limits()).gate, raise_server_exceptions=True) as client:
        answer = client.post(path, content=Path(body).read_bytes(), headers={"Content-Type": kind})
    if answer.status_code >= 400:
        error = answer.json()["error"]
        print(f"error: {error['message']}", file=sys.stderr)
    return {2: 0, 4: 1}.get(answer.status_code // 100, answer.status_code)
