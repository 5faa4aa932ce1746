"""A voice is spoken, heard, compared and timed; what is done stays done, and mistakes are one line."""

import base64
import io
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from matplotlib.figure import Figure
from page_reader import PageReader
from tiny_evaluation import AUDIO, Tiny, make_checkpoints, save_vocoder, write_recordings

from common.audio.levels import measure_loudness
from common.audio.wav import load_wav
from common.errors import InputError, OptionError
from common.evaluation import evaluator, judges
from common.evaluation.evaluator import Evaluator
from common.evaluation.listening import ANCHOR, LISTENING_KEY, LISTENING_PAGE
from common.evaluation.metrics import Clip, aligned
from common.evaluation.results import RECORDING
from common.files import read_json
from scripts import evaluate_voice

AVERAGES = ["average", "synthesized", "recording", "griffin-lim"]
LINES = ("output\ttext\twav", "a.wav\tGo on.\ta.wav", "b.wav\tNot so long.\tb.wav", "sub/c.wav\tHm?\t")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return make_checkpoints(tmp_path_factory.mktemp("tiny"))


Evaluate = Callable[..., int]


@pytest.fixture
def evaluate(tmp_path: Path, tiny: Tiny) -> Evaluate:
    """Evaluate the tiny voice on the lines of a list, into tmp_path/out."""
    write_recordings(tmp_path, ["a.wav", "b.wav"])

    def evaluate(
        *options: object, lines: tuple[str, ...] = LINES, voice: Path = tiny.voice, vocoder: object = tiny.vocoder
    ):
        (tmp_path / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        argv = [voice, vocoder, tmp_path / "list.txt", "-o", tmp_path / "out", "--dataset-path", tmp_path, *options]
        return evaluate_voice.main([str(word) for word in argv])

    return evaluate


@pytest.fixture(autouse=True)
def signals_as_before():
    """A test that interrupts leaves no handler behind."""
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether packages that are not required are installed does not matter here."""
    monkeypatch.setattr(judges, "find_spec", lambda name: None)


@pytest.fixture
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and few tests look at pictures."""
    monkeypatch.setattr(evaluator, "plot_speech", lambda *_: Figure(figsize=(1, 1)))


def results(tmp_path: Path) -> dict:
    return json.loads((tmp_path / "out" / "evaluation.json").read_text(), parse_constant=pytest.fail)  # strict JSON


def read_page(tmp_path: Path) -> PageReader:
    return PageReader((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["synthesised/a.wav", "recorded/a.wav"])
def test_an_evaluation_replaces_nothing_that_it_reads(evaluate, tmp_path, name):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    before = (tmp_path / "a.wav").read_bytes()
    path.write_bytes(before)
    with pytest.raises(OptionError, match=f"{name} is in --output .*; give another folder"):
        evaluate("--recordings", path.parent, lines=("output\ttext", "a.wav\tGo on."), vocoder="griffin-lim")
    assert path.read_bytes() == before


def test_each_utterance_is_heard_compared_and_timed(evaluate, tmp_path, tiny, capsys):
    assert evaluate("--jasper", tiny.recognizer) == 0
    found = results(tmp_path)
    first, second, third = found["utterances"]
    assert [one["name"] for one in (first, second, third)] == ["a.wav", "b.wav", "sub/c.wav"]
    waves = [
        load_wav(path, sampling_rate=22050).numpy() for path in (tmp_path / "a.wav", tmp_path / "out/synthesised/a.wav")
    ]
    distance = aligned(*(Clip(wave, 22050) for wave in waves)).distance
    assert first["mcd_db"] == pytest.approx(distance["mcd_db"])
    assert first["voicing_error"] == pytest.approx(distance["voicing_error"])
    assert first["duration"] == pytest.approx(len(waves[1]) / 22050)
    assert first["real_time_factor"] == pytest.approx(first["work"] / first["duration"])
    assert (first["reference"], second["reference"], third["reference"]) == ("go on", "not so long", "hm")
    assert all(one["wer"] is not None and one["heard"] is not None for one in (first, second, third))
    assert third["mcd_db"] is third["f0_rmse_cents"] is third["recording"] is None
    assert list(first["beside"]) == ["recording", "griffin-lim"] and list(third["beside"]) == ["griffin-lim"]
    assert all(beside["wer"] is not None for beside in first["beside"].values())
    assert first["beside"]["griffin-lim"]["duration"] == pytest.approx(first["duration"])
    assert soundfile.info(tmp_path / "out/griffin-lim/sub/c.wav").samplerate == 22050
    assert first["mel_distance"] is first["beside"]["recording"]["mcd_db"] is None
    means = found["averages"]
    assert means["mcd_db"] == pytest.approx((first["mcd_db"] + second["mcd_db"]) / 2)
    letters = [len(one["reference"]) for one in (first, second, third)]
    errors = [one["cer"] * n for one, n in zip((first, second, third), letters)]
    assert means["cer"] == pytest.approx(sum(errors) / sum(letters))
    work = sum(one["work"] for one in found["utterances"])
    assert means["real_time_factor"] == pytest.approx(work / sum(one["duration"] for one in found["utterances"]))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith(("note", "report", "figures"))) <= 80
    start = next(number for number, line in enumerate(lines) if line.split() == AVERAGES)
    rows = {line[2:].split("  ")[0]: line.split()[-3:] for line in reversed(lines[start + 1 :])}
    assert rows["MCD (dB)"] == [
        f"{means['mcd_db']:.2f}",
        "-",
        f"{found['averages_beside']['griffin-lim']['mcd_db']:.2f}",
    ]
    assert "mel distance" not in rows and "RTF (s)" in rows
    assert all(any(name in line for line in lines[:start]) for name in ("WER", "MCD", "RTF"))


@pytest.mark.usefixtures("blank_pictures")
def test_a_recording_that_is_broken_within_costs_its_own_figures_alone(evaluate, tmp_path, tiny, capsys):
    wave, rate = soundfile.read(tmp_path / "a.wav")
    wave[1000] = np.nan
    soundfile.write(tmp_path / "a.wav", wave, rate, subtype="FLOAT")
    assert evaluate("--jasper", tiny.recognizer) == 1
    first, second, third = results(tmp_path)["utterances"]
    assert "a.wav: samples from nan to nan, expected" in first["error"] and first["wer"] is not None
    assert second["mcd_db"] > 0 and second["error"] is third["error"] is None
    summary, row = capsys.readouterr().out.splitlines()[-2:]
    assert summary == "1 of 3 utterances could not be evaluated completely" and row.endswith(first["error"])
    assert "samples from nan to nan" in read_page(tmp_path).text
    write_recordings(tmp_path, ["a.wav"])
    assert evaluate("--jasper", tiny.recognizer) == 0  # tried again
    assert "2 of 3 utterances are from an earlier run" in capsys.readouterr().out


def counted(monkeypatch: pytest.MonkeyPatch, *, interrupt_after: int | None = None) -> list[str]:
    """Names of the utterances that are evaluated from now on."""
    names: list[str] = []
    evaluate = Evaluator.evaluate

    def count(self, item):
        names.append(item.name)
        if len(names) == interrupt_after:
            os.kill(os.getpid(), signal.SIGINT)
        return evaluate(self, item)

    monkeypatch.setattr(Evaluator, "evaluate", count)
    return names


@pytest.mark.usefixtures("blank_pictures")
def test_an_interrupted_run_reports_what_is_done_and_goes_on_from_there(evaluate, tmp_path, monkeypatch, capsys):
    names = counted(monkeypatch, interrupt_after=2)
    assert evaluate() == 128 + signal.SIGINT
    assert names == ["a.wav", "b.wav"]
    before = results(tmp_path)["utterances"]
    assert [one["name"] for one in before] == names
    out = capsys.readouterr().out
    assert "stopped after 2 of 3" in out and "\n2 of 3 utterances\n" in out
    assert "2 of 3 utterances: the evaluation was stopped" in read_page(tmp_path).text
    assert results(tmp_path)["extent"] == {"n_done": 2, "n_listed": 3, "stopped": True}
    assert evaluate() == 0
    assert "stopped" not in read_page(tmp_path).text
    assert not results(tmp_path)["extent"]["stopped"]
    assert names == ["a.wav", "b.wav", "sub/c.wav"]
    after = results(tmp_path)["utterances"]
    assert after[:2] == before and [one["name"] for one in after] == names


@pytest.mark.parametrize("change", ["pace", "text", "sound", "kill"])
@pytest.mark.usefixtures("blank_pictures")
def test_only_what_still_holds_is_taken_over(evaluate, tmp_path, monkeypatch, change):
    assert evaluate() == 0
    names = counted(monkeypatch)
    options, lines, expected = [], list(LINES), ["a.wav", "b.wav", "sub/c.wav"]
    if change == "pace":
        options = ["--pace", "0.5"]
    elif change == "text":
        lines[1], expected = lines[1].replace("Go", "Come"), ["a.wav"]
    elif change == "sound":
        (tmp_path / "out/synthesised/a.wav").unlink()
        expected = ["a.wav"]
    else:  # in the middle of a line
        path, expected = tmp_path / "out/utterances.jsonl", ["sub/c.wav"]
        path.write_bytes(path.read_bytes()[:-40])
    assert evaluate(*options, lines=tuple(lines)) == 0
    assert names == expected
    assert len(results(tmp_path)["utterances"]) == 3


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (("output\ttext\twav", "a.wav\tGo.\tmissing.wav"), (), r"missing\.wav: no such file \(.*list\.txt:2\)"),
        (("Go on.", "5 < 6"), ("--unknown-symbols", "error"), r"'<' .*list\.txt:2"),
        (("output\twav", "a.wav\ta.wav"), (), r"list\.txt:2: no text column"),
        (("a.wav|Go on.",), ("--recordings", "nowhere"), "nowhere: no such folder, or"),
        (("output\ttext\twav", "a.wav\tGo.\tlist"), (), r"list: .*list\.txt:2"),
        (
            ("z.wav|Go on.",),
            ("--recordings", "."),
            r"no such folder, or it has no recording of the list, such as z\.wav",
        ),
        (("z.wav|Go on.",), ("--transcripts", "list"), r"has no words for any utterance, such as z\.wav"),
        (("Go on.",), ("-o", "list"), r"list.*: cannot be written .*--output"),
    ],
)
def test_mistakes_in_the_list_show_before_any_work(evaluate, tmp_path, monkeypatch, lines, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list").write_text("other.wav|Go on.\n")
    with pytest.raises(InputError, match=message):
        evaluate(*options, lines=lines)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("blank_pictures")
def test_a_listening_test_has_every_checkpoint_and_folder(evaluate, tmp_path, tiny, capsys):
    other, sounds = save_vocoder(tmp_path / "other.pt", AUDIO), tmp_path / "sounds"
    lines = ("output\ttext\twav", "a.wav\tGo on.\ta.wav", "c.wav\tHm?\t")
    write_recordings(sounds, ["a.wav", "c.wav"])
    assert evaluate("--listening", "mushra", "--against", other, sounds, lines=lines) == 0
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
    assert evaluate("--listening", "ab", "--against", other, lines=lines) == 0
    assert "2 of 2 utterances are from an earlier run" in capsys.readouterr().out
    key = read_json(tmp_path / "out" / LISTENING_KEY)
    assert key["systems"] == names and list(key["trials"]) == ["a.wav", "c.wav"]
    assert evaluate("--listening", "ab", lines=lines) == 0
    key = read_json(tmp_path / "out" / LISTENING_KEY)
    assert key["systems"] == [names[0], RECORDING] and list(key["trials"]) == ["a.wav"]


def test_mistakes_in_a_comparison_show_before_anything_is_spoken(evaluate, tmp_path, tiny):
    for path, words in (
        (tmp_path, r"expected evaluation\.json in it"),
        (tiny.vocoder, "a system is given twice"),
        (tiny.recognizer, "of Jasper, expected a generator or vocoder"),
        (tmp_path / "none", "no such checkpoint or folder"),
    ):
        with pytest.raises(OptionError, match=words):
            evaluate("--against", path)
    for kind, words in (("mushra", "give --recordings"), ("ab", "or --against")):
        with pytest.raises(OptionError, match=words):
            evaluate("--listening", kind, lines=("output\ttext\twav", "c.wav\tHm?\t"))
    assert not (tmp_path / "out").exists()
