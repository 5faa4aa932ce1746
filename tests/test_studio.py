"""The studio in a real browser: what is dragged, typed and clicked is heard in the sound that comes back."""

import base64
import io
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile
from limits import HANG_LIMIT
from singing_voice import SingingVocoder, singing_voice
from tiny_served import KEEP_ANSWERS, serving

from common.serving.app import STUDIO, Service, studio_page
from common.serving.models import ServedModels
from common.serving.options import Limits
from common.synthesis.voice import Voice
from common.text.ssml import has_markup, read_markup

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
LIMIT = 1000 * HANG_LIMIT  # ms
expect.set_options(timeout=LIMIT)
CHROMIUM = shutil.which("chromium")
TEXT = "Hello there. This is fine."
LONG = "Hello there. One two three four five six seven eight nine ten eleven twelve. " + 3 * "This is not over yet. "
FRAME = 256 / 22050  # s


def served(voice: Voice, *, api_key: str | None = None) -> AbstractContextManager[str]:
    """The address of a server that speaks with the voice."""
    return serving(Service(ServedModels(voice, "singer"), limits=Limits(deadline=HANG_LIMIT), api_key=api_key))


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"], "timeout": LIMIT}
        browser = driver.chromium.launch(**options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(singing_voice(speakers=("ann", "bob"))) as address:
        yield address


# Keeps what the page copies: reading the clipboard may wait for ever where another window has the focus.
KEEP_COPIES = """
const {clipboard} = navigator;
const write = clipboard?.writeText.bind(clipboard);
if (write) clipboard.writeText = async (text) => { await write(text); window.copied = text; };"""


class Studio:
    """The page, what it asked the server for, and the answers."""

    def __init__(self, page, address: str) -> None:
        self.page = page
        self.asked: list[dict] = []
        self.errors: list[str] = []
        page.add_init_script(KEEP_ANSWERS)
        page.add_init_script(KEEP_COPIES)
        page.on("request", lambda request: request.method == "POST" and self.asked.append(request.post_data_json))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.goto(address)
        expect(page.locator("#voice option")).to_have_count(1)

    def speak(self, text: str = TEXT) -> dict:
        """Types and speaks; the answer."""
        self.page.fill("#text", text)
        return self.answer_of(lambda: self.page.click("#speak"))

    def answer_of(self, act) -> dict:
        """What the server says to the request that ``act`` makes, when the page shows it."""
        takes = self.page.locator("#takes li").count()
        act()
        expect(self.page.locator("#takes li")).to_have_count(takes + 1)
        return joined(self.page.evaluate("answers.at(-1)"))

    def listen(self) -> dict:
        expect(self.page.locator("#play")).to_have_text("Listen again")
        return self.answer_of(lambda: self.page.click("#play"))

    def handle(self, label: str):
        return self.page.get_by_role("slider", name=label, exact=True)

    def value(self, label: str) -> float:
        return float(self.handle(label).get_attribute("aria-valuenow"))

    def drag(self, label: str, x: float, y: float) -> None:
        box = self.handle(label).bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        mouse = self.page.mouse
        mouse.move(*middle)
        mouse.down()
        mouse.move(middle[0] + x / 2, middle[1] + y / 2)
        mouse.move(middle[0] + x, middle[1] + y)
        mouse.up()

    def slide(self, label: str, value: float) -> None:
        self.page.get_by_label(label, exact=True).evaluate(
            "(slider, value) => { slider.value = value; for (const name of ['input', 'change']) "
            "slider.dispatchEvent(new Event(name, {bubbles: true})); }",
            value,
        )

    def download(self, button: str) -> bytes:
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=button, exact=True).click()
        return Path(download.value.path()).read_bytes()

    def table(self) -> dict:
        return json.loads(self.download("Download edits"))

    def select(self, word: str) -> None:
        self.page.locator(f".word[title={word}]").click()

    def copy_ssml(self) -> str:
        self.page.get_by_role("button", name="Copy as SSML").click()
        expect(self.page.locator("#status")).to_contain_text("Copied")
        return self.page.evaluate("copied")

    def frames(self) -> list[int]:
        return [row["frames"] for row in symbols(self.table())]

    def sound(self) -> np.ndarray:
        """What is heard, as it is downloaded."""
        return samples(self.download("Download"))


