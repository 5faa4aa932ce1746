"""A text said as a recording of it is said: its lengths and its melody are the recording's, in the voice's range."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from shell import ROOT

import inference
from common.audio.pitch import AT_FRAMES, estimate_pitch
from common.errors import AudioError, InputError, OptionError
from common.nn.alignment import warping_path
from common.synthesis.imitation import _without_silence, imitate, load_recording
from common.synthesis.loading import load_voice
from common.synthesis.voice import Voice

VOICES = ROOT / "voices"
CLIP = "LJ001-0074"  # held back from the shipped voice's training


@pytest.fixture(scope="module")
def voice() -> Voice:
    """The shipped voice, whose vocoder says exactly the pitch that it is told."""
    voice = load_voice(VOICES / "en-small.pt", vocoder=VOICES / "vocoder-small.pt")
    return voice.with_synthesizer(vocoder_pitch="voice")


class WithoutAligner:
    """A network that cannot find symbols in a recording."""

    def __init__(self, network) -> None:
        self._network, self.align = network, None

    def __getattr__(self, name: str):
        return getattr(self._network, name)


def contour(wave: torch.Tensor, n_frames: int, voice: Voice) -> np.ndarray:
    return estimate_pitch(wave.numpy(), voice.audio, n_frames=n_frames, method=AT_FRAMES)


@pytest.mark.parametrize("has_aligner", [True, False])
def test_the_melody_of_a_held_back_recording_is_heard_in_what_is_said_like_it(voice: Voice, shared_data, has_aligner):
    source = shared_data / "LJSpeech-sample"
    rows = (line.split("|") for line in (source / "metadata.csv").read_text(encoding="utf-8").splitlines())
    text = next(row[1] for row in rows if row[0] == CLIP)
    wave = load_recording(source / f"wavs/{CLIP}.wav", sampling_rate=voice.sampling_rate)
    voice = voice if has_aligner else voice.with_synthesizer(network=WithoutAligner(voice.synthesizer.network))
    speech = voice.join(voice.synthesizer.speak_inputs(imitate(voice.plan(text), wave, voice, where=CLIP)).parts)
    n_frames = speech.mel.size(1)
    n_recorded = len(wave) // voice.audio.hop_length
    said, recorded = contour(speech.wave, n_frames, voice), contour(wave, n_recorded, voice)
    assert n_recorded - 30 < n_frames <= n_recorded + 1, "only the silence at the ends is left out"
    both = (said > 0) & (recorded[:n_frames] > 0)  # the recording begins with less silence than is kept
    assert both.sum() > 0.8 * (recorded > 0).sum()
    assert np.corrcoef(said[both], recorded[:n_frames][both])[0, 1] > 0.9
    symbols = [one for utterance in speech.prosody.utterances for one in utterance.symbols]
    logs = np.log([one.pitch for one in symbols if one.pitch])
    own = np.log(float(voice.synthesizer.network.pitch_mean[0]))
    assert abs(np.average(logs, weights=[one.frames for one in symbols if one.pitch]) - own) < 0.15


def test_a_voice_that_speaks_like_itself_has_the_lengths_and_the_melody_it_had(voice: Voice):
    text = "Hello there, how are you? This is a second sentence."
    speech = voice.speak(text, pace=0.8, pitch=0.8)
    items = imitate(voice.plan(text), speech.wave, voice, where="own")
    assert len(items) == len(speech.parts) == 2
    for part, item in zip(speech.parts, items):
        words = [(word.start, word.end) for word in item.words]
        frames, durations = part.frames_of_symbols(), item.durations
        pairs = [(float(frames[a:b].sum()), float(durations[a:b].sum())) for a, b in words]
        assert np.corrcoef(np.array(pairs).T)[0, 1] > 0.9
    seconds = sum(float(one.durations.sum()) * 256 / 22050 + one.lead + one.pause for one in items)
    assert seconds == pytest.approx(len(speech.wave) / 22050, abs=0.4)


def test_a_warping_path_is_the_cheapest_of_all_paths():
    costs = np.random.default_rng(0).random((4, 5))

    def all_paths(row: int, column: int):
        if (row, column) == (3, 4):
            yield [(row, column)]
        for step in product((0, 1), repeat=2):
            if any(step) and row + step[0] < 4 and column + step[1] < 5:
                yield from ([(row, column), *rest] for rest in all_paths(row + step[0], column + step[1]))

    best = min(all_paths(0, 0), key=lambda path: sum(costs[place] for place in path))
    assert warping_path(costs).tolist() == [list(place) for place in best]
    assert warping_path(np.ones((1, 3))).tolist() == [[0, 0], [0, 1], [0, 2]]


def test_silence_around_an_utterance_becomes_a_pause_and_no_symbol_is_lost():
    is_loud = np.array([False] * 9 + [True] * 4 + [False] * 20)
    frames, lead, pause = _without_silence(np.array([8, 5, 20]), is_loud)
    assert (frames.tolist(), lead, pause) == ([4, 5, 5], 4, 15)
    frames, lead, pause = _without_silence(np.array([0, 33, 0]), is_loud)
    assert (frames.tolist(), lead, pause) == ([0, 33, 0], 0, 0)


def test_recordings_of_nothing_are_refused_in_one_line(voice: Voice, tmp_path: Path):
    items = voice.plan("Hello there.")
    noise = 0.1 * torch.randn(22050, generator=torch.Generator().manual_seed(0))
    for wave, message in (
        (torch.zeros(22050), "no pitch is found"),
        (noise, "no pitch is found"),
        (noise[:3000], "frames of speech for 14 symbols"),
        (noise[:300], "too short"),
    ):
        with pytest.raises(InputError, match=message):
            imitate(items, wave, voice, where="a.wav")
    soundfile.write(tmp_path / "long.wav", np.zeros(22050), 22050)
    with pytest.raises(AudioError, match=r"long.wav: longer than 0.5 s"):
        load_recording(tmp_path / "long.wav", sampling_rate=22050, max_seconds=0.5)


@pytest.mark.parametrize("other", [["--prosody", "a.prosody.json"], ["-i", "phrases.tsv"]])
def test_a_recording_is_of_one_text(other: list[str]):
    with pytest.raises(OptionError, match=r"--like me\.wav: a recording of one text; give the text by --text"):
        inference.main([*other, "--like", "me.wav", "-o", "out"])


def test_the_shell_says_a_text_like_a_recording_of_any_kind(voice: Voice, tmp_path: Path):
    wave = voice.speak("Hello there.", pace=0.7).wave
    soundfile.write(tmp_path / "me.flac", wave.numpy(), 22050)
    models = ["--fastpitch", str(VOICES / "en-small.pt"), "--harmonic", str(VOICES / "vocoder-small.pt")]
    words = ["--text", "Hello there.", "-o", str(tmp_path / "out.wav"), "--save-prosody"]
    assert inference.main([*models, *words, "--like", str(tmp_path / "me.flac")]) == 0
    said, _ = soundfile.read(tmp_path / "out.wav")
    assert 0.7 * len(wave) < len(said) < 1.05 * len(wave), "only the silence at the ends is left out"
    table = str(tmp_path / "out.prosody.json")
    again = ["--prosody", table, "-o", str(tmp_path / "again.wav"), "--vocoder-pitch", "voice"]
    assert inference.main([*models, *again]) == 0
    assert np.abs(soundfile.read(tmp_path / "again.wav")[0] - said).max() < 1e-3, "the table says the same"
