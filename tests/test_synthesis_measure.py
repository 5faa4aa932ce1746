"""The figures of inference: latencies with their intervals, throughputs and real-time factors."""

import numpy as np
import pytest
from scipy.stats import norm

from common.synthesis.measurements import BatchTimes, Measurements

BATCHES = [
    BatchTimes(n_utterances=4, n_tokens=400, n_frames=2000, n_samples=512000, generator=0.2, vocoder=0.5),
    BatchTimes(n_utterances=4, n_tokens=300, n_frames=1500, n_samples=384000, generator=0.1, vocoder=0.45),
    BatchTimes(n_utterances=1, n_tokens=60, n_frames=300, n_samples=76800, generator=0.04, vocoder=0.1),
]


def summary(batches: list[BatchTimes]) -> dict[str, float]:
    return Measurements(sampling_rate=22050, batch_size=4, vocoder_name="griffin_lim", batches=batches).summary()


def test_latency_intervals_are_those_of_a_normal_distribution():
    figures = summary(BATCHES)
    for stage, times in {
        "": np.array([0.7, 0.55, 0.14]),
        "generator_": np.array([0.2, 0.1, 0.04]),
        "griffin_lim_": np.array([0.5, 0.45, 0.1]),
    }.items():
        assert figures[f"avg_{stage}latency"] == pytest.approx(times.mean())
        for percent in (90, 95, 99):
            expected = times.mean() + norm.ppf((1 + percent / 100) / 2) * times.std()
            assert figures[f"{percent}%_{stage}latency"] == pytest.approx(expected)


def test_throughputs_count_what_was_made_over_the_time_of_their_stage():
    figures = summary(BATCHES)
    assert figures["avg_generator_frames/s"] == pytest.approx(3800 / 0.34)
    assert figures["avg_generator_tokens/s"] == pytest.approx(760 / 0.34)
    assert figures["avg_griffin_lim_samples/s"] == pytest.approx(972800 / 1.05)
    assert figures["avg_griffin_lim_frames/s"] == pytest.approx(3800 / 1.05)
    assert figures["avg_samples/s"] == pytest.approx(972800 / 1.39)
    assert figures["avg_letters/s"] == pytest.approx(760 / 1.39)


def test_the_real_time_factor_is_per_utterance_and_that_of_the_batch_is_for_all_of_it():
    figures = summary(BATCHES[:2])
    speech = 896000 / 22050  # s
    assert figures["avg_RTF@4"] == pytest.approx(speech / 1.25)
    assert figures["avg_RTF"] == pytest.approx(speech / 1.25 / 4)


def test_a_stage_that_did_not_run_has_no_figures():
    only_mels = [BatchTimes(n_utterances=1, n_tokens=9, n_frames=30, n_samples=7680, generator=0.1, vocoder=None)]
    stages = {name.partition("_")[2].rpartition("_")[0] for name in summary(only_mels)}
    assert stages == {"generator", "mel_gen"}
    given_mels = [BatchTimes(n_utterances=1, n_tokens=0, n_frames=30, n_samples=7680, generator=None, vocoder=0.1)]
    assert not any("generator" in name or name == "avg_latency" for name in summary(given_mels))
    assert summary([]) == {}