def joined(events: str) -> dict:
    """One answer of those that the server gave to each utterance."""
    *parts, done = (json.loads(line.removeprefix("data: ")) for line in events.splitlines() if line)
    assert done["type"] == "speech.done" and [one["part"] for one in parts] == list(range(len(parts)))
    answer, start, words = dict(parts[0]), 0.0, []
    for part in parts:
        words += [{**word, "start": word["start"] + start, "end": word["end"] + start} for word in part["words"]]
        start += part["duration"]
    sound = io.BytesIO()
    soundfile.write(sound, np.concatenate([samples_of(part) for part in parts]), 22050, format="WAV")
    answer |= {"words": words, "audio": base64.b64encode(sound.getvalue()).decode()}
    answer["mel"] = {**answer["mel"], "frames": sum(part["mel"]["frames"] for part in parts)}
    if answer["prosody"]:
        utterances = [one for part in parts for one in part["prosody"]["utterances"]]
        answer["prosody"] = {**answer["prosody"], "utterances": utterances}
    return answer


@contextmanager
def opened(browser, address: str, **options) -> Iterator[Studio]:
    """The studio in a new window."""
    context = browser.new_context(**options)
    context.set_default_timeout(LIMIT)
    context.grant_permissions(["clipboard-write"])
    studio = Studio(context.new_page(), address)
    yield studio
    assert studio.errors == []
    context.close()


@pytest.fixture
def studio(browser, address: str) -> Iterator[Studio]:
    with opened(browser, address, viewport={"width": 1200, "height": 1000}) as studio:
        yield studio


def symbols(table: dict) -> list[dict]:
    return [symbol for one in table["utterances"] for word in one["words"] for symbol in word["symbols"]]


def symbols_of_words(table: dict) -> list[dict]:
    return [row for one in table["utterances"] for word in one["words"] if word["text"] for row in word["symbols"]]


def samples(wav: bytes) -> np.ndarray:
    wave, rate = soundfile.read(io.BytesIO(wav))
    assert rate == 22050
    return wave


def samples_of(answer: dict) -> np.ndarray:
    return samples(base64.b64decode(answer["audio"]))


def pitch_of_symbol(answer: dict, index: int) -> float:
    """Hz of the sound within a symbol of the first utterance, from the distance of its periods."""
    rows = symbols(answer["prosody"])
    start = sum(row["frames"] for row in rows[:index]) * 256
    wave = samples_of(answer)[start : start + rows[index]["frames"] * 256]
    spectrum = np.abs(np.fft.rfft(wave * np.hanning(len(wave)), 1 << 16))
    return float(np.argmax(spectrum) * 22050 / (1 << 16))


def test_the_page_needs_nothing_from_elsewhere_and_runs_our_modules_alone():
    html = studio_page()
    assert set(re.findall(r"https?://[^\"'\s]+", html)) == set()
    assert not re.search(r"<[^>]*\son\w+=|<[^>]*\sstyle=|@import|url\(", html)
    assert re.findall(r"<script[^>]*>", html) == ['<script type="module" src="studio/main.js">']
    (policy,) = re.findall(r"Content-Security-Policy\" content=\"([^\"]+)", html)
    assert "script-src 'self'" in policy and "default-src 'none'; connect-src 'self'" in policy


def test_modules_import_each_other_without_a_circle_and_have_the_type_of_scripts(address: str):
    imports = {
        path.name: set(re.findall(r'from "\./([\w.]+)"', path.read_text("utf-8"))) for path in STUDIO.glob("*.js")
    }
    assert set(TopologicalSorter(imports).static_order()) == set(imports)
    for name in imports:
        answer = httpx.get(f"{address}/studio/{name}")
        assert answer.status_code == 200 and "javascript" in answer.headers["content-type"]
    assert httpx.get(f"{address}/studio/../app.py").status_code == 404


