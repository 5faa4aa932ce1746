"""extract_mels.py and TextGrids: as in the original, in any number of processes, and one line for what is refused."""

import json
import os
import re
import shutil
import signal
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from corpus import RATE, add_clip, features, glide, make_corpus, write_textgrid
from golden_files import listed, read_golden
from kills import Forked, at_write, finish
from safetensors.torch import load_file
from test_failing_writes import ended

import extract_mels
from common.audio.options import ESTIMATORS
from common.audio.pitch import estimate_pitch
from common.audio.wav import load_wav
from common.config import AudioConfig, from_plain
from common.errors import InputError, OutputError
from common.extraction.batches import map_in_processes
from common.extraction.features import Extraction, Utterance, write_feature
from common.extraction.textgrid import TextGridAlignment, fit, read_alignment, trim_silence

ALL = ("--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char")


@pytest.fixture
def extract(capsys: pytest.CaptureFixture):
    """Run the command in this process: (exit status, stdout, error lines of stderr)."""

    def call(folder: Path, *options: str | Path, lists: tuple[str, ...] = ("train.txt",)) -> tuple[int, str, str]:
        words = ["-d", folder, "--wav-text-filelist", *(folder / name for name in lists), "--num-workers", 1, *options]
        status = ended(extract_mels.main, *words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        errors = [line for line in err.splitlines() if "error: " in line]
        return status, out, "\n".join(errors)

    return call


def load(folder: Path, name: str) -> torch.Tensor:
    return torch.load(folder / f"{name}.pt", weights_only=True)


def golden_corpus(goldens: Path, folder: Path) -> Path:
    """The clips of the original's runs, in the order of their lists."""
    run = next(iter(read_golden(goldens / "textgrid" / "trim_silence.json", "runs").values()))
    names = [re.match(r"mels/(.*?)\.pt", line)[1] for line in run["meta_file_lines"]]
    files = read_golden(goldens / "textgrid" / "expected.json", "files")
    assert names
    for name in names:
        (folder / "wavs").mkdir(exist_ok=True)
        (folder / "TextGrid").mkdir(exist_ok=True)
        shutil.copyfile(goldens / "textgrid" / files[name]["clip_file"], folder / "wavs" / f"{name}.flac")
        grid = (goldens / "textgrid" / files[name]["file"]).read_bytes()  # in which the original read "spn" as silence
        (folder / "TextGrid" / f"{name}.TextGrid").write_bytes(grid.replace(b'"spn"', b'""'))
    (folder / "train.txt").write_text("".join(f"wavs/{name}.flac|some words\n" for name in names))
    return folder


@pytest.mark.parametrize("trim", listed("textgrid/trim_silence.json", "runs"))
def test_a_corpus_of_real_clips_becomes_what_the_original_made(goldens: Path, tmp_path: Path, extract, trim: str):
    golden_corpus(goldens, tmp_path)
    wanted = read_golden(goldens / "textgrid" / "trim_silence.json", "runs", trim)
    options = [] if wanted["trim_silence"] is None else ["--trim-silence", trim]
    status, out, errors = extract(tmp_path, *ALL, "--output-meta-file", tmp_path / "meta.txt", *options)
    n_clips = len(wanted["clips"])
    assert (status, errors) == (0, "") and f"{n_clips} of {n_clips} utterances" in out

    tensors = load_file(goldens / "textgrid" / "trim_silence.safetensors")
    untrimmed = load_file(goldens / "audio" / "mel.safetensors")
    assert (tmp_path / "meta.txt").read_text().splitlines() == wanted["meta_file_lines"]
    found = json.loads((tmp_path / "pitch_char_stats__train.json").read_text())
    assert found == pytest.approx(wanted["pitch_char_stats"], abs=1e-6)
    for name, clip in wanted["clips"].items():
        mel, durations = load(tmp_path / "mels", name), load(tmp_path / "durations", name)
        assert durations.tolist() == clip["durations"] and int(durations.sum()) == mel.shape[1]
        assert mel.dtype == torch.float32 and list(mel.shape) == clip["mel_shape"]
        if f"{name}.mel" in untrimmed:
            difference = mel - untrimmed[f"{name}.mel"][:, slice(*clip["mel_slice"])]
            assert difference.abs().max() < 2e-3 and difference.abs().mean() < 1e-5
        pitch = load(tmp_path / "pitch_char", name)
        assert (pitch - tensors[f"trim_{trim}.{name}.pitch_char_normalised"]).abs().max() < 1e-6


def test_pitch_of_mel_frames_and_thirds_of_symbols_is_normalized_by_its_own_statistics(
    goldens: Path, tmp_path: Path, extract
):
    golden_corpus(goldens, tmp_path)
    lines = (tmp_path / "train.txt").read_text().splitlines(keepends=True)
    golden = load_file(goldens / "pitch" / "pitch_1_0.safetensors")
    facts = read_golden(goldens / "pitch" / "pitch_1_0.json")
    (tmp_path / "train.txt").write_text(
        "".join(line for line in lines if Path(line.split("|")[0]).stem in facts["clips"])
    )
    kinds = ("pitch_mel", "pitch_char", "pitch_trichar")
    options = ["--extract-" + kind.replace("_", "-") for kind in kinds]
    assert extract(tmp_path, "--extract-durs-from-textgrids", *options)[0] == 0
    for kind in kinds:
        found = json.loads((tmp_path / f"{kind}_stats__train.json").read_text())
        wanted = facts["normalisation"][kind.removeprefix("pitch_")]
        assert found == pytest.approx({"mean": wanted["mean"], "std": wanted["std"]}, abs=1e-6)
        for clip in facts["clips"]:
            wanted_pitch = golden[f"{clip}.textgrid.{kind}_normalised"]
            assert (load(tmp_path / kind, clip) - wanted_pitch).abs().max() < 1e-6
            assert (load(tmp_path / f"{kind}_hz", clip) - golden[f"{clip}.textgrid.{kind}"]).abs().max() < 1e-6


def test_pitch_ends_where_the_textgrid_does_as_the_originals(goldens: Path, tmp_path: Path, extract):
    golden_corpus(goldens, tmp_path)
    (line, *_) = (tmp_path / "train.txt").read_text().splitlines()
    (tmp_path / "train.txt").write_text(line + "\n")
    name = Path(line.split("|")[0]).stem
    wave, rate = soundfile.read(tmp_path / "wavs" / f"{name}.flac")
    end = (len(wave) - 50.5) / rate
    path = tmp_path / "TextGrid" / f"{name}.TextGrid"
    grid = path.read_text(encoding="utf-8")
    assert str(len(wave) / rate) in grid
    path.write_text(grid.replace(str(len(wave) / rate), str(end)), encoding="utf-8")
    assert extract(tmp_path, "--extract-durs-from-textgrids", "--extract-pitch-mel", "--trim-silence", "0.1")[0] == 0
    pitch = load(tmp_path / "pitch_mel_hz", name).numpy()
    n_frames = 1 + len(wave) // 256
    wanted = estimate_pitch(wave, AudioConfig(), n_frames=n_frames, part=(0, end))
    assert any(np.array_equal(wanted[i : i + len(pitch)], pitch) for i in range(1 + n_frames - len(pitch)))


def test_each_bad_utterance_is_refused_in_one_line_and_the_good_ones_are_made(tmp_path: Path, extract):
    make_corpus(tmp_path, 3)
    wavs, grids = tmp_path / "wavs", tmp_path / "TextGrid"
    for name in ("stereo", "nan", "other", "no_grid", "bad_grid", "no_text"):
        add_clip(tmp_path, name, 1.0)
    soundfile.write(wavs / "stereo.wav", np.stack([glide(1.0)] * 2, axis=1), RATE)
    soundfile.write(wavs / "nan.wav", np.where(np.arange(RATE) == 9, np.nan, glide(1.0)), RATE, subtype="FLOAT")
    write_textgrid(grids / "other.TextGrid", 1.5)
    (grids / "no_grid.TextGrid").unlink()
    (grids / "bad_grid.TextGrid").write_text("".join((grids / "c000.TextGrid").read_text().splitlines(True)[:20]))
    bad = {
        "wavs/stereo.wav|a": "wavs/stereo.wav: 2 channels, expected 1",
        "wavs/nan.wav|a": "wavs/nan.wav: samples from nan to nan, expected within [-1, 1]",
        "wavs/other.wav|a": r"TextGrid/other.TextGrid: 130 frames (1.51 s), the recording has 87 (1.01 s)",
        "wavs/no_grid.wav|a": "TextGrid/no_grid.TextGrid: no such TextGrid",
        "wavs/bad_grid.wav|a": "TextGrid/bad_grid.TextGrid: not a readable TextGrid: Early end of text",
        "wavs/no_text.wav| ": "wavs/no_text.wav: the transcript is empty",
        "wavs/c001.wav|again": "wavs/c001.wav: duplicate, its files would be those of wavs/c001.wav",
    }
    with (tmp_path / "train.txt").open("a") as file:
        file.writelines(f"{line}\n" for line in bad)
    status, out, errors = extract(tmp_path, *ALL, "--output-meta-file", tmp_path / "meta.txt")
    assert (status, errors) == (1, "")
    assert f"refused: {len(bad)} of {3 + len(bad)} utterances" in out
    for number, reason in enumerate(bad.values(), start=4):
        rows = [line for line in out.splitlines() if f"train.txt:{number} " in line]
        assert len(rows) == 1 and reason in rows[0], (reason, rows)
    names = ["c000", "c001", "c002"]
    for folder in ("mels", "durations", "pitch_char"):
        assert sorted(path.stem for path in (tmp_path / folder).glob("*.pt")) == names
    assert [line.split("|")[0] for line in (tmp_path / "meta.txt").read_text().splitlines()] == [
        f"mels/{name}.pt" for name in names
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "train.txt: no such filelist"),
        ("/wavs/c000.wav|a\n", "train.txt:1: /wavs/c000.wav is outside the dataset"),
    ],
)
def test_a_bad_list_ends_in_one_line_before_anything_is_made(tmp_path: Path, extract, content, message: str):
    make_corpus(tmp_path, 1)
    (tmp_path / "train.txt").unlink()
    if content is not None:
        (tmp_path / "train.txt").write_text(content)
    status, out, errors = extract(tmp_path, *ALL)
    assert status == 1 and out == "" and message in errors and "\n" not in errors
    assert features(tmp_path) == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--extract-durations"], "--extract-durations needs --tacotron2-checkpoint; or use --extract-durs-from-"),
        (["--extract-mels", "--trim-silence", "0.1"], "--trim-silence needs --extract-durs-from-textgrids"),
        (["--extract-mels", "--win-length", "2048"], "win_length 2048 is longer than filter_length 1024"),
        (["--extract-mels", "--output-meta-file", "a", "b"], "2 files for 1 list"),
    ],
)
def test_options_that_do_not_fit_end_in_one_line(tmp_path: Path, extract, options: list[str], message: str):
    make_corpus(tmp_path, 1)
    status, out, errors = extract(tmp_path, *options)
    assert status == 2 and out == "" and message in errors and "\n" not in errors
    assert features(tmp_path) == {}


