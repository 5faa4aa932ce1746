"""Listening tests: the page in a real browser, sounds of one loudness, and figures that were worked out by hand."""

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from limits import HANG_LIMIT
from tiny_evaluation import AUDIO, Tiny, make_checkpoints, save_vocoder, write_recordings

from common.audio.loudness import CEILING, measure_loudness
from common.errors import InputError, OptionError
from common.evaluation import evaluator, packages
from common.evaluation.listening import (
    ANCHOR,
    LISTENING_KEY,
    LISTENING_PAGE,
    ListeningKey,
    Wave,
    low_anchor,
    match_loudness,
    write_listening_test,
)
from common.evaluation.listening_results import LISTENING_RESULTS, mean_interval, preference, report_results
from common.evaluation.results import RECORDING, RESULTS
from common.files import write_json
from scripts import evaluate_voice

LIMIT = 1000 * HANG_LIMIT  # ms
NAMES = ("a.wav", "b.wav")


@pytest.fixture(scope="module")
def browser() -> Iterator:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    playwright.expect.set_options(timeout=LIMIT)
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=LIMIT)
        yield browser
        browser.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An evaluation of two utterances with recordings, and beside it other/, a folder of sounds."""
    for name in ("out/synthesised", "out/recorded", "other"):
        write_recordings(tmp_path / name, NAMES)
    rows = [{"name": name, "text": f"This is {name}.", "recording": name, "error": None} for name in NAMES]
    write_json(tmp_path / "out" / RESULTS, {"utterances": rows})
    return tmp_path / "out"


def write_test(folder: Path, kind: str) -> ListeningKey:
    write_listening_test(folder, kind, {"voice.pt": folder, "other": folder.parent / "other"})
    return ListeningKey.read(folder)


class Listener:
    """The page, opened from the disk by one listener."""

    def __init__(self, browser, folder: Path, *, name: str = "Ann 7", width: int = 1000) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        self.page.set_default_timeout(LIMIT)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url.partition(":")[0]))
        self.page.goto((folder / LISTENING_PAGE).as_uri())
        self.page.fill("#listener", name)
        self.page.keyboard.press("Enter")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def hear(self, number: int) -> None:
        self.press(str(number))
        button = self.page.locator("#sounds .play").nth(number - 1)
        button.and_(self.page.locator(".heard")).wait_for()

    def order(self) -> list:
        return self.page.evaluate("state.order.map((trial) => [trial.name, trial.sounds])")

    def save(self) -> dict:
        with self.page.expect_download() as download:
            self.page.click("#save")
        return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


def rate_by_keys(listener: Listener, key: ListeningKey) -> None:
    """Give the hidden reference 100, the anchor 0, the voice 55 and the other one 40, of the trial that is shown."""
    presses = {RECORDING: ["End"], ANCHOR: ["Home"], "voice.pt": 5 * ["ArrowRight"], "other": 10 * ["ArrowLeft"]}
    name, sounds = listener.page.evaluate("[state.trial.name, state.trial.sounds]")
    listener.press("r")
    for number, sound in enumerate(sounds, 1):
        listener.hear(number)
        listener.press(*presses[key.trials[name].sounds[sound]])


@pytest.mark.parametrize("width", [1000, 380])
def test_a_listener_rates_by_keys_and_saves_what_the_command_reads(browser, folder, tmp_path, capsys, width):
    key = write_test(folder, "mushra")
    listener = Listener(browser, folder, width=width)
    page = listener.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    listener.press("Enter")
    assert page.inner_text("#missing") == "Please listen to sounds 1, 2, 3, 4."
    listener.hear(2)
    listener.press("Enter")
    assert page.inner_text("#missing") == "Please listen to sounds 1, 3, 4."
    rate_by_keys(listener, key)
    listener.press("Enter")
    order = listener.order()
    page.reload()
    assert page.inner_text("#place") == "2 of 2" and listener.order() == order
    page.click("#back")
    assert sorted(page.locator("output").all_inner_texts(), key=int) == ["0", "40", "55", "100"]
    listener.press("Enter")
    rate_by_keys(listener, key)
    listener.press("Enter")
    result = listener.save()
    assert listener.errors == [] and set(listener.requests) <= {"file", "data", "blob"}
    write_json(tmp_path / "results" / "ann.json", result)
    assert evaluate_voice.main(["--results", str(tmp_path / "results"), "-o", str(folder)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-6:-1]]
    assert [row[:2] for row in rows[1:]] == [
        [RECORDING, "100.0"],
        ["voice.pt", "55.0"],
        ["other", "40.0"],
        [ANCHOR, "0.0"],
    ]


def test_a_listener_prefers_one_of_two_by_keys(browser, folder):
    key = write_test(folder, "ab")
    listener = Listener(browser, folder)
    order = listener.order()
    for name, (first, second) in order:
        listener.hear(1)
        listener.press("Enter")
        assert listener.page.inner_text("#missing") == "Please listen to B."
        listener.hear(2)
        listener.press("Enter")
        assert listener.page.inner_text("#missing") == "Please choose one of the three."
        systems = key.trials[name].sounds
        keys = {first: "ArrowLeft", second: "ArrowRight"}
        best = [sound for sound in (first, second) if systems[sound] == RECORDING]
        listener.press(keys[best[0]] if best else "ArrowDown", "Enter")
    result = listener.save()
    expected = {
        name: {sound: int(one == RECORDING) for sound, one in trial.sounds.items()}
        for name, trial in key.trials.items()
    }
    assert (result["listener"], result["test"], result["answers"]) == ("Ann 7", key.test, expected)


def test_each_listener_has_an_order_of_their_own_and_always_the_same(browser, folder):
    write_test(folder, "ab")
    ann, again, bob = (Listener(browser, folder, name=name).order() for name in ("Ann", " Ann ", "Bob"))
    assert ann == again != bob
    assert sorted(name for name, _ in ann) == sorted(name for name, _ in bob)


def test_the_page_says_nothing_of_the_systems(folder):
    key = write_test(folder, "mushra")
    html = (folder / LISTENING_PAGE).read_text(encoding="utf-8")
    assert not any(word in html for word in ("voice.pt", "synthesised", ANCHOR, RECORDING, str(folder)))
    assert key.systems == ["voice.pt", "other", RECORDING, ANCHOR]
    assert write_test(folder, "mushra") == key  # results stay valid when the page is written again


def test_sounds_of_a_trial_have_one_loudness_and_no_peak_is_cut():
    time = np.arange(22050) / 22050
    waves = {f"{level}": Wave(level * np.sin(2 * np.pi * 500 * time), 22050) for level in (0.01, 0.9)}
    peaky = 0.01 * np.sin(2 * np.pi * 500 * time)
    peaky[11000] = 1.0
    matched = match_loudness(waves)
    assert [measure_loudness(one.samples, 22050) for one in matched.values()] == pytest.approx([-23, -23], abs=0.01)
    matched = match_loudness(waves | {"peaky": Wave(peaky, 22050)})
    first, *others = [measure_loudness(one.samples, 22050) for one in matched.values()]
    assert others == pytest.approx([first, first], abs=0.01) and first < -30
    assert np.abs(matched["peaky"].samples).max() == pytest.approx(10 ** (CEILING / 20))


@pytest.mark.parametrize("rate", [8000, 22050, 44100])
def test_the_anchor_keeps_3500_hz_and_has_nothing_above_4000(rate):
    times = np.arange(rate) / rate
    middle = slice(rate // 4, -rate // 4)

    def gain(frequency: float) -> float:  # dB
        tone = np.sin(2 * np.pi * frequency * times)
        passed = low_anchor(Wave(tone, rate)).samples
        assert passed.shape == tone.shape
        return 10 * np.log10(np.mean(passed[middle] ** 2) / np.mean(tone[middle] ** 2))

    assert gain(200) == pytest.approx(0, abs=0.1) and gain(3450) == pytest.approx(0, abs=0.1)
    assert gain(3990) < -25
    assert rate == 8000 or (gain(4010) < -25 and gain(4500) < -50)


def test_intervals_are_those_worked_out_by_hand():
    half = 4.302653 * 10 / np.sqrt(3)  # t of 2 degrees of freedom; the standard deviation is 10
    assert mean_interval([60, 70, 80]) == pytest.approx((70, 70 - half, 70 + half), rel=1e-6)
    assert mean_interval([60])[0] == 60 and np.isnan(mean_interval([60])[1:]).all()
    z = 1.959964  # Wilson: (k + z^2/2 +- z sqrt(k (n - k) / n + z^2/4)) / (n + z^2), of k = 8, n = 10
    middle, half = (8 + z**2 / 2) / (10 + z**2), z * np.sqrt(8 * 2 / 10 + z**2 / 4) / (10 + z**2)
    found = preference(8, 2)
    assert found == pytest.approx(
        {"share": 0.8, "low": middle - half, "high": middle + half, "p": 2 * 56 / 1024}, rel=1e-5
    )
    assert preference(0, 0) == {}


SYSTEMS = ["new", "old", RECORDING, ANCHOR]


def make_key(folder: Path, kind: str, n_trials: int) -> ListeningKey:
    """Write the key of a test; sounds have the systems' names, with a number."""
    systems = SYSTEMS if kind == "mushra" else SYSTEMS[:2]
    trials = {
        f"t{n}": {"utterance": f"{n}.wav", "sounds": {f"{one} {n}": one for one in systems}} for n in range(n_trials)
    }
    write_json(folder / LISTENING_KEY, {"test": "this", "kind": kind, "systems": systems, "trials": trials})
    return ListeningKey.read(folder)