def test_a_sentence_is_spoken_and_its_words_and_phones_stand_where_they_are_heard(studio: Studio):
    answer = studio.speak()
    assert studio.asked[0]["input"] == TEXT and studio.asked[0]["timings"] is True
    assert studio.page.locator("[role=option]").all_inner_texts()[:2] == ["Hello", "there"]
    for name, word in (("Hello", 0), ("there", 1), ("fine", 4)):
        box = studio.page.locator(f".word[title={name}]").bounding_box()
        strip = studio.page.locator("#strip").bounding_box()
        frame = strip["width"] / answer["mel"]["frames"]
        assert (box["x"] - strip["x"]) / frame * FRAME == pytest.approx(answer["words"][word]["start"], abs=0.003)
        assert (box["x"] + box["width"] - strip["x"]) / frame * FRAME == pytest.approx(
            answer["words"][word]["end"], abs=0.003
        )
    assert studio.handle("pitch of HH in Hello").get_attribute("aria-valuetext") == "140 Hz"
    assert studio.handle("end of HH in Hello").get_attribute("aria-valuetext") == "58 ms"
    assert np.array_equal(studio.sound(), samples_of(answer))


def test_a_dragged_pitch_is_higher_in_the_sound_that_comes_back(studio: Studio):
    first = studio.speak()
    assert pitch_of_symbol(first, 3) == pytest.approx(170, abs=6)
    studio.drag("pitch of OW1 in Hello", 0, -60)
    wanted = studio.value("pitch of OW1 in Hello")
    assert wanted > 190
    again = studio.listen()
    assert pitch_of_symbol(again, 3) == pytest.approx(wanted, abs=6)
    rows, others = symbols(again["prosody"]), symbols(first["prosody"])
    assert rows[4]["symbol"] == " " and rows[4]["pitch"] == rows[3]["pitch"], "the end of a word moves with its sound"
    assert [*rows[:3], *rows[5:]] == [*others[:3], *others[5 : len(rows)]]


def test_only_the_sentence_that_changed_is_asked_for_and_the_others_are_kept(studio: Studio):
    first = studio.speak()
    studio.drag("pitch of AY1 in fine", 0, 40)
    again = studio.listen()
    assert len(studio.asked) == 2 and "input" not in studio.asked[1]
    assert [one["text"] for one in studio.asked[1]["prosody"]["utterances"]] == ["This is fine."]
    before, after = samples_of(first), studio.sound()
    n_kept = len(before) - len(samples_of(again))
    assert len(after) == len(before) and np.array_equal(after[:n_kept], before[:n_kept])
    assert np.array_equal(after[n_kept:], samples_of(again))
    studio.page.keyboard.press("Control+z")
    assert np.array_equal(studio.sound(), before)
    assert len(studio.asked) == 2, "what was heard already is not asked for again"


def test_everything_can_be_shaped_from_the_keyboard(studio: Studio):
    studio.page.focus("#text")
    studio.page.keyboard.type("Hello there.")
    studio.answer_of(lambda: studio.page.keyboard.press("Control+Enter"))
    for _ in range(30):
        studio.page.keyboard.press("Tab")
        if studio.page.evaluate("document.activeElement.dataset.kind") == "pitch":
            break
    focused = "document.activeElement.getAttribute('aria-label')"
    assert studio.page.evaluate(focused) == "pitch of HH in Hello"
    studio.page.keyboard.press("ArrowUp")
    assert studio.value("pitch of HH in Hello") == pytest.approx(140 * 2 ** (1 / 12), abs=0.01)
    studio.page.keyboard.press("Shift+ArrowDown")
    assert studio.value("pitch of HH in Hello") == pytest.approx(140 * 2 ** (-4 / 12), abs=0.01)
    assert studio.page.inner_text(".messages") == "pitch of HH in Hello, 111 Hz"
    studio.page.keyboard.press("ArrowRight")
    assert studio.page.evaluate(focused) == "pitch of AH0 in Hello"
    studio.page.keyboard.press("End")
    assert studio.page.evaluate(focused) == "pitch of . after there"
    studio.page.keyboard.press("Control+z")
    studio.page.keyboard.press("Control+z")
    assert studio.value("pitch of HH in Hello") == 140 and studio.page.inner_text("#play") == "Play"
    studio.page.keyboard.press("Control+Shift+z")
    assert studio.value("pitch of HH in Hello") == pytest.approx(140 * 2 ** (1 / 12), abs=0.01)
    again = studio.answer_of(lambda: studio.page.keyboard.press("Space"))
    assert pitch_of_symbol(again, 0) == pytest.approx(148, abs=8)


