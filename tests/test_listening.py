"""Listening tests: the page in a real browser, sounds of one loudness, and figures that were worked out by hand."""

import base64
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
from common.evaluation import evaluator, judges
from common.evaluation.listening import (
    ANCHOR,
    LISTENING_KEY,
    LISTENING_PAGE,
    LISTENING_RESULTS,
    low_anchor,
    match_loudness,
    report_results,
    write_listening_test,
)
from common.evaluation.options import RESULTS
from common.evaluation.results import RECORDING
from common.files import read_json, write_json
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


def write_test(folder: Path, kind: str) -> dict:
    write_listening_test(folder, kind, {"voice.pt": folder, "other": folder.parent / "other"})
    return read_json(folder / LISTENING_KEY)


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

    def rate(self, number: int, *keys: str) -> None:
        """Play a sound and move its slider, which has the focus once the sound is heard."""
        self.press(str(number))
        self.page.locator("#sounds .sound").nth(number - 1).locator("input:focus").wait_for()
        self.press(*keys)

    def systems(self, key: dict) -> list[str]:
        """The systems of the trial that is shown, in order."""
        name, sounds = self.page.evaluate("[mine[index].name, mine[index].sounds]")
        return [key["trials"][name][sound] for sound in sounds]

    def save(self) -> dict:
        with self.page.expect_download() as download:
            self.page.click("#save")
        return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


KEYS = {RECORDING: ["End"], ANCHOR: ["Home"], "voice.pt": 5 * ["ArrowRight"], "other": 10 * ["ArrowLeft"]}


@pytest.mark.parametrize(("kind", "width"), [("mushra", 1000), ("mushra", 380), ("ab", 1000)])
def test_a_listener_rates_by_keys_and_saves_what_the_command_reads(browser, folder, tmp_path, kind, width):
    key = write_test(folder, kind)
    listener = Listener(browser, folder, width=width)
    page = listener.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    listener.press("Enter")
    n_sounds = len(key["systems"])
    assert page.inner_text("#missing").endswith(f"{', '.join(map(str, range(1, n_sounds + 1)))}.")
    for trial in range(len(NAMES)):
        systems = listener.systems(key)
        assert page.inner_text("#place") == f"{trial + 1} of 2" and sorted(systems) == sorted(key["systems"])
        listener.press("r")
        for number, system in enumerate(systems, 1):
            listener.rate(number, *KEYS[system])
        if trial == 0:
            page.reload()
            assert listener.systems(key) != [] and page.inner_text("#place") == "2 of 2"
            page.click("#back")
            assert listener.systems(key) == systems and page.locator("output").first.inner_text() != "–"
        listener.press("Enter")
    result = listener.save()
    assert listener.errors == [] and set(listener.requests) <= {"file", "data", "blob"}
    write_json(tmp_path / "results" / "ann.json", result)
    assert evaluate_voice.main(["--results", str(tmp_path / "results"), "-o", str(folder)]) == 0
    rows = [line.split("\t")[:2] for line in (folder / LISTENING_RESULTS).read_text().splitlines()[1:]]
    wanted = [[RECORDING, "100.0"], ["voice.pt", "55.0"], ["other", "40.0"], [ANCHOR, "0.0"]]
    assert rows == [row for row in wanted if row[0] in key["systems"]]


def test_the_page_says_nothing_of_the_systems(folder):
    key = write_test(folder, "mushra")
    html = (folder / LISTENING_PAGE).read_text(encoding="utf-8")
    assert not any(word in html for word in ("voice.pt", "synthesised", ANCHOR, RECORDING, str(folder)))
    assert key["systems"] == ["voice.pt", "other", RECORDING, ANCHOR]
    assert write_test(folder, "mushra") == key  # results stay valid when the page is written again