def test_what_is_whole_is_kept_and_what_is_broken_is_made_again(tmp_path: Path, extract):
    make_corpus(tmp_path, 4)
    options = (*ALL, "--output-meta-file", tmp_path / "a.meta")
    assert extract(tmp_path, *options)[0] == 0
    wanted = features(tmp_path)
    mel = tmp_path / "mels" / "c001.pt"
    mel.write_bytes(mel.read_bytes()[:-100])  # truncated
    (tmp_path / "durations" / "c002.pt").unlink()
    torch.save(torch.full((80, 87), float("nan")), tmp_path / "mels" / "c000.pt")
    torch.save(torch.zeros(3), tmp_path / "pitch_char_hz" / "c003.pt")  # of another shape
    untouched = tmp_path / "mels" / "c002.pt"
    before = untouched.stat().st_mtime_ns
    status, out, _ = extract(tmp_path, *options, "--resume")
    assert status == 0 and features(tmp_path) == wanted and untouched.stat().st_mtime_ns == before
    table = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
    assert table["mels/"] == ["2", "2"] and table["durations/"] == ["1", "3"] and table["pitch_char_hz/"] == ["1", "3"]


def test_intervals_can_be_the_transcripts_characters(tmp_path: Path, extract):
    make_corpus(tmp_path, 2)
    (tmp_path / "train.txt").write_text("wavs/c000.wav|abcdef\nwavs/c001.wav|abcde\n")
    options = (*ALL, "--input-type", "char", "--output-meta-file", tmp_path / "a.meta")
    status, out, _ = extract(tmp_path, *options)
    assert status == 1
    assert (tmp_path / "a.meta").read_text() == "mels/c000.pt|durations/c000.pt|pitch_char/c000.pt|abcdef\n"
    assert "TextGrid/c001.TextGrid: 6 intervals, the transcript has 5 characters" in out