def write_result(path: Path, key: ListeningKey, scores: list[list[float]], **values: object) -> None:
    """Write a listener's file; ``scores`` are those of the systems of each trial."""
    answers = {name: dict(zip(trial.sounds, row)) for (name, trial), row in zip(key.trials.items(), scores)}
    write_json(path, {"test": "this", "listener": path.stem, "answers": answers} | values)


def test_mushra_is_over_listeners_without_those_who_miss_the_hidden_reference(tmp_path, capsys):
    key = make_key(tmp_path, "mushra", 4)
    good = {"ann": 60, "bob": 70, "cy": 80}
    for name, score in good.items():
        rows = [[score + part, 40, 95, 10] for part in (-5, 5, 0, 0)]
        write_result(tmp_path / "in" / f"{name}.json", key, rows)
    write_result(tmp_path / "in" / "deaf.json", key, [[0, 100, 80, 100], *3 * [[0, 100, 95, 100]]])
    assert report_results(tmp_path, tmp_path / "in") == 0
    out = capsys.readouterr().out
    assert "deaf: 25% of the hidden references below 90; not counted" in out and "mushra: 3 of 4 listeners" in out
    table = [line.split("\t") for line in (tmp_path / LISTENING_RESULTS).read_text().splitlines()]
    assert table == [
        ["system", "mean", "95 % from", "to"],
        [RECORDING, "95.0", "95.0", "95.0"],
        ["new", "70.0", "45.2", "94.8"],
        ["old", "40.0", "40.0", "40.0"],
        [ANCHOR, "10.0", "10.0", "10.0"],
    ]


