"""What an evaluation measures and shows is what it says: cents, decibels, matched moments, averages."""

import math

import numpy as np
import pytest

from common.errors import AudioError
from common.evaluation.metrics import (
    N_COEFFICIENTS,
    Clip,
    Figures,
    SpeechComparison,
    aligned,
    mean_distortion,
    mel_cepstrum,
    speech_pairs,
)
from common.evaluation.results import (
    MEASURES,
    Result,
    Summary,
    add_likeness,
    add_to_journal,
    find_difference,
    read_journal,
)

RATE = 22050  # Hz


def vowels(f0: float, *, seconds: float = 1.2, pause: float = 0.0) -> np.ndarray:
    """Three vowels on one note, with a pause before the last, in a still envelope each."""
    pieces = []
    for first, second in ((700, 1200), (300, 2300), (450, 900)):
        t = np.arange(round(seconds / 3 * RATE)) / RATE
        wave = np.zeros(len(t))
        for k in range(1, int(4000 / f0)):
            gain = sum(math.exp(-(((k * f0 - formant) / 200) ** 2)) for formant in (first, second)) + 0.01
            wave += gain * np.cos(2 * math.pi * k * f0 * t)
        pieces.append(0.05 * wave)
    pieces.insert(2, np.zeros(round(pause * RATE)))
    return np.concatenate(pieces).astype(np.float32)


def compare(reference: np.ndarray, synthesized: np.ndarray) -> Figures:
    return compared(reference, synthesized).distance


def distortion(reference: np.ndarray, synthesized: np.ndarray) -> float:
    left, right = (np.maximum(one - one.max(), -60 * math.log(10) / 20) for one in (reference, synthesized))
    return mean_distortion(left, right, speech_pairs(left, right))


def compared(reference: np.ndarray, synthesized: np.ndarray) -> SpeechComparison:
    return aligned(Clip(reference, RATE), Clip(synthesized, RATE))


@pytest.mark.parametrize(("cents", "f0"), [(100, 140.0), (-100, 140.0), (100, 220.0), (250, 110.0)])
def test_a_note_so_many_cents_away_is_so_many_cents_away(cents, f0):
    distance = compare(vowels(f0), vowels(f0 * 2 ** (cents / 1200)))
    assert distance["f0_rmse_cents"] == pytest.approx(abs(cents), abs=2)
    assert distance["f0_rmse_hz"] == pytest.approx(f0 * abs(2 ** (cents / 1200) - 1), rel=0.03)
    assert distance["voicing_error"] < 0.05


def test_pairs_and_frames_are_those_that_the_distance_is_of():
    comparison = compared(vowels(140), vowels(150, seconds=1.5))
    left, right, pairs = comparison.reference, comparison.synthesized, comparison.pairs
    total, cents, differ = 0.0, [], 0
    first, second = mel_cepstrum(left.log_mel), mel_cepstrum(right.log_mel)
    for i, j in pairs:
        total += 10 / math.log(10) * math.sqrt(2 * sum((a - b) ** 2 for a, b in zip(first[i], second[j])))
        if left.f0[i] > 0 and right.f0[j] > 0:
            cents.append(1200 * math.log2(right.f0[j] / left.f0[i]))
        differ += (left.f0[i] > 0) != (right.f0[j] > 0)
    distance = comparison.distance
    assert distance == compare(vowels(140), vowels(150, seconds=1.5))
    assert distance["mcd_db"] == pytest.approx(total / len(pairs))
    assert distance["f0_rmse_cents"] == pytest.approx(math.sqrt(sum(value**2 for value in cents) / len(cents)))
    assert distance["voicing_error"] == pytest.approx(differ / len(pairs))


