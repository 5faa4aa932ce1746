"""What speaks where no checkpoint is given: the voice and vocoder in voices/, if they are there."""

import io
from pathlib import Path

import pytest
import soundfile
from tiny_voice import save_vocoder, save_voice

import inference
from common.errors import InputError, OptionError
from common.serving.arguments import load_models
from common.synthesis import loading
from common.synthesis.loading import load_voice


@pytest.fixture
def voices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of voices/, with nothing in it."""
    folder = tmp_path / "voices"
    folder.mkdir()
    monkeypatch.setattr(loading, "VOICES", folder)
    return folder


@pytest.fixture
def filled(voices: Path) -> Path:
    save_voice(voices / loading.VOICE)
    save_vocoder(voices / loading.VOCODER)
    return voices


def test_inference_speaks_a_text_and_says_which_voice_does(filled: Path, tmp_path: Path, capsys):
    assert inference.main(["--text", "good day.", "-o", str(tmp_path / "speech.wav")]) == 0
    assert soundfile.info(tmp_path / "speech.wav").frames > 1000
    out = capsys.readouterr().out
    assert f"no voice is given: using {filled / loading.VOICE}\n" in out and f"{filled / loading.VOCODER}\n" in out
    assert "Griffin-Lim" not in out


def test_a_voice_of_ones_own_speaks_through_the_shipped_vocoder(filled: Path, tmp_path: Path, capsys):
    mine = save_voice(tmp_path / "mine.pt")
    words = ["--text", "good day.", "-o", str(tmp_path / "a.wav"), "--fastpitch", str(mine)]
    assert inference.main(words) == 0
    line = f"no vocoder checkpoint is given: using {filled / loading.VOCODER}\n"
    assert line in capsys.readouterr().out
    assert inference.main([*words, "--torchscript"]) == 0 and line in capsys.readouterr().out
    assert inference.main([*words, "--griffin-lim-iters", "60"]) == 0 and "Griffin-Lim" in capsys.readouterr().out
    for asked, name in (([], "hifigan"), (["--griffin-lim-iters", "2"], "griffin_lim")):
        models = load_models(["--cpu", "--fastpitch", str(mine), *asked])
        assert models.voice.synthesizer.vocoder.name == name
    assert load_voice(mine, device="cpu").synthesizer.vocoder.name == "hifigan"


def test_without_the_files_the_errors_are_as_before(voices: Path, tmp_path: Path):
    with pytest.raises(OptionError, match=r"no voice for text.*--fastpitch.*copy_list\.sh"):
        inference.main(["--text", "good day.", "-o", str(tmp_path / "a.wav")])
    with pytest.raises(InputError, match="no voice for text"):
        load_voice()
    with pytest.raises(OptionError, match=r"no voice for text.*--fastpitch"):
        load_models([])


@pytest.mark.parametrize("words", [["--text", "good day."], ["-i", "-"], ["--text", "hi", "--quiet"]])
def test_one_text_is_written_to_a_file_if_nothing_else_is_asked(
    words: list[str], filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"good day.")))
    assert inference.main(words) == 0
    assert soundfile.info("speech.wav").frames > 1000
    (tmp_path / "speech.wav").unlink()
    assert inference.main(["--text", "good day.", "--benchmark", "--log-file", "log.json"]) == 0
    assert not (tmp_path / "speech.wav").exists()  # measures


@pytest.mark.parametrize("name", ["a.aiff", "a.MP4", "folder/a.aac"])
def test_sound_of_another_format_is_refused_and_makes_no_folder(name: str, filled: Path, tmp_path: Path):
    message = rf"--output .*{Path(name).name}: expected a name that ends in \.wav, .*\.opus, \.m4a, or a folder"
    with pytest.raises(OptionError, match=message):
        inference.main(["--text", "good day.", "-o", str(tmp_path / name)])
    assert not (tmp_path / name).exists()
    assert inference.main(["--text", "good day.", "-o", str(tmp_path / "v1.5")]) == 0
    assert (tmp_path / "v1.5/speech.wav").is_file()
