"""Every example of every script's help runs here, with tiny sizes, or is named with the reason why it cannot."""

import json
import os
import shutil
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from foreign import fastpitch_1_0, save_authors_hifigan
from seed_commands import Project, archive_of_ljspeech, place_of_program
from shell import ROOT, training_options, words_of
from sung_words import CONFIG
from test_jasper_data import make_librispeech
from test_scripts_help import SCRIPTS, examples
from tiny_evaluation import AUDIO, make_checkpoints, save_other_models, write_recordings
from tiny_harmonic import save_harmonic

from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.text.config import TextConfig
from scripts.training import list_digits

NOT_RUN = {  # words of examples -> why
    "scripts/quickstart.sh": "trains for minutes; tests/test_quickstart.py runs it with tiny networks",
    "scripts/train_voices.sh": "trains for hours; tests/test_train_voices.py runs its parts",
    "scripts/benchmark_train.sh": "measures the published sizes; tests/test_benchmark_scripts.py runs its parts",
    "LARGEST_BATCH": "measures the published sizes; tests/test_benchmark_scripts.py searches with tiny ones",
    "scripts/train_benchmark_waveglow.sh": "the same",
    "random-": "measures the published sizes; tests/test_benchmark_scripts.py runs the smallest of them",
    "--cuda-graphs": "needs a GPU",
    "scripts/serve.sh": "serves until it is stopped; tests/test_serve_load.py parses its command and talks to a server",
    "benchmark.sh train": "measures the published sizes; tests/test_benchmark_scripts.py runs its parts",
    "benchmark.sh gpu": "measures the published sizes; tests/test_gpu_benchmark.py runs its parts",
    "benchmark.sh updates": "measures the published sizes; tests/test_updates.py takes small networks through it",
    "benchmark.sh voices": "measures a list at hand; tests/test_benchmark_scripts.py measures one",
    "benchmark.sh serving": "starts a server of its own; tests/test_serve_load.py asks one",
    "scripts/make_corpus.sh": "asks a server; tests/test_make_corpus.py starts one",
    "scripts/docker/": "needs Docker; tests/test_model_scripts.py reads the commands",
    "sbatch": "needs Slurm; tests/test_train_scripts.py runs the script with an imitation",
    "scripts/test.sh": "runs these tests",
    "scripts/download_dataset.sh": "downloads; tests/test_scripts_machine.py unpacks an archive at hand",
    "bash scripts/download_fsdd.sh": "the same",
    "scripts/download_librispeech.sh": "downloads; tests/test_download.py unpacks an archive at hand",
    "scripts/download_model.sh": "downloads; tests/test_download.py runs it with a file at hand",
    "hifigan-finetuned-fastpitch": "downloads; tests/test_download.py downloads from a server of its own",
    "--sha256 0123...": "has no real checksum; tests/test_download.py verifies one",
}
JASPER = "--model-config jasper.yaml --lr-policy polynomial --warmup-epochs 0 --hold-epochs 1"
NETWORKS: dict[str, Sequence[str]] = {
    "FastPitch": tiny.TINY_OPTIONS,
    "HiFi-GAN": tiny_vocoder.TINY_OPTIONS,
    "WaveGlow": tiny_waveglow.OPTIONS,
    "Tacotron2": tiny_tacotron2.TINY_OPTIONS,
    "Jasper": JASPER.split(),
}
ONE_UPDATE = "--epochs 1 -bs 4 --gradient-accumulation-steps 1 --validation-interval 9 --num-workers 0".split()
TINY = {  # program -> options
    "scripts.benchmarks.feed": "--num-workers 1 --utterances 4 -bs 2 --gradient-accumulation-steps 1 --epochs 1",
    "scripts.benchmarks.random_models": "--model-config jasper.yaml --count 2 --max-duration 1",
    "scripts.datasets.embedded_corpus": "--sentences few.txt",
    "scripts.datasets.make_filelists": "--n-val 1",
    "scripts.datasets.preprocess_librispeech": "--n-workers 1",
}
SHOWN = {str(path.relative_to(ROOT / "scripts").with_suffix("")): examples(path) for path in SCRIPTS}
EXAMPLES = {
    f"{name}-{number}": example
    for name, shown in SHOWN.items()
    for number, example in enumerate(shown)
    if not any(words in example for words in NOT_RUN)
}
CHOSEN = {  # in examples, where a tiny project differs
    "TACOTRON2=voice.pt": "TACOTRON2=tacotron2.pt",
    "WAVEGLOW=vocoder.pt": "WAVEGLOW=waveglow.pt",
    "recordings my_voice": "recordings new_voice --num-workers 1",
    "bash scripts/train_digits.sh": "EPOCHS=1 bash scripts/train_digits.sh",
    "EPOCHS=400 ": "",
    "NAME=my_voice SIZE=small": "NAME=my_voice SIZE=small LEARNED_ALIGNMENT=true",  # its other lists have durations
    "NAME=my_voice bash scripts/train.sh --resume": "NAME=my_voice OUTPUT_DIR=output bash scripts/train.sh --resume",
    "bash scripts/finetune_voice.sh": "EPOCHS=1 bash scripts/finetune_voice.sh",
}
COPIES = {
    "voice.pt": "fastpitch.pt output/FastPitch_checkpoint_1000.pt output/FastPitch_checkpoint_1500.pt",
    "vocoder.pt": "hifigan.pt output/HiFi-GAN_checkpoint_6500.pt pretrained_models/hifigan/g_02500000",
    "hifigan.pt": "vocoders/hifigan.pt",
    "jasper.pt": "output/Jasper_checkpoint_440.pt",
    "tacotron2.pt": "output/Tacotron2_checkpoint_1.pt",
    "g_02500000": "weights.pt",
}
LIBRISPEECH = "train-clean-100 train-clean-360 train-other-500 dev-clean dev-other test-clean test-other".split()


