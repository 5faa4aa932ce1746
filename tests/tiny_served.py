"""A tiny voice with a tiny vocoder as checkpoints, and a server of them in a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import tiny_vocoder
import torch
from limits import HANG_LIMIT

from common.checkpoints import Checkpoint, save_checkpoint
from common.config import TextConfig, to_plain
from common.serving import Server, Service, address_of, bind
from common.serving.arguments import load_models
from fastpitch.config import ModelConfig
from fastpitch.model import build_networks

AUDIO = tiny_vocoder.ALIGNED
TEXT = TextConfig(cleaners=("basic_cleaners",), speakers=("ann", "bob"))
VOICE = ModelConfig(
    symbols_embedding_dim=16,
    in_fft_n_layers=1,
    in_fft_d_head=8,
    in_fft_conv1d_filter_size=24,
    in_fft_output_size=16,
    out_fft_n_layers=1,
    out_fft_d_head=8,
    out_fft_conv1d_filter_size=24,
    out_fft_output_size=16,
    dur_predictor_filter_size=16,
    pitch_predictor_filter_size=16,
    n_speakers=2,
)


def make_checkpoints(folder: Path) -> None:
    """``voice.pt`` with two speakers, about four frames a letter, and ``vocoder.pt``."""
    torch.manual_seed(0)
    network = build_networks(VOICE, AUDIO, TEXT)["fastpitch"]
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.6)
        network.proj.bias.fill_(-4.0)
        network.pitch_mean.fill_(200.0)
        network.pitch_std.fill_(40.0)
    weights = {"fastpitch": network.state_dict()}
    save_checkpoint(folder / "voice.pt", Checkpoint("FastPitch", to_plain(VOICE), AUDIO, TEXT, weights))
    weights = {name: one.state_dict() for name, one in tiny_vocoder.tiny_networks().items()}
    save_checkpoint(folder / "vocoder.pt", Checkpoint("HiFi-GAN", to_plain(tiny_vocoder.TINY), AUDIO, None, weights))


def served_models(folder: Path, *options: str) -> Any:
    """The models of ``serve.py`` with such options and the checkpoints of a folder."""
    words = ["--fastpitch", str(folder / "voice.pt"), "--hifigan", str(folder / "vocoder.pt"), *options]
    return load_models(words)


@contextmanager
def serving(service: Service, *, deadline: float = HANG_LIMIT) -> Iterator[str]:
    """The address of a service while it serves, on a free port."""
    bound = bind("127.0.0.1", 0)
    started = threading.Event()
    server = Server(service, deadline=deadline, on_start=started.set)
    thread = threading.Thread(target=partial(server.run, [bound]), daemon=True)
    thread.start()
    try:
        assert started.wait(HANG_LIMIT)
        yield address_of(bound)
    finally:
        server.should_exit = True
        thread.join(HANG_LIMIT)
        assert not thread.is_alive()
