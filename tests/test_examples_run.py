"""README's commands, and commands of each job in the documents, run one after the other, with tiny sizes."""

import shutil
import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
import tiny
import tiny_tacotron2
import tiny_voice
import tiny_waveglow
from seed_commands import Project, archive_of_ljspeech
from shell import ROOT, SCRIPTS, environment_of, read_shell_file, training_options, words_of
from sung_words import CONFIG
from test_documents import DOCUMENTS, bash_blocks, commands
from test_jasper_data import make_librispeech
from tiny_evaluation import AUDIO, make_checkpoints, write_recordings

from common.text.config import TextConfig

NETWORKS: dict[str, Sequence[str]] = {
    "FastPitch": tiny.TINY_OPTIONS,
    "Harmonic": ["--segment-frames", "16"],
    "Jasper": "--model-config jasper.yaml --lr-policy polynomial --warmup-epochs 0 --hold-epochs 1".split(),
    "Tacotron2": tiny_tacotron2.TINY_OPTIONS,
    "WaveGlow": tiny_waveglow.OPTIONS,
}
ONE_UPDATE = "--epochs 1 -bs 2 --gradient-accumulation-steps 1 --validation-interval 9 --num-workers 0".split()
WALKS = {  # commands of documents in an order in which each has what it needs, and what makes them tiny
    "a voice that is fine-tuned": {
        "bash scripts/import_recordings.sh recordings my_voice": "--num-workers 1",
        "bash scripts/finetune_voice.sh my_voice": "",
    },
    "a voice from the beginning": {
        "bash scripts/import_recordings.sh recordings my_voice": "--num-workers 1",
        "DATASET_PATH=my_voice NAME=my_voice N_VAL=8 N_TEST=0 FEATURES=false bash scripts/prepare_dataset.sh": (
            "--n-val 1"
        ),
        "LANGUAGE=en-us DATASET_PATH=my_voice NAME=my_voice SIZE=small AMP=true bash scripts/train.sh --resume": "",
        "NAME=my_voice bash scripts/inference_example.sh": "--max-duration 2",
    },
    "the models on LJSpeech": {
        "bash scripts/prepare_dataset.sh": "",
        "NUM_GPUS=8 bash scripts/train.sh": "",
        "NUM_GPUS=8 AMP=true MODEL=Tacotron2 bash scripts/train.sh": "",
        "NUM_GPUS=8 AMP=true MODEL=WaveGlow bash scripts/train.sh": "",
        "MODEL=Harmonic bash scripts/train.sh": "",
        "FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=true bash scripts/inference_example.sh --pace 0.9": "",
    },
    "a recognizer": {
        'SPEEDS="0.9 1.1" bash scripts/preprocess_librispeech.sh': "",
        "NUM_GPUS=8 AMP=true BS=64 GRAD_ACCUMULATION=1 MODEL=Jasper bash scripts/train.sh": "-o runs",
        "DATASET=dev-clean JASPER=output/Jasper_checkpoint_440.pt bash scripts/transcribe.sh": "",
        "JASPER=output/Jasper_checkpoint_440.pt bash scripts/evaluate_recognizer.sh": "",
    },
    "checkpoints": {
        "bash scripts/copy_list.sh LJSpeech-1.1 copy.tsv": "",
        "bash scripts/evaluate_voice.sh vocoder.pt copy.tsv": "",
        "bash scripts/evaluate_voice.sh output/quickstart/voice/FastPitch_checkpoint_20.pt griffin-lim "
        "phrases/devset10.tsv --recordings output/quickstart/reference": "",
        "bash scripts/export_model.sh FastPitch.pt": "",
        "bash scripts/export_model.sh HiFi-GAN.pt --format safetensors -o hifigan.safetensors": "",
        "bash scripts/inspect_checkpoint.sh voice.pt": "",
    },
}
# Run as they stand, by Bash in an environment that has nothing.
PASTED = {'bash scripts/speak.sh "Any text."': "speech.wav", "bash scripts/inference_example.sh": "output/**/a.wav"}
ELSEWHERE = {  # page -> what runs its first command, or one like it
    "BENCHMARKS": "test_benchmark_scripts.py, without Piper",
    "CHECKPOINTS": "test_from_checkpoint.py",
    "JASPER": "the walk of a recognizer; it needs the recordings of digits",
    "SERVING": "test_package.py",
    "STUDIO": "test_package.py",
    "TEXT": "test_text_voices.py",
}