def test_features_of_other_settings_are_never_mixed(tmp_path: Path, extract):
    make_corpus(tmp_path, 1)
    assert extract(tmp_path, *ALL)[0] == 0
    stored = json.loads((tmp_path / "mels" / "audio.json").read_text())
    assert from_plain(AudioConfig, stored, where="audio.json") == AudioConfig()
    wanted = features(tmp_path)
    status, _, errors = extract(tmp_path, *ALL, "--n-mel-channels", "40", "--mel-fmax", "7000", "--resume")
    assert status == 1
    assert "n_mels: 80 (there), 40 (options); mel_fmax: 8000.0 (there), 7000.0 (options)" in errors
    status, _, errors = extract(tmp_path, *ALL, "--trim-silence", "0.05")
    assert status == 1 and "trim_silence: None (there), 0.05 (options)" in errors
    assert features(tmp_path) == wanted
    (tmp_path / "mels" / "audio.json").unlink()
    status, _, errors = extract(tmp_path, *ALL)
    assert status == 1 and "contains features with unknown settings" in errors


def test_a_validation_list_is_normalized_by_the_training_lists_statistics(tmp_path: Path, extract):
    make_corpus(tmp_path, 6)
    lines = (tmp_path / "train.txt").read_text().splitlines(keepends=True)
    (tmp_path / "train.txt").write_text("".join(lines[:4]))
    (tmp_path / "val.txt").write_text("".join(lines[4:]))
    metas = ("--output-meta-file", tmp_path / "train.meta", tmp_path / "val.meta")
    assert extract(tmp_path, *ALL, *metas, lists=("train.txt", "val.txt"))[0] == 0
    together = features(tmp_path)
    statistics = tmp_path / "pitch_char_stats__train.json"
    assert [len((tmp_path / name).read_text().splitlines()) for name in ("train.meta", "val.meta")] == [4, 2]
    pitch = torch.cat([load(tmp_path / "pitch_char_hz", f"c{i:03d}") for i in range(4)])
    assert json.loads(statistics.read_text())["mean"] == pytest.approx(float(pitch[pitch != 0].mean()))
    for given in ((), ("--pitch-mean-std-file", statistics)):  # those of the list extracted before are found
        shutil.rmtree(tmp_path / "pitch_char")
        options = (*ALL, "--output-meta-file", tmp_path / "val.meta", *given, "--resume")
        status, out, _ = extract(tmp_path, *options, lists=("val.txt",))
        assert status == 0 and (f"pitch_char is normalized with {statistics}, from the list" in out) == (not given)
        for name in ("c004", "c005"):
            assert features(tmp_path)[f"pitch_char/{name}.pt"] == together[f"pitch_char/{name}.pt"]
    shutil.copyfile(statistics, tmp_path / "pitch_char_stats__more.json")
    status, _, errors = extract(tmp_path, *ALL, lists=("val.txt",))
    assert status == 1 and "pitch_char_stats__more.json, pitch_char_stats__train.json" in errors


