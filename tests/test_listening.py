"""Listening tests: the page in a real browser, and figures that were worked out by hand."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import HANG_LIMIT
from tiny_evaluation import write_recordings

from common.evaluation.listening import (
    ANCHOR,
    LISTENING_KEY,
    LISTENING_PAGE,
    LISTENING_RESULTS,
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
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=LIMIT)


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


def read_results(folder: Path) -> list[list[str]]:
    return [line.split("\t") for line in (folder / LISTENING_RESULTS).read_text().splitlines()[1:]]


class Listener:
    """The page, opened from the disk by one listener."""

    def __init__(self, browser, folder: Path, width: int) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        self.page.set_default_timeout(LIMIT)
        self.errors: list[object] = []
        self.requests: list[str] = []
        for event in ("pageerror", "console"):
            self.page.on(event, lambda error: self.errors.append(error))
        self.page.on("request", lambda request: self.requests.append(request.url.partition(":")[0]))
        self.page.goto((folder / LISTENING_PAGE).as_uri())
        self.page.fill("#listener", "Ann 7")
        self.press("Enter")

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


KEYS = {RECORDING: ["End"], ANCHOR: ["Home"], "voice.pt": 5 * ["ArrowRight"], "other": 10 * ["ArrowLeft"]}


@pytest.mark.parametrize(("kind", "width"), [("mushra", 1000), ("mushra", 380), ("ab", 1000)])
def test_a_listener_rates_by_keys_and_saves_what_the_command_reads(browser, folder, tmp_path, kind, width):
    key, listener = write_test(folder, kind), Listener(browser, folder, width)
    page = listener.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    listener.press("Enter")
    assert page.inner_text("#missing").endswith("1, 2, 3, 4." if kind == "mushra" else "1, 2.")
    for trial in range(len(NAMES)):
        systems = listener.systems(key)
        assert page.inner_text("#place") == f"{trial + 1} of 2" and sorted(systems) == sorted(key["systems"])
        listener.press("r")
        for number, system in enumerate(systems, 1):
            listener.rate(number, *KEYS[system])
        if trial == 0:
            page.reload()
            assert page.inner_text("#place") == "2 of 2"
            page.click("#back")
            assert listener.systems(key) == systems and page.locator("output").first.inner_text() != "–"
        listener.press("Enter")
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "results" / "ann.json")
    assert listener.errors == [] and set(listener.requests) <= {"file", "data", "blob"}
    assert evaluate_voice.main(["--results", str(tmp_path / "results"), "-o", str(folder)]) == 0
    wanted = [[RECORDING, "100.0"], ["voice.pt", "55.0"], ["other", "40.0"], [ANCHOR, "0.0"]]
    assert [row[:2] for row in read_results(folder)] == [row for row in wanted if row[0] in key["systems"]]


def make_key(folder: Path, n_trials: int) -> dict:
    """Write the key of a MUSHRA test; sounds have the systems' names, with a number."""
    systems = ["new", "old", RECORDING, ANCHOR]
    trials = {f"t{n}": {f"{one} {n}": one for one in systems} for n in range(n_trials)}
    write_json(folder / LISTENING_KEY, {"test": "this", "kind": "mushra", "systems": systems, "trials": trials})
    return read_json(folder / LISTENING_KEY)


def write_result(path: Path, key: dict, scores: list[list[float]], **values: object) -> None:
    """Write a listener's file; ``scores`` are those of the systems of each trial."""
    answers = {name: dict(zip(sounds, row)) for (name, sounds), row in zip(key["trials"].items(), scores)}
    write_json(path, {"test": "this", "listener": path.stem, "answers": answers} | values)


def test_scores_are_means_without_those_of_listeners_who_miss_the_hidden_reference(tmp_path, capsys):
    key, folder = make_key(tmp_path, 4), tmp_path / "in"
    for name, score in {"ann": 60, "bob": 70, "cy": 80}.items():
        write_result(folder / f"{name}.json", key, [[score + part, 40, 95, 10] for part in (-5, 5, 0, 0)])
    write_result(folder / "deaf.json", key, [[0, 100, 80, 100], *3 * [[0, 100, 95, 100]]])
    assert report_results(tmp_path, folder) == 1
    out = capsys.readouterr().out
    assert "deaf.json: 25%" in out and "mushra: 3 of 4 listeners" in out
    rows = read_results(tmp_path)
    assert [row[:2] for row in rows] == [[RECORDING, "95.0"], ["new", "70.0"], ["old", "40.0"], [ANCHOR, "10.0"]]
    assert [row[2].partition(" ")[0] for row in rows] == ["-25.0", "-", "+30.0", "+60.0"] and rows[0][2].endswith("*")


def test_each_file_that_is_no_result_of_the_test_is_one_line(tmp_path, capsys):
    key, folder, row = make_key(tmp_path, 1), tmp_path / "in", [50, 50, 100, 0]
    write_result(folder / "ann.json", key, [row])
    write_result(folder / "foreign.json", key, [row], test="that")
    write_result(folder / "few.json", key, [row[1:]])
    write_json(folder / "list.json", [1, 2])
    (folder / "broken.json").write_text('{"test": ')
    assert report_results(tmp_path, folder) == 1
    *lines, total = capsys.readouterr().out.splitlines()[:5]
    names = [Path(line.partition(":")[0]).stem for line in lines]
    assert names == ["broken", "few", "foreign", "list"] and total.startswith("mushra: 1 of 5")