def test_sliders_shape_what_is_selected(studio: Studio):
    studio.speak()
    before = symbols(studio.table())
    studio.select("there")
    studio.slide("Pitch", 12)
    studio.slide("Volume", 0.5)
    studio.slide("Energy", 0.8)
    rows = symbols(studio.table())
    assert [row["pitch"] for row in rows[5:8]] == [2 * row["pitch"] for row in before[5:8]]
    assert [row["volume"] for row in rows] == [1.0] * 5 + [0.5] * 3 + [1.0] * (len(rows) - 8)
    assert [row["energy"] for row in rows[5:8]] == pytest.approx([0.8 * row["energy"] for row in before[5:8]], abs=1e-4)
    studio.page.get_by_role("button", name="Everything").click()
    studio.slide("Pace", 1)  # a logarithm: twice as fast
    frames = sum(row["frames"] for row in before)
    assert sum(studio.frames()) == pytest.approx(frames / 2, abs=1)
    studio.slide("Volume", 0)
    studio.slide("Volume", 1)
    assert {row["volume"] for row in symbols(studio.table())} == {1.0}, "nothing is lost by way of silence"
    studio.page.get_by_label("Speaker, with this pitch and these lengths").select_option("bob")
    assert {one["speaker"] for one in studio.listen()["prosody"]["utterances"]} == {"bob"}
    studio.page.click("#reset")
    assert symbols(studio.table()) == before and studio.table()["utterances"][0]["speaker"] == "ann"


def test_prosody_goes_out_as_json_and_comes_back_in(studio: Studio, tmp_path: Path):
    studio.speak()
    studio.drag("pitch of OW1 in Hello", 0, -30)
    table = studio.table()
    sound = studio.download("Download")
    studio.page.reload()
    expect(studio.page.locator("#takes li")).to_have_count(1)  # the next one is another
    path = tmp_path / "hello.json"
    path.write_text(json.dumps(table))
    answer = studio.answer_of(lambda: studio.page.set_input_files("#file", path))
    assert answer["prosody"] == table and studio.page.input_value("#text") == TEXT
    assert studio.download("Download") == sound
    path.write_text('{"format": "other"}')
    studio.page.set_input_files("#file", path)
    studio.page.wait_for_selector("[role=alert]")
    assert studio.page.inner_text("#error-text") == ('hello.json: format "other", expected "speech-toolkit prosody 1"')


def test_words_go_out_as_ssml_that_speaks_as_they_were_shaped(studio: Studio):
    studio.speak("Hello there, R & B. This is fine.")
    studio.select("there")
    studio.slide("Pitch", 3)
    studio.slide("Volume", 0.5)
    studio.select("is")
    studio.slide("Pace", -1)
    ssml = studio.copy_ssml()
    assert ssml == (
        '<speak>Hello <prosody pitch="+3st" volume="-6.02dB">there</prosody>, R &amp; B. '
        'This <prosody rate="50%">is</prosody> fine.</speak>'
    )
    assert has_markup(ssml)
    styles = {span.text.strip(): span.style for span in read_markup(ssml) if hasattr(span, "style")}
    assert styles["there"].pitch == pytest.approx(2 ** (3 / 12), rel=0.01)
    assert styles["there"].volume == pytest.approx(0.5, rel=0.01) and styles["is"].rate == 0.5
    shaped = symbols_of_words(studio.table())
    for one, other in zip(symbols_of_words(studio.speak(ssml)["prosody"]), shaped):
        assert one["pitch"] == pytest.approx(other["pitch"], rel=0.01)
        assert one["volume"] == pytest.approx(other["volume"], rel=0.01)
        assert one["frames"] == pytest.approx(other["frames"], abs=1)