def make_project(folder: Path) -> None:
    """A project with corpora, and the checkpoints that the commands name."""
    Project(folder)
    (folder / "phrases/devset10.tsv").unlink()
    (folder / "phrases/devset10.tsv").write_text("output\ttext\na.wav\tA few words.\n")
    archive_of_ljspeech(folder)
    shutil.copytree(folder / "LJSpeech-1.1", folder / "recordings")
    made = make_checkpoints(folder)
    one_speaker = replace(tiny_voice.MODEL, n_mel_channels=AUDIO.n_mels, n_speakers=1)
    tiny_voice.save_voice(folder / "voice.pt", text=TextConfig(), model=one_speaker, audio=AUDIO)
    for name in ("FastPitch.pt", "output/quickstart/voice/FastPitch_checkpoint_20.pt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "voice.pt", folder / name)
    write_recordings(folder / "output/quickstart/reference", ["a.wav"])
    shutil.copy(made.vocoder, folder / "HiFi-GAN.pt")
    shutil.copy(made.recognizer, folder / "output/Jasper_checkpoint_440.pt")
    (folder / "jasper.yaml").write_text(CONFIG.replace("[' ', d, e, i, m, o, r]", str([" ", *string.ascii_lowercase])))
    make_librispeech(folder / "LibriSpeech")
    for one, other in (("train-clean-100", "train-clean-360"), ("train-clean-100", "train-other-500")):
        shutil.copytree(folder / "LibriSpeech" / one, folder / "LibriSpeech" / other)
    for other in ("dev-other", "test-clean", "test-other"):
        shutil.copytree(folder / "LibriSpeech/dev-clean", folder / "LibriSpeech" / other)


def run_tiny(command: str, project: Project, own: str) -> None:
    """Run a line of a document in this process, with options ``own`` and those that make trainings tiny."""

    def run(words: Sequence[str | Path]) -> None:
        words = [str(word) for word in words]
        more = own.split()
        if "train.py" in words:
            args = training_options(words)
            more = [*(() if args.from_checkpoint else NETWORKS[args.model]), *ONE_UPDATE, *more]
        elif {"scripts.datasets.describe_mels", "evaluate"} & {*words}:
            more = []
        project.python(words, *more)

    variables, words = words_of(command)
    file = read_shell_file(ROOT / words[1])
    if file.runs is None:
        for words in project.dry_run(command):
            run(words)
        return
    environment = environment_of(**variables, **file.fixed) | {"NUM_GPUS": "0", "N_WORKERS": "1"}
    environment["OMP_NUM_THREADS"] = "1"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("launch.run_or_print", "launch.exec_or_print"):
            patch.setattr(f"scripts.{name}", run)
        for name, value in environment.items():
            patch.setenv(name, value)
        SCRIPTS[file.runs].start(environment, [*file.words, *words[2:]])


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_the_commands_of_the_documents_run(
    walk: dict[str, str], tmp_path: Path, no_samples: None, monkeypatch: pytest.MonkeyPatch, make_once: Callable
):
    folder = shutil.copytree(make_once("walked", make_project), tmp_path / "project", symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("common.evaluation.judges.find_spec", lambda name: None)  # no Whisper, which takes long to load
    for command, own in walk.items():
        assert any(" ".join(one.split()).startswith(command) for one in commands()), f"{command}: in no document"
        run_tiny(command, Project(folder), own)


@pytest.mark.parametrize("command", PASTED)
def test_a_command_runs_as_it_stands_in_another_folder_and_an_empty_environment(command: str, tmp_path: Path):
    project = Project(tmp_path / "project")
    (project / "phrases/devset10.tsv").unlink()
    (project / "phrases/devset10.tsv").write_text("output\ttext\na.wav\tA few words.\n")
    (tmp_path / "home").mkdir()
    done = project.bash(command, HOME=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    (sound,) = project.folder.glob(PASTED[command])
    assert soundfile.info(sound).duration > 0.3


def test_the_first_command_of_each_page_is_one_that_runs_here():
    run = [*PASTED, *(command for walk in WALKS.values() for command in walk)]
    pages = {Path(name).stem: bash_blocks(text) for name, text in DOCUMENTS.items() if name.startswith("docs/")}
    for page in {page for page, blocks in pages.items() if blocks} - ELSEWHERE.keys():
        first = " ".join(pages[page][0].replace("\\\n", "").splitlines()[0].split())
        assert any(first.startswith(command) for command in run), f"{page}.md: {first}"
