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


def test_the_real_time_factor_is_per_utterance_and_that_of_the_batch_is_for_all_of_it():
    figures = summary(BATCHES[:2])
    speech = 896000 / 22050  # s
    assert figures["avg_RTF@4"] == pytest.approx(speech / 1.25)
    assert figures["avg_RTF"] == pytest.approx(speech / 1.25 / 4)