def test_a_voice_without_prosody_has_words_and_no_handles(browser):
    with served(singing_voice(model="Tacotron2")) as address, opened(browser, address) as studio:
        answer = studio.speak()
        assert answer["prosody"] is None
        assert studio.page.locator(".word").all_inner_texts() == ["Hello", "there", "This", "is", "fine"]
        assert studio.page.get_by_role("slider").count() == 0 and studio.page.locator("#inspector").is_hidden()
        assert "They can't be changed, so there are no handles" in studio.page.inner_text("#why-unshaped")
        assert np.array_equal(studio.sound(), samples_of(answer))


class WaitingVocoder(SingingVocoder):
    """A vocoder whose sounds after the first one wait until they are wanted."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self._n_made = 0

    def stream(self, mel):
        """Wait, and sing."""
        self._n_made += 1
        assert self._n_made == 1 or self.wanted.wait(HANG_LIMIT)
        yield from super().stream(mel)


def test_a_long_text_is_heard_and_seen_as_it_is_made(browser):
    voice, vocoder = singing_voice(), WaitingVocoder()
    voice = replace(voice, synthesizer=replace(voice.synthesizer, vocoder=vocoder))
    with served(voice) as address, opened(browser, address) as studio:
        page = studio.page
        page.fill("#text", LONG)
        page.click("#speak")
        expect(page.locator(".messages")).to_contain_text("1 of 5 sentences")
        assert page.locator(".word").all_inner_texts() == ["Hello", "there"]
        assert (page.locator("#progress").get_attribute("max"), page.inner_text("#play")) == ("5", "Pause")
        assert page.get_by_role("slider", name="pitch of HH in Hello").count() == 0, "it is shaped when all is there"
        assert page.locator("#undo").is_disabled()
        vocoder.wanted.set()
        expect(page.locator("#status")).to_have_text(re.compile(r"Spoken: .*, 5 sentences"))
        assert page.locator("#progress").is_hidden() and studio.handle("pitch of HH in Hello").count() == 1
        assert page.locator(".word").all_inner_texts()[-5:] == ["This", "is", "not", "over", "yet"]
        assert (
            len(studio.sound()) == len(samples_of(joined(page.evaluate("answers.at(-1)")))) and len(studio.asked) == 1
        )


def test_text_edits_and_takes_are_there_after_a_reload_and_sound_the_same(studio: Studio):
    studio.speak()
    studio.drag("pitch of OW1 in Hello", 0, -50)
    studio.listen()
    studio.drag("pitch of AY1 in fine", 0, 40)
    table, sound = studio.table(), studio.sound()
    studio.page.fill("#text", "Something else.")
    studio.page.reload()
    expect(studio.page.locator("#takes li")).to_have_count(2)
    assert studio.page.input_value("#text") == "Something else." and studio.table() == table
    assert studio.page.inner_text("#play") == "Listen again"
    assert np.array_equal(studio.sound(), sound)
    for _ in range(2):
        studio.page.keyboard.press("Control+z")
    assert symbols(studio.table())[3]["pitch"] == 170
    studio.page.get_by_role("button", name="Play Take 2").click()
    expect(studio.page.get_by_role("button", name="Stop Take 2")).to_have_count(1)
    studio.page.get_by_role("button", name="Remove Take 1").click()
    studio.page.reload()
    expect(studio.page.locator("#takes li")).to_have_count(1)
    assert studio.page.locator(".take-title").inner_text().startswith("Take 2")


def test_what_will_be_said_is_shown_without_speaking(studio: Studio):
    page = studio.page
    page.fill("#text", "Dr. Lee paid $3.50. Hi.")
    page.get_by_role("button", name="Pronunciation").click()
    expect(page.locator("#readings li")).to_have_count(2)
    words, phones = page.locator("#readings li").first.locator("span").all_inner_texts()
    assert words == "doctor lee paid three dollars fifty cents." and phones.startswith("D AA1 K T ER0")
    assert studio.asked[0]["show"] is True and page.locator("#stage").is_hidden()
    page.get_by_role("button", name="Close pronunciation").click()
    assert page.locator("#reading").is_hidden()


@pytest.mark.parametrize(
    ("form", "begins"), [("mp3", b"\xff"), ("flac", b"fLaC"), ("opus", b"OggS"), ("vtt", b"WEBVTT")]
)
def test_sound_is_downloaded_in_other_formats_with_what_was_changed(studio: Studio, form: str, begins: bytes):
    studio.speak("Hello there.")
    studio.drag("pitch of OW1 in Hello", 0, -50)
    pitch = studio.value("pitch of OW1 in Hello")
    studio.page.get_by_label("Format").select_option(form)
    assert studio.download("Download").startswith(begins)
    assert studio.asked[-1]["response_format"] == form
    assert symbols(studio.asked[-1]["prosody"])[3]["pitch"] == pitch


@pytest.mark.parametrize("width", [1200, 390])
def test_words_can_be_read_whole_and_so_can_the_last_tick(browser, address: str, width: int):
    with opened(browser, address, viewport={"width": width, "height": 900}) as studio:
        page = studio.page
        studio.speak("You do. I do. We say it to you.")
        expect(page.locator("#play")).to_have_text("Play")  # the view has gone back to where it was
        page.evaluate("document.querySelector('#picture').scrollLeft = 1e6")
        for word in page.locator(".word").all():
            assert word.evaluate("(one) => one.scrollWidth <= one.clientWidth && !one.matches('.tight')")
        tick, frame = page.locator("#ruler span").last.bounding_box(), page.locator("#picture").bounding_box()
        assert tick["x"] + tick["width"] <= frame["x"] + frame["width"]


def luminance(color: str) -> float:
    red, green, blue = (int(part) for part in re.findall(r"\d+", color)[:3])
    linear = [(c / 255 / 12.92) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


COLORS = """(name) => {
  const style = getComputedStyle(document.querySelector(name));
  return [style.color, style.backgroundColor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark_and_a_choice_lasts(browser, address: str, scheme: str):
    with opened(browser, address, color_scheme=scheme) as studio:
        page = studio.page

        def is_light() -> bool:
            return luminance(page.evaluate(COLORS, "body")[1]) > 0.5

        studio.speak()
        assert is_light() == (scheme == "light")
        paper = luminance(page.evaluate(COLORS, "body")[1])
        for name in ("body", "#status", "#speak", "#play", "#text", "#undo", ".slider .value", "#crumbs button"):
            ink, own = page.evaluate(COLORS, name)
            behind = paper if own.endswith(", 0)") else luminance(own)
            high, low = sorted((luminance(ink), behind), reverse=True)
            assert (high + 0.05) / (low + 0.05) > 4.5 or page.locator(name).first.is_disabled(), name
        page.get_by_label("Colors").select_option({"light": "dark", "dark": "light"}[scheme])
        assert is_light() == (scheme == "dark")
        page.reload()
        assert is_light() == (scheme == "dark")


def test_a_phone_of_360_pixels_has_room_and_targets_for_fingers(browser):
    voice = singing_voice(speakers=("ann", "a speaker whose name is wider than the screen of a phone"))
    screen = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    with served(voice) as address, opened(browser, address, **screen) as studio:
        page = studio.page
        width = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        assert page.evaluate(width) == [360, 360]
        studio.speak("Hello there, this is a sentence that is much wider than the screen of a phone. This is fine.")
        assert page.evaluate(width) == [360, 360]
        assert page.evaluate("(p => p.scrollWidth > p.clientWidth)(document.querySelector('#picture'))")
        for selector in (".handle:visible", "button:visible", "select:visible", "input[type=range]:visible"):
            for box in (one.bounding_box() for one in page.locator(selector).all()[:30]):
                assert box["width"] >= 24 and box["height"] >= 24, selector
        if page.inner_text("#play") == "Pause":  # the sound is not over, and the picture would follow it
            page.click("#play")
        handle = studio.handle("pitch of OW1 in Hello")
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch = page.context.new_cdp_session(page)
        for kind, moved in (("Start", 0), ("Move", 20), ("Move", 40), ("End", None)):
            points = [] if moved is None else [{"x": x, "y": y - moved}]
            touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        assert studio.value("pitch of OW1 in Hello") > 180
