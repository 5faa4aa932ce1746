"""Batches and files of inference."""

from pathlib import PurePosixPath

import pytest
import torch

from common.audio.wav import load_wav
from common.config import AudioConfig
from common.synthesis.options import CommandOptions
from common.synthesis.output_folder import OutputFolder
from common.synthesis.utterances import Phrase, SynthesisInput, SynthesisResult, envelope, plan_batches

AUDIO = AudioConfig(hop_length=64, n_mels=8)


def phrase(name: str = "a.wav") -> Phrase:
    return Phrase(where="list:1", output=PurePosixPath(name), text="x")


def test_batches_are_length_bucketed_and_hold_every_utterance_once():
    lengths = torch.randint(1, 50, (23,), generator=torch.Generator().manual_seed(0)).tolist()
    utterances = [SynthesisInput(phrase(f"{i}.wav"), tokens=torch.zeros(n)) for i, n in enumerate(lengths)]
    batches = plan_batches(utterances, 5)
    assert [len(batch) for batch in batches] == [5, 5, 5, 5, 3]
    assert [utterance.length for batch in batches for utterance in batch] == sorted(lengths, reverse=True)
    assert {utterance.phrase.output for batch in batches for utterance in batch} == {
        u.phrase.output for u in utterances
    }


def test_the_end_fades_linearly_to_silence_and_the_rest_stays():
    def factors(fade_out: int) -> list[float] | None:
        result = SynthesisResult(SynthesisInput(phrase()), torch.zeros(8, 5))
        found = envelope(result, hop_length=2, fade_out=fade_out)
        return None if found is None else found.tolist()

    assert factors(2) == pytest.approx([1, 1, 1, 1, 1, 1, 1, 2 / 3, 1 / 3, 0])
    assert factors(99) == pytest.approx([1 - i / 9 for i in range(10)])
    assert factors(0) is None


def test_a_wave_beyond_full_scale_is_scaled_and_a_quiet_one_stays_quiet(tmp_path):
    folder = OutputFolder(CommandOptions(text="x", output=tmp_path), AUDIO)
    wave = torch.sin(torch.arange(2000) / 10)
    for name, scale, peak in (("loud.wav", 3.0, 1.0), ("sub/quiet.wav", 0.25, 0.25)):
        folder.add(SynthesisResult(SynthesisInput(phrase(name)), torch.zeros(8, 4), wave * scale))
        written = load_wav(tmp_path / name, sampling_rate=22050)
        torch.testing.assert_close(written, wave / wave.abs().max() * peak, rtol=0, atol=2e-4)
    assert folder.n_written == 2