def test_folders_below_wavs_are_mirrored_and_speakers_are_passed_on(tmp_path: Path, extract):
    lines = [add_clip(tmp_path, name, 1.0, low=low) for name, low in (("ann/a.1", 100), ("bob/a.1", 150))]
    text = "".join(f"{line.rstrip()}|{speaker}\n" for speaker, line in enumerate(lines))
    (tmp_path / "train.txt").write_text(text)
    assert extract(tmp_path, *ALL, "--output-meta-file", tmp_path / "meta.txt")[0] == 0
    rows = [line.split("|") for line in (tmp_path / "meta.txt").read_text().splitlines()]
    assert [row[0] for row in rows] == ["mels/ann/a.1.pt", "mels/bob/a.1.pt"]
    assert [row[4] for row in rows] == ["0", "1"] and rows[0][3] == "sil HH AH0 L OW1 sil"
    assert all((tmp_path / path).is_file() for row in rows for path in row[:3])
    assert (tmp_path / "mels" / "ann" / "audio.json").is_file()


@pytest.mark.parametrize("method", ESTIMATORS)
def test_pitch_of_frames_is_extracted_in_hertz_for_lists_without_durations(method: str, tmp_path: Path, extract):
    make_corpus(tmp_path, 2, seconds=0.5)
    options = ("--output-meta-file", tmp_path / "new.txt", "--extract-mels", "--extract-pitch", "--pitch-method")
    assert extract(tmp_path, *options, method)[0] == 0
    assert (tmp_path / "new.txt").read_text().splitlines()[0] == "mels/c000.pt|pitch/c000.pt|Hello number c000."
    wave = load_wav(tmp_path / "wavs" / "c000.wav", sampling_rate=RATE)
    made = load(tmp_path, "pitch/c000")
    n_frames = load(tmp_path, "mels/c000").shape[1]
    wanted = estimate_pitch(wave.numpy(), AudioConfig(), n_frames=n_frames, method=method)
    assert made.dtype == torch.float32
    assert np.allclose(made.numpy(), wanted, atol=1e-3)
    assert made.max() > 100  # Hz
    before = features(tmp_path)
    (tmp_path / "pitch" / "c001.pt").unlink()
    assert extract(tmp_path, *options, method, "--resume")[0] == 0
    assert features(tmp_path) == before
    status, _, error = extract(tmp_path, *options, method, "--pitch-max", "150")
    assert status == 1 and "pitch_max: None (there), 150.0 (options)" in error
    other = next(name for name in ESTIMATORS if name != method)
    status, _, error = extract(tmp_path, *options, other)
    assert status == 1
    assert f"was made with other settings: pitch_method: '{method}' (there), '{other}' (options); give" in error


