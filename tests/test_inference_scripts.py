"""The shell script that tries a trained voice."""

import subprocess

import pytest
from shell import ROOT, run_bash


def shell(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    return run_bash(ROOT / "scripts" / script, *arguments, CPU="true", **variables)


def test_the_example_passes_its_variables_and_arguments_on():
    done = shell("inference_example.sh", "--pace", "0.9", DRY_RUN="1", FASTPITCH="a b.pt", AMP="true", EMA="true")
    assert done.returncode == 0
    words = done.stdout.split(" ")
    assert words[1] == "inference.py"
    for part in ("--fastpitch 'a b.pt'", "--amp --ema --pace 0.9", "--output output/audio_devset10_amp"):
        assert part in done.stdout
    assert not {"--cuda", "--hifigan", "--denoising-strength"} & set(words)


def test_the_example_speaks_through_a_vocoder_with_a_little_denoising():
    done = shell("inference_example.sh", DRY_RUN="1", FASTPITCH="f.pt", HIFIGAN="h.pt")
    assert "--hifigan h.pt --denoising-strength 0.005" in done.stdout


def test_the_example_speaks_with_a_tacotron_2_through_waveglow():
    done = shell("inference_example.sh", DRY_RUN="1", TACOTRON2="t.pt", WAVEGLOW="w.pt")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--tacotron2 t.pt --waveglow w.pt --sigma-infer 0.9 --denoising-strength 0.01" in done.stdout
    assert "--fastpitch" not in done.stdout and "--speaker" not in done.stdout


@pytest.mark.parametrize("header", ["mel\toutput", "output|wav", "wav\r"])
def test_a_list_of_mels_or_recordings_needs_no_voice(tmp_path, header):
    (tmp_path / "list.tsv").write_text(f"{header}\n")
    for script in ("inference_example.sh", "inference_benchmark.sh"):
        done = shell(script, DRY_RUN="1", HIFIGAN="h.pt", PHRASES=str(tmp_path / "list.tsv"))
        assert (done.returncode, done.stderr) == (0, "")
        assert "--hifigan h.pt" in done.stdout
        assert "--fastpitch" not in done.stdout and "--speaker" not in done.stdout