def test_sounds_of_a_trial_have_one_loudness_and_no_peak_is_cut():
    time = np.arange(22050) / 22050
    waves = {f"{level}": (level * np.sin(2 * np.pi * 500 * time), 22050) for level in (0.01, 0.9)}
    peaky = 0.01 * np.sin(2 * np.pi * 500 * time)
    peaky[11000] = 1.0
    matched = match_loudness(waves)
    assert [measure_loudness(*one) for one in matched.values()] == pytest.approx([-23, -23], abs=0.01)
    matched = match_loudness(waves | {"peaky": (peaky, 22050)})
    first, *others = [measure_loudness(*one) for one in matched.values()]
    assert others == pytest.approx([first, first], abs=0.01) and first < -30
    assert np.abs(matched["peaky"][0]).max() == pytest.approx(10 ** (CEILING / 20))


@pytest.mark.parametrize("rate", [8000, 22050, 44100])
def test_the_anchor_keeps_3500_hz_and_has_nothing_above_4000(rate):
    times = np.arange(rate) / rate
    middle = slice(rate // 4, -rate // 4)

    def gain(frequency: float) -> float:  # dB
        tone = np.sin(2 * np.pi * frequency * times)
        passed = low_anchor(tone, rate)[0]
        assert passed.shape == tone.shape
        return 10 * np.log10(np.mean(passed[middle] ** 2) / np.mean(tone[middle] ** 2))

    assert gain(200) == pytest.approx(0, abs=0.1) and gain(3450) == pytest.approx(0, abs=0.1)
    assert gain(3990) < -25
    assert rate == 8000 or (gain(4010) < -25 and gain(4500) < -50)


SYSTEMS = ["new", "old", RECORDING, ANCHOR]


def make_key(folder: Path, kind: str, n_trials: int) -> dict:
    """Write the key of a test; sounds have the systems' names, with a number."""
    systems = SYSTEMS if kind == "mushra" else SYSTEMS[:2]
    trials = {f"t{n}": {f"{one} {n}": one for one in systems} for n in range(n_trials)}
    write_json(folder / LISTENING_KEY, {"test": "this", "kind": kind, "systems": systems, "trials": trials})
    return read_json(folder / LISTENING_KEY)


def write_result(path: Path, key: dict, scores: list[list[float]], **values: object) -> None:
    """Write a listener's file; ``scores`` are those of the systems of each trial."""
    answers = {name: dict(zip(sounds, row)) for (name, sounds), row in zip(key["trials"].items(), scores)}
    write_json(path, {"test": "this", "listener": path.stem, "answers": answers} | values)


def read_results(folder: Path) -> list[list[str]]:
    return [line.split("\t") for line in (folder / LISTENING_RESULTS).read_text().splitlines()[1:]]


def test_scores_are_means_without_those_of_listeners_who_miss_the_hidden_reference(tmp_path, capsys):
    key = make_key(tmp_path, "mushra", 4)
    for name, score in {"ann": 60, "bob": 70, "cy": 80}.items():
        write_result(tmp_path / "in" / f"{name}.json", key, [[score + part, 40, 95, 10] for part in (-5, 5, 0, 0)])
    write_result(tmp_path / "in" / "deaf.json", key, [[0, 100, 80, 100], *3 * [[0, 100, 95, 100]]])
    assert report_results(tmp_path, tmp_path / "in") == 1
    out = capsys.readouterr().out
    assert "deaf.json: 25%" in out and "mushra: 3 of 4 listeners" in out
    rows = read_results(tmp_path)
    assert [row[:2] for row in rows] == [[RECORDING, "95.0"], ["new", "70.0"], ["old", "40.0"], [ANCHOR, "10.0"]]
    assert [row[2].partition(" ")[0] for row in rows] == ["-25.0", "-", "+30.0", "+60.0"] and rows[0][2].endswith("*")


@pytest.mark.parametrize(("n_missed", "counts"), [(1, True), (2, False)])
def test_one_missed_hidden_reference_of_seven_is_forgiven(tmp_path, n_missed, counts):
    key = make_key(tmp_path, "mushra", 7)
    write_result(tmp_path / "in" / "ann.json", key, [[50, 50, 89 if n < n_missed else 90, 0] for n in range(7)])
    if counts:
        assert report_results(tmp_path, tmp_path / "in") == 0
    else:
        with pytest.raises(InputError, match="none of 1 result files"):
            report_results(tmp_path, tmp_path / "in")


def test_each_file_that_is_no_result_of_the_test_is_one_line(tmp_path, capsys):
    key = make_key(tmp_path, "mushra", 1)
    folder, row = tmp_path / "in", [50, 50, 100, 0]
    write_result(folder / "ann.json", key, [row])
    write_result(folder / "foreign.json", key, [row], test="that")
    write_result(folder / "few.json", key, [row[1:]])
    write_json(folder / "list.json", [1, 2])
    (folder / "broken.json").write_text('{"test": ')
    assert report_results(tmp_path, folder) == 1
    lines = capsys.readouterr().out.splitlines()
    names = [Path(line.partition(":")[0]).stem for line in lines[:4]]
    assert names == ["broken", "few", "foreign", "list"] and lines[4].startswith("mushra: 1 of 5")


@pytest.fixture
def evaluate(tmp_path: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch):
    """Evaluate the tiny voice on two lines, one with a recording, into tmp_path/out; without pictures."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(evaluator, "plot_speech", lambda *_: Figure(figsize=(1, 1)))
    monkeypatch.setattr(judges, "find_spec", lambda name: None)
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
    other, sounds = save_vocoder(tmp_path / "other.pt", AUDIO), tmp_path / "sounds"
    write_recordings(sounds, NAMES)
    assert evaluate("--listening", "mushra", "--against", other, sounds) == 0
    assert "1 trials of 5 sounds; 1 utterances lack a sound" in capsys.readouterr().out
    key = read_json(tmp_path / "out" / LISTENING_KEY)
    names = [f"{tiny.voice} through {vocoder}" for vocoder in (tiny.vocoder, other)]
    assert key["systems"] == [*names, str(sounds), RECORDING, ANCHOR]
    trial = key["trials"]["a.wav"]
    text = (tmp_path / "out" / LISTENING_PAGE).read_text(encoding="utf-8")
    test = json.loads(text.partition('type="application/json" id="test">')[2].partition("</script>")[0])
    assert set(test["sounds"]) == set(trial) and sorted(trial.values()) == sorted(key["systems"])
    decoded = [soundfile.read(io.BytesIO(base64.b64decode(sound))) for sound in test["sounds"].values()]
    levels = [measure_loudness(wave, rate) for wave, rate in decoded]
    assert max(levels) - min(levels) < 0.1 and {rate for _, rate in decoded} == {22050}
    assert trial[test["trials"][0]["reference"]] == RECORDING
    assert evaluate("--listening", "ab", "--against", other) == 0
    assert "2 of 2 utterances are from an earlier run" in capsys.readouterr().out
    key = read_json(tmp_path / "out" / LISTENING_KEY)
    assert key["systems"] == names and list(key["trials"]) == ["a.wav", "b.wav"]
    assert evaluate("--listening", "ab") == 0
    key = read_json(tmp_path / "out" / LISTENING_KEY)
    assert key["systems"] == [names[0], RECORDING] and list(key["trials"]) == ["a.wav"]


def test_without_listeners_systems_are_compared_by_their_figures(evaluate, tmp_path, tiny, capsys):
    other = save_vocoder(tmp_path / "other.pt", AUDIO)
    assert evaluate() == 0
    (tmp_path / "out").rename(tmp_path / "earlier")
    assert evaluate("--against", other, tmp_path / "earlier") == 0
    lines = capsys.readouterr().out.splitlines()
    for name in (f"{tiny.voice} through {other}", str(tmp_path / "earlier")):
        start = next(n for n, line in enumerate(lines) if line.startswith(f"less {name} "))
        assert " to " in next(line for line in lines[start:] if "RTF" in line)
    assert not (tmp_path / "out" / LISTENING_PAGE).exists()


def test_checkpoints_of_one_stem_have_folders_of_their_own(evaluate, tmp_path):
    others = [save_vocoder(tmp_path / name, AUDIO) for name in ("x_a.pt", "x_a.bin", "x_a.voc")]
    assert evaluate("--listening", "mushra", "--against", *others) == 0
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
    for kind, words in (("mushra", "give --recordings"), ("ab", "or --against")):
        with pytest.raises(OptionError, match=words):
            evaluate("--listening", kind, lines=("b.wav\tHm?\t",))
    assert not (tmp_path / "out").exists()