def make_project(folder: Path) -> None:
    """A project with a corpus, another of one's own, and the checkpoints that examples name."""
    project = Project(folder)
    for name in ("devset10", "benchmark_8_128"):
        (folder / f"phrases/{name}.tsv").unlink()
        (folder / f"phrases/{name}.tsv").write_text("output\ttext\na.wav\tA few words.\n")
    archive_of_ljspeech(folder)
    for copy in ("my_voice", "recordings", "VCTK-Corpus"):
        shutil.copytree(folder / "LJSpeech-1.1", folder / copy)
    spoken = [f"wavs/{path.name}|line one\n" for path in (folder / "my_voice/wavs").iterdir()]
    (folder / "my_voice/list.txt").write_text("".join(spoken))
    make_checkpoints(folder)
    one_speaker = replace(tiny_voice.MODEL, n_mel_channels=AUDIO.n_mels, n_speakers=1)
    tiny_voice.save_voice(folder / "voice.pt", text=TextConfig(), model=one_speaker, audio=AUDIO)
    jasper = load_checkpoint(folder / "recognizer.pt")
    save_checkpoint(folder / "jasper.pt", replace(jasper, ema=jasper.networks))
    tacotron2, waveglow = save_other_models(folder)
    waveglow.rename(folder / "waveglow.pt")
    save_checkpoint(folder / "tacotron2.pt", ending_after_frames(load_checkpoint(tacotron2)))
    save_authors_hifigan(folder, step=2500000)
    torch.save(fastpitch_1_0(), folder / "nvidia_fastpitch_210824.pt")
    for name, others in COPIES.items():
        for other in others.split():
            (folder / other).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / name, folder / other)
    of_own = "DATASET_PATH=my_voice NAME=my_voice N_VAL=1 N_TEST=1"
    for variables in ("", "TACOTRON2_CHECKPOINT=tacotron2.pt", f"{of_own} TACOTRON2_CHECKPOINT=tacotron2.pt"):
        project.replay(f"{variables} bash scripts/prepare_dataset.sh --num-workers 1")
    for name, corpus in (("ljs", "LJSpeech-1.1"), ("my_voice", "my_voice")):
        shutil.copytree(folder / corpus / "mels", folder / f"data/mels-{name}")
    mels = [f"LJSpeech-1.1/mels/{path.name}\t{path.stem}.wav" for path in (folder / "LJSpeech-1.1/mels").glob("*.pt")]
    (folder / "mels.tsv").write_text("\n".join(["mel\toutput", *mels]) + "\n")
    save_harmonic(folder / "output/Harmonic_checkpoint_100.pt", AUDIO)
    project.replay("bash scripts/copy_list.sh LJSpeech-1.1 copy.tsv --n-clips 2")
    (folder / "few.txt").write_text("A few words.\nSome more.\nThe last ones.\n")
    add_recordings(folder)