def test_one_missed_hidden_reference_of_seven_is_forgiven_and_nobody_left_is_an_error(tmp_path):
    key = make_key(tmp_path, "mushra", 7)
    write_result(tmp_path / "in" / "ann.json", key, [[50, 50, 89, 0], *6 * [[50, 50, 90, 0]]])
    assert report_results(tmp_path, tmp_path / "in") == 0
    write_result(tmp_path / "in" / "ann.json", key, [*2 * [[50, 50, 89, 0]], *5 * [[50, 50, 90, 0]]])
    with pytest.raises(InputError, match="none of 1 listeners can be counted"):
        report_results(tmp_path, tmp_path / "in")


def test_preferences_are_counted_by_pair(tmp_path):
    key = make_key(tmp_path, "ab", 6)
    write_result(tmp_path / "in" / "ann.json", key, [*4 * [[1, 0]], [0, 1], [0, 0]])
    write_result(tmp_path / "in" / "bob.json", key, [*4 * [[1, 0]], [0, 1], [0, 0]])
    assert report_results(tmp_path, tmp_path / "in") == 0
    row = (tmp_path / LISTENING_RESULTS).read_text().splitlines()[1].split("\t")
    assert row == ["new", "old", "8", "2", "2", "80.0", "49.0", "94.3", "0.109"]


