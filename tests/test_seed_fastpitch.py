"""Every command of the document on FastPitch, as it stands: on a tiny corpus, or as the commands that it would run."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import soundfile
import torch
from corpus import make_corpus
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
from tiny import TINY_OPTIONS
from tiny_checkpoint import build, save_networks
from tiny_tacotron2 import tiny_network

from common.checkpoints.reading import load_checkpoint
from common.config import AudioConfig
from common.errors import InputError
from common.files import read_json
from common.text.config import TextConfig
from waveglow.model import ModelConfig as WaveGlowConfig

STATISTICS = "pitch_char_stats__{}.json"
LISTS = "filelists/{}_filelist.txt"


@dataclass(frozen=True)
class Walk:
    """A project in which the quick start was run, and what each of its commands printed."""

    project: Project
    printed: dict[str, str]


def save_tacotron2(path: Path) -> None:
    """A tiny Tacotron 2 as a teacher of durations."""
    network = tiny_network(n_mel_channels=80, n_symbols=148)
    audio, text = AudioConfig(), TextConfig()
    save_networks(path, "Tacotron2", network.config, {"tacotron2": network}, audio=audio, text=text)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    folder = tmp_path_factory.mktemp("walk")
    (folder / "project").mkdir()
    project, printed = Project(folder / "project"), {}
    save_tacotron2(project / "pretrained_models/tacotron2/state_dict.pt")
    command = "bash scripts/download_dataset.sh"
    done = project.bash(command, DATASET_ARCHIVE=archive_of_ljspeech(folder), DATASET_SHA256="")
    assert done.returncode == 0, done.stderr
    printed[command] = done.stdout
    command = "bash scripts/prepare_dataset.sh --num-workers 1"
    printed["bash scripts/prepare_dataset.sh"] = project.bash(command, DRY_RUN="1").stderr + project.replay(command)
    command = "bash scripts/train.sh"
    (words,) = project.dry_run(command)
    printed[command] = project.python(words, *TINY_OPTIONS, "--epochs", "1", "-bs", "2")
    speak_longer(project / "output/FastPitch_checkpoint_1.pt")
    config = WaveGlowConfig(n_flows=2, n_early_every=2, wn_layers=1, wn_channels=256)
    path, audio = project / "pretrained_models/waveglow/waveglow.pt", AudioConfig()
    save_networks(path, "WaveGlow", config, build("WaveGlow", config, audio), audio=audio)
    make_own_dataset(project)
    return Walk(project, printed)


def make_own_dataset(project: Project) -> None:
    """A folder of one's own, with a copy whose features nothing has made yet, and its two lists."""
    lines = (make_corpus(project / "my_dataset", 4, seconds=0.6) / "train.txt").read_text().splitlines(True)
    for split, part in (("train", lines[:3]), ("val", lines[3:])):
        (project / LISTS.format(f"my_dataset_mel_ali_pitch_text_{split}")).write_text("".join(part))


def fresh_project(folder: Path) -> Project:
    """A project with a folder of one's own and a Tacotron 2, before anything was made."""
    project = Project(folder)
    make_own_dataset(project)
    save_tacotron2(project / "pretrained_models/tacotron2/state_dict.pt")
    return project


def a_clone_holds_every_file_that_is_named(walk: Walk, command: str, folder: Path) -> None:
    names = files_named(seed(0))
    assert "platform/DGXA100_FastPitch_TF32_8GPU.sh" in names
    assert [name for name in names if not (walk.project / name).is_file()] == []
    for name in ("model", "arg_parser", "data_function", "loss_function"):
        assert (walk.project / f"fastpitch/{name}.py").is_file() and (walk.project / f"waveglow/{name}.py").is_file()


def the_corpus_is_downloaded(walk: Walk, command: str, folder: Path) -> None:
    assert "next: bash scripts/prepare_dataset.sh\n" in walk.printed[command]
    assert {"metadata.csv", "README", "wavs"} <= {path.name for path in (walk.project / "LJSpeech-1.1").iterdir()}
    again = walk.project.bash(command)
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "LJSpeech-1.1 exists already")