def ending_after_frames(tacotron2: Checkpoint) -> Checkpoint:
    """A Tacotron 2 that ends each utterance with its sixth frame: its decoder does nothing but count."""
    prefix = "decoder.decoder_rnn."
    weights = tacotron2.networks["tacotron2"]
    for name in ("weight_ih", "weight_hh", "bias_hh"):
        weights[prefix + name].zero_()
    gates = weights[prefix + "bias_ih"].view(4, -1)  # of an LSTM: input, forget, cell, output
    gates.copy_(torch.tensor([[20.0], [20.0], [0.1], [20.0]]).expand_as(gates))  # the state is tanh(frames / 10)
    weights["decoder.gate_layer.linear_layer.weight"].zero_()[:, 0] = 1.0
    weights["decoder.gate_layer.linear_layer.bias"].fill_(-0.5)
    return tacotron2


def add_recordings(folder: Path) -> None:
    """LibriSpeech and spoken digits, and the configuration of a Jasper that learns them."""
    (folder / "jasper.yaml").write_text(CONFIG.replace("[' ', d, e, i, m, o, r]", str([" ", *string.ascii_lowercase])))
    for data in (folder, folder / "data"):
        make_librispeech(data / "LibriSpeech")
        write_recordings(data / "fsdd/recordings", [f"{n % 10}_ann_{n}.wav" for n in (4, 5, 6, 7, 8)], rate=8000)
        list_digits(data / "fsdd/recordings", folder / "output/digits")
    names = [f"{n}.wav" for n in range(4)]
    write_recordings(folder / "LibriSpeech", names, rate=8000)
    items = [{"transcript": "do", "files": [{"fname": name}], "original_duration": 0.6} for name in names]
    for subset in LIBRISPEECH:
        (folder / f"LibriSpeech/librispeech-{subset}-wav.json").write_text(json.dumps(items))


@pytest.fixture
def project(
    make_once: Callable[[str, Callable[[Path], None]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """A copy of the project for each example, of links: programs write new files and never into old ones."""
    made = make_once("examples", make_project)
    folder = shutil.copytree(made, tmp_path / "project", symlinks=True, copy_function=os.link)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("common.synthesis.loading.VOICES", folder)
    monkeypatch.setattr("common.synthesis.loading.VOICE", "voice.pt")
    yield Project(folder)
    shutil.rmtree(folder)  # of many megabytes


def tiny_options(words: list[str], folder: Path) -> Sequence[str]:
    """What makes a command tiny."""
    if "train.py" in words:
        args = training_options(words)
        own = ("-o", "runs") if args.output == Path("output") else ()  # where no checkpoints lie
        return (*(() if args.from_checkpoint or args.checkpoint_path else NETWORKS[args.model]), *ONE_UPDATE, *own)
    program = words[place_of_program(words)]
    options = TINY.get(program, "").split()
    if program == "scripts.checkpoint_tools" and {"convert", "strip"}.intersection(words):
        for target in {"voice.pt", "vocoder.pt", "hifigan.pt"}.intersection(words):  # which other examples read
            (folder / target).unlink()
    if "--lists" in words:
        shutil.rmtree(folder / words[words.index("--output") + 1])  # mels that examples of training read
    if "--iterations" in words:
        options += ["--iterations", "1", "--max-utterances", "2", "--warmup-steps", "0"]
    if "--wav-text-filelist" in words:
        options += ["--num-workers", "1"]
    if "--repeats" in words:
        options += ["--repeats", "1", "--warmup-steps", "0"]
    return options


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_runs(example: str, project: Project, no_samples: None, monkeypatch: pytest.MonkeyPatch):
    for words, others in ({"/data/": f"{project.folder}/data/"} | CHOSEN).items():
        example = example.replace(words, others)
    for name, value in words_of(example)[0].items():
        monkeypatch.setenv(name, value)
    for words in project.dry_run(example):
        if words[0] == "py" and "DRY_RUN=1" not in example:
            project.python(words, *tiny_options(words, project.folder))


def test_every_example_that_is_not_run_is_still_there():
    lines = [line for shown in SHOWN.values() for line in shown]
    assert [words for words in NOT_RUN if not any(words in line for line in lines)] == []
