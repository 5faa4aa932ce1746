"""What is spoken in batches that are padded to a few shapes is the same."""

from pathlib import Path
from typing import Any

import pytest
import torch
from test_combinations import new_networks, save_all

from common.audio.denoiser import BIAS_FRAMES
from common.checkpoints.loading import open_checkpoint
from common.precision import Precision
from common.synthesis.acceleration import PaddedShapes
from common.synthesis.loading import make_voice
from common.synthesis.options import AccelerationOptions, SpeakingOptions, VoiceOptions
from common.synthesis.utterances import SynthesisResult

TEXTS = ("Go on.", "A longer one, by far.", "Hm?", "<speak>So <prosody rate='50%'>slow</prosody> is this.</speak>")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each tiny generator and vocoder."""
    return save_all(tmp_path_factory.mktemp("checkpoints"), new_networks())


class Shapes:
    """A network that keeps the shapes of what its ``infer`` is given."""

    def __init__(self, network: Any, loaded: Any) -> None:
        self.network, self.seen = network, []
        self.infer_of = network.infer

    def infer(self, *given: Any, **settings: Any) -> Any:
        if given[0].size(-1) != BIAS_FRAMES:  # of the denoiser, once
            assert given[1] is not None, "one form of a shape: with lengths"
            self.seen.append(tuple(given[0].shape))
        return self.infer_of(*given, **settings)


@pytest.mark.parametrize(("generator", "vocoder"), [("FastPitch", "HiFi-GAN"), ("Tacotron2", "WaveGlow")])
def test_what_is_spoken_in_padded_shapes_is_the_same(
    generator: str, vocoder: str, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    def speak(n_buckets: int, n_texts: int) -> tuple[list[SynthesisResult], Shapes | None, Shapes | None]:
        made: list[Shapes] = []

        def accelerate(network: Any, loaded: Any, options: VoiceOptions) -> Shapes:
            made.append(Shapes(network, loaded))
            return made[-1]

        options = VoiceOptions(
            SpeakingOptions(denoising_strength=0.1),
            acceleration=AccelerationOptions(length_buckets=n_buckets),
            batch_size=8,
        )
        opened = [open_checkpoint(paths[name], ema=True) for name in (generator, vocoder)]
        with monkeypatch.context() as patched:
            if n_buckets:
                patched.setattr("common.synthesis.loading.accelerated", accelerate)
            voice = make_voice(*opened, options, precision=Precision())
        items = [item for text in TEXTS[:n_texts] for item in voice.plan(text)]
        return [*voice.synthesizer.synthesize(items)], *(made or (None, None))

    for n_texts in (3, 4, 1):
        expected, *_ = speak(0, n_texts)
        results, of_text, of_mel = speak(64, n_texts)
        assert len(results) == len(expected) >= n_texts
        (read,) = of_text.seen
        assert read[0] in (1, 4, 8) and read[1] % 8 == 0
        assert all(mel[0] == 1 and mel[2] % 32 == 0 for mel in of_mel.seen)
        for ours, theirs in zip(results, expected):
            torch.testing.assert_close(ours.mel, theirs.mel, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(ours.wave, theirs.wave, rtol=1e-4, atol=1e-5)
            assert torch.equal(ours.frames_of_symbols(), theirs.frames_of_symbols())


def test_shapes_of_inference_are_evenly_spaced_and_batches_grow_by_doubling():
    shapes = PaddedShapes(8, 12)
    assert PaddedShapes.of(VoiceOptions()) is None
    assert [shapes.symbols(n) for n in (1, 64, 65, 512, 513)] == [64, 64, 128, 512, 576]
    assert shapes.frame_step == 256
    assert [shapes.rows(n) for n in (1, 2, 3, 5, 8, 9, 12, 20)] == [1, 2, 4, 8, 8, 12, 12, 20]