N_CLIPS = 24


def command(folder: Path, *options: str, n_workers: int) -> list[str]:
    words = ["-d", folder, "--wav-text-filelist", folder / "train.txt", "--output-meta-file", folder / "train.meta"]
    what = ["--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char", "--num-workers", n_workers]
    return [str(word) for word in (*words, *what, *options)]


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Features made by one process without interruption."""
    folder = make_corpus(tmp_path_factory.mktemp("one"), N_CLIPS)
    assert extract_mels.main(command(folder, n_workers=1)) == 0
    made = features(folder)
    assert len([name for name in made if name.startswith("mels/") and name.endswith(".pt")]) == N_CLIPS
    return made


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_ctrl_c_and_a_kill_leave_no_process_and_resuming_gives_the_same_files(tmp_path: Path, wanted: dict[str, bytes]):
    make_corpus(tmp_path, N_CLIPS)
    mels = tmp_path / "mels"
    interrupt = at_write(signal.SIGINT, mels, count=3, group=True)  # as a terminal does: to the whole group
    status, out, err = finish(Forked("extract_mels", *command(tmp_path, n_workers=2), signal_at=interrupt))
    assert (status, out) == (130, "")
    assert "interrupted" in err and "Traceback" not in err
    assert not [name for name in features(tmp_path) if name.endswith(".tmp")]
    assert not (tmp_path / "train.meta").exists()

    impatient = at_write(signal.SIGINT, mels, count=2, group=True, times=2)
    status, out, err = finish(Forked("extract_mels", *command(tmp_path, "--resume", n_workers=2), signal_at=impatient))
    assert status in (130, -signal.SIGINT) and out == "", "which a shell calls 130 too"
    assert "Traceback" not in err

    made = sorted(mels.glob("[!.]*.pt"))
    assert len(made) >= 2
    for path in made[1:]:  # of which some are to be made again
        path.unlink()
    kill = at_write(signal.SIGKILL, mels, count=2)
    status, _, _ = finish(Forked("extract_mels", *command(tmp_path, "--resume", n_workers=2), signal_at=kill))
    assert status == -signal.SIGKILL, "and no worker outlives its parent"
    assert not (tmp_path / "train.meta").exists()

    assert extract_mels.main(command(tmp_path, "--resume", n_workers=2)) == 0
    assert features(tmp_path) == wanted


def double(item: int) -> int:
    return 2 * item


def left_to_the_parent(item: int) -> bool:
    return all(signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGINT, signal.SIGHUP))


def die(item: int) -> int:
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def write_below_a_file(item: int) -> None:
    write_feature(Path("/dev/null/mels/a.pt"), torch.zeros(3))


def test_a_worker_that_dies_or_cannot_write_is_reported():
    threads = torch.get_num_threads()
    work = partial(map_in_processes, n_workers=2, desc="work")
    assert list(work(double, range(100))) == [2 * item for item in range(100)]
    assert all(work(left_to_the_parent, range(4)))
    with pytest.raises(OutputError, match=r"mels/a\.pt: cannot be written \(Not a directory\); .*--resume"):
        list(work(write_below_a_file, [1, 2]))
    with pytest.raises(RuntimeError, match=r"DataLoader worker "):
        list(work(die, range(20)))
    assert torch.get_num_threads() == threads


FOLDER = "textgrid"
CONFIG = AudioConfig()
FRAME = 256 / 22050  # s


def write_grid(path: Path, intervals: list[tuple[float, float, str]], *, end: float | None = None) -> Path:
    """A short TextGrid with one tier."""
    end = intervals[-1][1] if end is None else end
    head = f'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n{end}\n<exists>\n1\n'
    tier = f'"IntervalTier"\n"phones"\n0\n{end}\n{len(intervals)}\n'
    path.write_text(head + tier + "".join(f'{a}\n{b}\n"{label}"\n' for a, b, label in intervals))
    return path


def trimmed(alignment: TextGridAlignment, seconds: float) -> tuple[list[str], list[int], list[int]]:
    """Phones and durations that remain, and the mel frames: the first and one past the last."""
    phones, frames = trim_silence(alignment, seconds, CONFIG)
    utterance = Utterance(0, 0, "wavs/a.wav", "a", None, "list.txt:1")
    cut = Extraction(utterance, durations=np.array(alignment.durations), kept_symbols=phones, kept_frames=frames)
    return list(alignment.phones[slice(*phones)]), cut.kept_durations.tolist(), list(frames)


def as_published(alignment: TextGridAlignment) -> TextGridAlignment:
    """With unknown words named as silence, where ours keeps them."""
    ends, phones = (0, len(alignment.phones) - 1), enumerate(alignment.phones)
    names = [("sil" if place in ends else "sp") if phone == "spn" else phone for place, phone in phones]
    return replace(alignment, phones=tuple(names))


def test_phones_and_durations_agree_with_the_original(folder: Path):
    files = read_golden(folder / "expected.json", "files")
    assert files
    for name, wanted in files.items():
        got = as_published(read_alignment(folder / wanted["file"], CONFIG))
        assert list(got.phones) == wanted["phones"], name
        assert list(got.durations) == wanted["durations"], name
        fitted = fit(got, wanted["mel_len"], path=folder / wanted["file"], config=CONFIG)
        assert fitted == got


def test_every_malformed_file_is_one_clear_line(folder: Path):
    reasons = {
        "missing_phones_tier": "no tier of intervals named phones, only 'words'",
        "overlapping": r"not a readable TextGrid: .*Overlap",
        "truncated": "not a readable TextGrid: Early end of text",
        "wrong_total_length": r"\d+ frames \(.* s\), the recording has \d+ \(.* s\); is it the TextGrid of this",
    }
    expected = read_golden(folder / "expected.json")
    assert {name.split(".")[-2] for name in expected["malformed"]} == {*reasons}
    for name, fact in expected["malformed"].items():
        path, n_frames = folder / "malformed" / name, expected["files"][fact["clip"]]["mel_len"]
        with pytest.raises(InputError, match=reasons[name.split(".")[-2]]) as caught:
            fit(read_alignment(path, CONFIG), n_frames, path=path, config=CONFIG)
        assert str(caught.value).startswith(f"{path}:") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "newline"), [("utf-16", "\n"), ("utf-16-be", "\r\n"), ("utf-8-sig", "\r"), ("latin-1", "\n")]
)
def test_every_encoding_that_praat_reads_is_read(tmp_path: Path, encoding: str, newline: str):
    path, mark = tmp_path / "a.TextGrid", "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + HEAD + '0\n1\n" \u00e6"\n1\n2\n"K"\n').replace("\n", newline).encode(encoding))
    assert read_alignment(path, CONFIG).phones == ("\u00e6", "K")


@pytest.mark.parametrize(("names", "read"), [(("words", "anna - phones"), 1), (("a - phones", "b - Phones"), 0)])
def test_the_tier_of_phones_may_bear_the_name_of_its_speaker(tmp_path: Path, names: tuple[str, str], read: int):
    tiers = [f'"IntervalTier"\n"{name}"\n0\n2\n1\n0\n2\n"{label}"\n' for name, label in zip(names, ("ab", "a"))]
    path = tmp_path / "a.TextGrid"
    path.write_text(HEAD.partition("1\n")[0] + "2\n" + "".join(tiers))
    if read:
        assert read_alignment(path, CONFIG).phones == ("a",)
        return
    with pytest.raises(InputError, match="several tiers of phones"):
        read_alignment(path, CONFIG)
    path.write_text(path.read_text().replace('"ab"', '""'))
    assert read_alignment(path, CONFIG).phones == ("a",)  # the other speaker is silent


def test_gaps_are_silence_unless_times_are_rounded(tmp_path: Path):
    path = write_grid(tmp_path / "a.TextGrid", [(0.2, 0.4, "AA1"), (0.4, 0.5, "B"), (0.7, 0.9, "K")], end=1.0)
    got = read_alignment(path, CONFIG)
    assert got.phones == ("sil", "AA1", "B", "sp", "K", "sil")
    bounds = [0, 18, 35, 44, 61, 78, 87]  # ceil(t / FRAME)
    assert list(got.durations) == [b - a for a, b in pairwise(bounds)]
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 0.3, "AA1"), (0.3000001, 0.49999, "B")], end=0.5)
    assert read_alignment(path, CONFIG).phones == ("AA1", "B")
    labels = [(0.0, 0.3, "SIL"), (0.3, 0.5, "AA1"), (0.5, 0.7, "<eps>"), (0.7, 1.0, "B")]
    path = write_grid(tmp_path / "a.TextGrid", labels)
    assert read_alignment(path, CONFIG).phones == ("sil", "AA1", "sp", "B")


@pytest.mark.parametrize(("n_frames", "last"), [(8, None), (9, 4), (10, 5), (11, 6), (12, None)])
def test_the_last_interval_takes_a_difference_of_one_frame_and_more_is_refused(
    tmp_path: Path, n_frames: int, last: int | None
):
    path = write_grid(tmp_path / "a.TextGrid", [(0.0, 5 * FRAME, "AA1"), (5 * FRAME, 10 * FRAME, "B")])
    alignment = read_alignment(path, CONFIG)
    if last is not None:
        assert fit(alignment, n_frames, path=path, config=CONFIG).durations == (5, last)
        return
    with pytest.raises(InputError, match=f"10 frames .* the recording has {n_frames}"):
        fit(alignment, n_frames, path=path, config=CONFIG)


def test_trimming_agrees_with_the_original_and_is_sensible_with_one_edge_silence_or_none(folder: Path):
    golden = read_golden(folder / "trim_silence.json")
    files = read_golden(folder / "expected.json", "files")
    cases = [
        (clip, run["trim_silence"], wanted["phones"], wanted["durations"], wanted["mel_slice"])
        for run in golden["runs"].values()
        for clip, wanted in run["clips"].items()
        if run["trim_silence"] is not None
    ]
    single = golden["single_edge_cases"]["cases"]
    assert cases and single
    for case, wanted in single.items():
        clip, seconds = case.split("|trim=")
        values = [wanted[f"intended_{name}"] for name in ("phones", "durations", "mel_slice")]
        cases.append((clip, float(seconds), *values))
    for clip, seconds, phones, durations, mel_slice in cases:
        found = trimmed(as_published(read_alignment(folder / files[clip]["file"], CONFIG)), seconds)
        assert found == (phones, durations, mel_slice), (clip, seconds)


HEAD = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n2\n<exists>\n1\n"IntervalTier"\n"phones"\n0\n2\n2\n'
WRONG_GRIDS = {
    "no quotes": (HEAD + '0\n1\nAA1\n1\n2\n"K"\n', "Found a number while looking for a string"),
    "backwards": (HEAD + '0\n1\n"AA1"\n2\n1\n"K"\n', "Wrong xmin 2 and xmax 1."),
    "a space in a phone": (HEAD + '0\n1\n"AH 0"\n1\n2\n"K"\n', "the phone 'AH 0' at 0 s is not one word"),
    "a bar in a phone": (HEAD + '0\n1\n"A|B"\n1\n2\n"K"\n', "the phone 'A|B' at 0 s is not one word"),
    "absent": (None, "no such TextGrid"),
}


@pytest.mark.parametrize("name", WRONG_GRIDS)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, name: str):
    content, message = WRONG_GRIDS[name]
    path = tmp_path / "a.TextGrid"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_alignment(path, CONFIG)
    assert str(caught.value).startswith(f"{path}:") and message in str(caught.value)
    assert "\n" not in str(caught.value)
