"""A tiny voice with a tiny vocoder as checkpoints, and a server of them in a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tiny_jasper
import tiny_vocoder
import tiny_voice
from limits import HANG_LIMIT
from tiny_checkpoint import save_networks

from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.serving.app import Service
from common.serving.arguments import load_models
from common.serving.server import Server, address_of, bind
from common.text.config import TextConfig

AUDIO = tiny_vocoder.ALIGNED
TEXT = TextConfig(cleaners=("basic_cleaners",), speakers=("ann", "bob"))
# Keeps the bodies of answers to requests for speech, as the browser forgets those that are read as a stream.
KEEP_ANSWERS = """
const ask = fetch;
window.answers = [];
window.fetch = async (...request) => {
  const response = await ask(...request);
  if (request[1]?.method === "POST") window.answers.push(response.clone().text().catch(() => ""));
  return response;
};"""


def make_checkpoints(folder: Path) -> None:
    """``voice.pt`` with two speakers, about four frames a letter, and ``vocoder.pt``."""
    model = replace(tiny_voice.MODEL, n_mel_channels=AUDIO.n_mels, energy_conditioning=False)
    tiny_voice.save_voice(folder / "voice.pt", text=TEXT, model=model, audio=AUDIO)
    save_networks(folder / "vocoder.pt", "HiFi-GAN", tiny_vocoder.TINY, tiny_vocoder.tiny_networks(), audio=AUDIO)


def make_with_recognizer(folder: Path) -> None:
    """The same, and ``ear.pt``."""
    make_checkpoints(folder)
    config, weights = tiny_jasper.SMALL, {"jasper": tiny_jasper.small_network().state_dict()}
    save_checkpoint(folder / "ear.pt", Checkpoint("Jasper", config, tiny_jasper.SMALL.features.audio, None, weights))


def served_models(folder: Path, *options: str) -> Any:
    """The models of ``serve.py`` with such options and the checkpoints of a folder."""
    words = ["--fastpitch", str(folder / "voice.pt"), "--hifigan", str(folder / "vocoder.pt"), *options]
    return load_models(words)


@contextmanager
def serving(service: Service, *, deadline: float = HANG_LIMIT) -> Iterator[str]:
    """The address of a service while it serves, on a free port."""
    with stoppable(service, deadline=deadline) as server:
        yield address_of(server.bound)


@contextmanager
def stoppable(service: Service, *, deadline: float = HANG_LIMIT) -> Iterator[Any]:
    """A server of a service, with its socket in ``bound``, which ``should_exit`` stops."""
    bound = bind("127.0.0.1", 0)
    started = threading.Event()
    server = Server(service, deadline=deadline, on_start=started.set)
    thread = threading.Thread(target=partial(server.run, [bound]), daemon=True)
    thread.start()
    try:
        assert started.wait(HANG_LIMIT)
        server.bound = bound
        yield server
    finally:
        server.should_exit = True
        thread.join(HANG_LIMIT)
        assert not thread.is_alive()