def test_a_wave_is_at_no_distance_from_itself_however_loud_or_padded_with_silence():
    wave = vowels(140)
    same, quiet = compare(wave, wave), compare(wave, 0.1 * wave)
    assert set(same.values()) == {0}
    assert quiet["mcd_db"] < 1e-3 and quiet["f0_rmse_cents"] < 0.1
    padded = np.concatenate([np.zeros(RATE // 2), wave, np.zeros(RATE // 3)])
    assert compare(wave, padded)["mcd_db"] < 0.3


def test_distortion_is_in_decibels_and_slowing_by_repeated_frames_does_not_count():
    log_mel = np.cumsum(np.random.default_rng(1).standard_normal((80, 60)), axis=0) / 8
    uneven = np.repeat(log_mel, np.random.default_rng(2).integers(1, 5, log_mel.shape[1]), axis=1)
    assert distortion(uneven, log_mel) == pytest.approx(0, abs=1e-9)
    rng, position = np.random.default_rng(3), (np.arange(80) + 0.5) / 80
    ripple = sum(rng.normal() * np.cos(math.pi * k * position) for k in range(1, N_COEFFICIENTS + 1)) / 200
    still = np.repeat(log_mel[:, :1], 20, axis=1)
    decibels = math.sqrt(np.mean((20 / math.log(10) * ripple) ** 2))
    assert distortion(still, still + ripple[:, None]) == pytest.approx(decibels, rel=1e-6)


@pytest.mark.parametrize("bad", [np.zeros(0), np.zeros(1000), np.full(1000, np.nan)])
def test_a_wave_that_cannot_be_compared_is_refused(bad):
    with pytest.raises(AudioError):
        compare(vowels(140), bad)


@pytest.fixture
def three() -> list[Result]:
    first = {"wer": 1.0, "n_words": 1, "cer": 0.5, "n_chars": 2, "mcd_db": 2.0, "f0_rmse_cents": 50.0}
    second = {"wer": 0.0, "n_words": 8, "cer": 0.0, "n_chars": 33, "mcd_db": 4.0, "duration": 3.0}
    return [
        Result("a.wav", "Text.", figures=first | {"duration": 1.0, "real_time_factor": 1.0}),
        Result("b.wav", "Text.", figures=second | {"real_time_factor": 0.5 / 3}),
        Result("c.wav", "Text.", error="c: broken", beside=[Result("recording", "Text.", figures={"mcd_db": 0.25})]),
    ]


def test_error_rates_are_those_of_the_whole_list_and_others_means_of_what_is_there(three):
    averages = Summary.of(three).averages
    means = averages[""]
    assert means["wer"] == pytest.approx(1 / 9) and means["cer"] == pytest.approx(1 / 35)
    assert means["mcd_db"] == 3.0
    assert means["f0_rmse_cents"] == 50.0  # b.wav has no frames that are voiced in both
    assert means["real_time_factor"] == pytest.approx(1.5 / 4)
    assert Summary.of([]).averages[""]["mcd_db"] is None and averages["recording"]["mcd_db"] == 0.25


def test_a_journal_gives_back_the_latest_results_without_a_line_that_is_broken(tmp_path, three):
    path = tmp_path / "j"
    assert read_journal(path) == {}
    add_to_journal(path, three[0])
    with path.open("a") as file:
        file.write('\n{"name": "b.wa')
    three[0].error = "a: broken"
    for result in three[1:] + three[:1]:
        add_to_journal(path, result)
    assert read_journal(path) == {result.name: result for result in three}


@pytest.mark.parametrize(("key", "weight"), [("mos", None), ("wer", "n_words")])
def test_an_interval_is_that_of_averages_of_utterances_drawn_in_pairs(key, weight):
    rng = np.random.default_rng(1)
    sides = rng.normal(3, 1, (2, 30)) + rng.normal(0, 2, 30)  # what both share is no difference
    weights = rng.integers(1, 20, 30) if weight else np.ones(30)
    rows = [[{key: value, "n_words": n} for value, n in zip(side, weights)] for side in sides]
    found = find_difference(MEASURES[key], list(zip(*rows)))
    drawn = [rng.integers(30, size=30) for _ in range(4000)]
    slow = [np.average((sides[0] - sides[1])[one], weights=weights[one]) for one in drawn]
    assert found.value == pytest.approx(np.average(sides[0] - sides[1], weights=weights))
    assert (found.low, found.high) == pytest.approx(np.percentile(slow, [2.5, 97.5]), abs=0.1)
    assert found == find_difference(MEASURES[key], list(zip(*rows)))
    same = find_difference(MEASURES[key], [(one, one) for one in rows[0]])
    assert (same.value, same.low, same.high, same.is_clear) == (0, 0, 0, False)


def test_likeness_is_that_to_the_speakers_recordings_of_other_utterances():
    def spoken(name: str, speaker: str, made: list[float], recorded: list[float]) -> Result:
        beside = [Result("recording", "", embedding=recorded)] if recorded else []
        return Result(name, "", speaker=speaker, embedding=made, beside=beside)

    results = [
        spoken("a", "ann", [1.0, 0.0], [1.0, 0.0]),
        spoken("b", "ann", [1.0, 0.0], [0.0, 1.0]),
        spoken("c", "ann", [0.6, 0.8], []),
        spoken("d", "bob", [0.6, 0.8], [0.0, 1.0]),  # his only recording
        spoken("e", "eve", [0.6, 0.8], []),
    ]
    add_likeness(results)
    found = [one.figures.get("likeness") for one in results]
    assert found == [0, 1, pytest.approx(1.4 / math.sqrt(2)), pytest.approx(0.8), None]
    assert [one.figures.get("likeness") for result in results for one in result.beside] == [0, 0, None]