def test_each_file_that_is_no_result_of_the_test_is_one_line(tmp_path, capsys):
    key = make_key(tmp_path, "mushra", 1)
    folder, row = tmp_path / "in", [50, 50, 100, 0]
    write_result(folder / "ann.json", key, [row])
    write_result(folder / "ann2.json", key, [row], listener="ann")
    write_result(folder / "foreign.json", key, [row], test="that")
    write_result(folder / "high.json", key, [[101, 50, 100, 0]])
    write_result(folder / "nan.json", key, [[float("nan"), 50, 100, 0]])
    write_result(folder / "few.json", key, [[50, 50, 100]])
    write_result(folder / "none.json", key, [])
    write_result(folder / "nobody.json", key, [row], listener="")
    write_json(folder / "list.json", [1, 2])
    (folder / "broken.json").write_text('{"test": ')
    assert report_results(tmp_path, folder) == 1
    lines = capsys.readouterr().out.splitlines()
    problems = lines[: next(n for n, line in enumerate(lines) if line.startswith("mushra: 1 of 1"))]
    assert [Path(line.partition(":")[0]).stem for line in problems] == sorted(
        ["ann2", "foreign", "high", "nan", "few", "none", "nobody", "list", "broken"]
    )
    text = "\n".join(problems)
    for words in (
        "a second file of listener ann",
        "another listening test, 'that', expected 'this'",
        "not a result file",
    ):
        assert words in text
    for name, wanted in (("empty", "no result files"), ("in", "listening_key.json")):
        with pytest.raises(InputError, match=wanted):
            report_results(tmp_path if name == "empty" else folder, tmp_path / name)