def features_and_lists_are_made(walk: Walk, command: str, folder: Path) -> None:
    corpus = walk.project / "LJSpeech-1.1"
    said = "durations from pretrained_models/tacotron2/state_dict.pt, dropping symbols that it lacks"
    assert said in walk.printed[command]
    next_command = walk.project.bash(command, DRY_RUN="1", DATASET_PATH="other").stdout.splitlines()[-2]
    assert next_command.endswith("bash scripts/train.sh")  # which takes the text front end that is beside the durations
    statistics = read_json(corpus / STATISTICS.format("ljs_audio_text_train_filelist"))
    assert statistics.keys() == {"mean", "std"} and 100 < statistics["mean"] < 250
    for split, count in CLIPS.items():
        lines = (walk.project / LISTS.format(f"ljs_mel_dur_pitch_text_{split}")).read_text().splitlines()
        assert len(lines) == count
        for line in lines:
            clip = Path(line.split("|")[0]).stem
            assert line == f"mels/{clip}.pt|durations/{clip}.pt|pitch_char/{clip}.pt|Line one."
            mel, durations, pitch = (torch.load(corpus / name, weights_only=True) for name in line.split("|")[:3])
            samples = soundfile.info(corpus / "wavs" / f"{clip}.wav").frames
            assert mel.shape == (80, 1 + samples // 256) and int(durations.sum()) == mel.size(1)
            assert durations.shape == pitch.shape == (len("Line one."),)


def a_voice_is_trained_on_them(walk: Walk, command: str, folder: Path) -> None:
    (words,) = walk.project.dry_run(command, NUM_GPUS="8")
    args = training_options(words)
    assert n_processes(words) * args.batch_size * args.gradient_accumulation_steps == 256
    assert (args.epochs, args.learning_rate, args.learned_alignment) == (1500, 0.1, False)
    assert [path.name for path in args.training_files] == ["ljs_mel_dur_pitch_text_train_filelist.txt"]
    assert args.pitch_mean_std_file == Path("LJSpeech-1.1") / STATISTICS.format("ljs_audio_text_train_filelist")
    output = walk.project / "output"
    assert load_checkpoint(output / "FastPitch_checkpoint_1.pt").model == "FastPitch"
    assert all(list((output / subset).glob("events.*")) for subset in ("train", "val"))
    assert {"train_loss", "avg_train_loss", "val_loss"} <= names_logged(output / "nvlog.json")
    shown = updates_shown(walk.printed[command], 0)
    assert re.match(r"DLL \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} - epoch    1 \| iter   1/  2 \| loss ", shown[0])


def phrases_are_spoken(walk: Walk, command: str, folder: Path) -> None:
    command = command.replace("<FastPitch checkpoint>", "FastPitch_checkpoint_1.pt")
    walk.project.python(command.replace("<WaveGlow checkpoint>", "waveglow.pt"), "--max-duration", "2")
    lines = (walk.project / "phrases/devset10.tsv").read_text().splitlines()[1:]
    spoken = sorted(path.name for path in (walk.project / "output/wavs_devset10").glob("*.wav"))
    assert spoken == sorted(line.split("\t")[0] for line in lines) and len(spoken) == 10
    (folder / "list.txt").write_text("said.wav|A few words.\n")
    voice = "inference.py --fastpitch output/FastPitch_checkpoint_1.pt --amp"
    walk.project.python(voice, "--griffin-lim-iters", 1, "-i", folder / "list.txt", "-o", folder)
    assert soundfile.info(folder / "said.wav").samplerate == 22050


def help_names_every_option(walk: Walk, command: str, folder: Path) -> None:
    printed = walk.project.python(command)
    options = re.findall(
        r"^\* `(--[\w-]+)` - " if "train.py" in command else r"\|`(--[\w-]+)[` ]", seed(0), re.MULTILINE
    )
    assert len(options) in (5, 6) and all(option in printed for option in options)


def the_list_gets_features(walk: Walk, command: str, folder: Path) -> None:
    project = fresh_project(folder)
    printed = project.python(command, "--num-workers", "1")
    words = shlex.split(command)
    lines = (project / words[words.index("--wav-text-filelist") + 1]).read_text().splitlines()
    clips = [Path(line.split("|")[0]).stem for line in lines]
    assert f"{len(clips)} of {len(clips)} utterances" in printed
    for kind in ("mels", "durations", "pitch_char"):
        assert sorted(path.stem for path in (project / "my_dataset" / kind).glob("*.pt")) == sorted(clips)


def the_second_list_takes_the_statistics_of_the_first(walk: Walk, command: str, folder: Path) -> None:
    the_list_gets_features(walk, command.replace("_val_", "_train_"), folder)
    printed = Project(folder).python(command, "--num-workers", "1")
    first = STATISTICS.format("my_dataset_mel_ali_pitch_text_train_filelist")
    assert f"pitch_char is normalized with my_dataset/{first}, from the list extracted before" in printed
    assert [path.name for path in (folder / "my_dataset").glob("*.json")] == [first]


def the_prepared_folder_is_trained_on(walk: Walk, command: str, folder: Path) -> None:
    project = fresh_project(folder)
    training = "train.py -o out --epochs 1 -bs 2 "
    with pytest.raises(SystemExit) as wrong:
        project.python(training + command)
    assert wrong.value.code == 2
    command = command.replace("--validation files", "--validation-files")
    extractions = [line for line in commands(seed(0)) if "--tacotron2-checkpoint" in line]
    project.python(extractions[0], "--num-workers", "1")
    lacking = r"_val_filelist\.txt:1: wavs/c003\.wav has no mels/c003\.pt, durations/c003\.pt, pitch_char/c003\.pt in "
    with pytest.raises(InputError, match=lacking + r"my_dataset; make them with extract_mels\.py"):
        project.python(training + command, *TINY_OPTIONS)
    project.python(extractions[1], "--num-workers", "1")
    printed = project.python(training + command, *TINY_OPTIONS)
    assert "whose durations match the symbols of --input-type char --symbol-set english_basic --text-cl" in printed
    assert load_checkpoint(project / "out/FastPitch_checkpoint_1.pt").text == TextConfig()
    assert "| iter   1/  1 |" in printed and (project / "out/FastPitch_checkpoint_1.pt").is_file()


def train_sh_takes_them(walk: Walk, command: str, folder: Path) -> None:
    plain, given = (walk.project.dry_run(f"bash scripts/train.sh {options}")[0] for options in ("", command))
    assert vars(training_options(given)) == vars(training_options(plain)), "they are its defaults"


def an_update_is_of_256_utterances(walk: Walk, command: str, folder: Path) -> None:
    (words,) = walk.project.dry_run(command)
    settings, args = words_of(command)[0], training_options(words)
    assert n_processes(words) == int(settings["NUM_GPUS"]) and args.cuda
    assert args.batch_size == int(settings.get("BS", 32))
    assert n_processes(words) * args.batch_size * args.gradient_accumulation_steps == 256
    assert args.epochs == int(settings.get("EPOCHS", 1500))
    assert args.amp == (settings.get("AMP") == "true")
    assert (args.output, args.log_file) == (Path("output"), None), "the figures are in ./output/nvlog.json"


def the_example_speaks_with_the_trained_voice(walk: Walk, command: str, folder: Path) -> None:
    (words,) = walk.project.dry_run(command)
    assert words[:2] == ["py", "inference.py"]
    assert words[words.index("--fastpitch") + 1] == "output/FastPitch_checkpoint_1.pt"
    assert words[words.index("--output") + 1] == "output/audio_devset10_fp32"
    assert words[words.index("--waveglow") + 1] == "pretrained_models/waveglow/waveglow.pt"
    walk.project.python(words, "--max-duration", "2")
    assert len(list((walk.project / "output/audio_devset10_fp32").glob("*.wav"))) == 10


def batches_are_measured(walk: Walk, command: str, folder: Path) -> None:
    settings = words_of(command)[0]
    runs = walk.project.dry_run(command)
    assert all("pretrained_models/waveglow/waveglow.pt" in words for words in runs)
    assert [words[words.index("--batch-size") + 1] for words in runs] == ["1", "4", "8"]
    for words in runs:
        assert words[words.index("--repeats") + 1] == settings["REPEATS"] == "100"
        assert int(words[words.index("--warmup-steps") + 1]) > 0
        assert ("--amp" in words) == (settings.get("AMP") == "true")
    phrases = walk.project / runs[0][runs[0].index("--input") + 1]
    assert {len(line.split("\t")[-1]) for line in phrases.read_text().splitlines()[1:]} == {128}


def figures_have_the_names_of_the_document(walk: Walk, command: str, folder: Path) -> None:
    batches_are_measured(walk, command, folder)
    (folder / "list.tsv").write_text("output\ttext\na.wav\tA few words.\n")
    few = ("--repeats", "2", "--warmup-steps", "1", "--input", folder / "list.tsv")
    walk.project.python(walk.project.dry_run(command)[0], *few, "--log-file", folder / "nvlog.json")
    assert {"avg_generator_frames/s", "avg_waveglow_samples/s"} <= names_logged(folder / "nvlog.json")


CHECKS = (  # of the document's commands, in its order
    *(2 * (a_clone_holds_every_file_that_is_named,)),
    the_corpus_is_downloaded,
    features_and_lists_are_made,
    a_voice_is_trained_on_them,
    phrases_are_spoken,
    help_names_every_option,
    the_list_gets_features,
    the_second_list_takes_the_statistics_of_the_first,
    the_list_gets_features,
    the_prepared_folder_is_trained_on,
    *(2 * (train_sh_takes_them,)),
    *(2 * (an_update_is_of_256_utterances,)),
    the_example_speaks_with_the_trained_voice,
    *(2 * (help_names_every_option,)),
    *(8 * (an_update_is_of_256_utterances,)),  # of the benchmarks on a DGX A100, and on a DGX-1
    batches_are_measured,
    figures_have_the_names_of_the_document,
)


@pytest.mark.parametrize(("command", "check"), list(zip(commands(seed(0)), CHECKS, strict=True)))
def test_the_command_does_what_the_document_says(
    walk: Walk, command: str, check: Callable[[Walk, str, Path], None], tmp_path: Path
) -> None:
    check(walk, command, tmp_path)