@pytest.fixture
def evaluate(tmp_path: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    """Evaluate the tiny voice on two lines, one with a recording, into tmp_path/out; without pictures."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(evaluator, "plot_speech", lambda *_: Figure(figsize=(1, 1)))
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    write_recordings(tmp_path, ["a.wav"])

    def evaluate(*options: object, lines: tuple[str, ...] = ("a.wav\tGo on.\ta.wav", "b.wav\tHm?\t")) -> int:
        (tmp_path / "list.txt").write_text("\n".join(["output\ttext\twav", *lines]) + "\n", encoding="utf-8")
        argv = [tiny.voice, tiny.vocoder, tmp_path / "list.txt", "-o", tmp_path / "out", "--dataset-path", tmp_path]
        return evaluate_voice.main([str(word) for word in (*argv, *options)])

    return evaluate


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return make_checkpoints(tmp_path_factory.mktemp("tiny"))


def test_the_command_speaks_each_checkpoint_and_writes_the_test(evaluate, tmp_path, tiny, capsys):
    other = save_vocoder(tmp_path / "other.pt", AUDIO)
    sounds = tmp_path / "sounds"
    write_recordings(sounds, NAMES)
    assert evaluate("--listening", "mushra", "--against", other, sounds) == 0
    assert "1 trials, about 1 min a listener; 1 utterances lack a sound" in capsys.readouterr().out
    key = ListeningKey.read(tmp_path / "out")
    names = [f"{tiny.voice} through {vocoder}" for vocoder in (tiny.vocoder, other)]
    assert key.systems == [*names, str(sounds), RECORDING, ANCHOR]
    (trial,) = key.trials.values()
    assert trial.utterance == "a.wav" and sorted(trial.sounds.values()) == sorted(key.systems)
    text = (tmp_path / "out" / LISTENING_PAGE).read_text(encoding="utf-8")
    test = json.loads(text.partition('type="application/json" id="test">')[2].partition("</script>")[0])
    assert set(test["sounds"]) == set(trial.sounds)
    from base64 import b64decode

    decoded = {
        trial.sounds[name]: soundfile.read(io.BytesIO(b64decode(sound))) for name, sound in test["sounds"].items()
    }
    levels = [measure_loudness(wave, rate) for wave, rate in decoded.values()]
    assert max(levels) - min(levels) < 0.1 and {rate for _, rate in decoded.values()} == {22050}
    reference = test["trials"][0]["reference"]
    assert trial.sounds[reference] == RECORDING
    assert evaluate("--listening", "ab", "--against", other, sounds) == 0
    assert "2 of 2 utterances are from an earlier run" in capsys.readouterr().out
    pairs = [trial.utterance for trial in ListeningKey.read(tmp_path / "out").trials.values()]
    assert (pairs.count("a.wav"), pairs.count("b.wav")) == (6, 3)  # of four systems, and of three without a recording


def test_without_listeners_systems_are_compared_by_their_figures(evaluate, tmp_path, tiny, capsys):
    other = save_vocoder(tmp_path / "other.pt", AUDIO)
    assert evaluate() == 0
    (tmp_path / "out").rename(tmp_path / "earlier")
    assert evaluate("--against", other, tmp_path / "earlier") == 0
    heading, *rows = capsys.readouterr().out.partition(f"\n{tiny.voice} through {tiny.vocoder}\n  ")[2].splitlines()
    assert str(tmp_path / "earlier") in heading and f"{tiny.voice} through {other}" in heading
    speed = next(row for row in rows if "RTF" in row)
    assert speed.count(" to ") == 2 and not (tmp_path / "out" / LISTENING_PAGE).exists()


def test_checkpoints_of_one_stem_have_folders_of_their_own(evaluate, tmp_path):
    others = [save_vocoder(tmp_path / name, AUDIO) for name in ("x_a.pt", "x_a.bin", "x_a.voc")]
    assert evaluate("--listening", "ab", "--against", *others) == 0
    assert len([*(tmp_path / "out" / "against").iterdir()]) == len(others)


def test_mistakes_in_a_listening_test_show_before_anything_is_spoken(evaluate, tmp_path, tiny):
    mistakes = {
        ("--against", tmp_path): r"expected evaluation\.json in it",
        ("--listening", "ab", "--against", tiny.vocoder): "a system is given twice",
        ("--listening", "ab", "--against", tiny.recognizer): "of Jasper, expected a generator or vocoder",
        ("--listening", "ab", "--against", tmp_path / "none"): "no such checkpoint or folder",
    }
    for options, words in mistakes.items():
        with pytest.raises(OptionError, match=words):
            evaluate(*options)
    for kind, words in (("mushra", "--recordings"), ("ab", "or --against")):
        with pytest.raises(OptionError, match=words):
            evaluate("--listening", kind, lines=("b.wav\tHm?\t",))
    assert not (tmp_path / "out").exists()


def test_a_recording_without_room_for_the_anchor_is_refused(folder):
    write_recordings(folder / "recorded", NAMES, rate=6000)
    with pytest.raises(InputError, match="6000 Hz, expected at least 8000 for the anchor"):
        write_test(folder, "mushra")
