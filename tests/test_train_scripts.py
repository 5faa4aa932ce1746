"""The shell scripts that train build the commands of the published runs, and take settings from the environment."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import training_setup
from shell import ROOT, dry_run, n_processes, training_options

MODELS = ("FastPitch", "HiFi-GAN", "Tacotron2", "WaveGlow", "Jasper")
PLATFORMS = sorted(ROOT.glob("platform/*.sh"))
# What a run of train.sh without settings is, as options of train.py beside the model's published recipe, which tests of
# each model check; and what mixed precision changes in it.
LJSPEECH = "-o ./output -d LJSpeech-1.1 --cuda"
LJSPEECH += " --training-files filelists/ljs_{0}.txt --validation-files filelists/ljs_{1}.txt"
LIBRISPEECH = "LibriSpeech/librispeech-{}-wav.json"
PUBLISHED = {
    "FastPitch": (
        LJSPEECH.format("mel_dur_pitch_text_train_filelist", "mel_dur_pitch_text_val_filelist")
        + " --n-speakers 1 --pitch-mean-std-file LJSpeech-1.1/pitch_char_stats__ljs_audio_text_train_filelist.json",
        "",
    ),
    "HiFi-GAN": (LJSPEECH.format("audio_train_v3", "audio_val"), ""),
    "Tacotron2": (
        LJSPEECH.format("mel_text_train_filelist", "mel_text_val_filelist") + " --load-mel-from-disk",
        "-bs 104",
    ),
    "WaveGlow": (
        LJSPEECH.format("audio_train_v3", "audio_val") + " --cudnn-benchmark",
        "-bs 10 --grad-clip-thresh 65504",
    ),
    "Jasper": (
        f"-o ./output -d LibriSpeech --cuda --seed 0 --training-files {LIBRISPEECH.format('train-clean-100')}"
        f" {LIBRISPEECH.format('train-clean-360')} {LIBRISPEECH.format('train-other-500')}"
        f" --validation-files {LIBRISPEECH.format('dev-clean')}",
        "",
    ),
}
TORCHRUN = "-m torch.distributed.run --signals-to-handle SIGINT,SIGTERM,SIGQUIT"  # not SIGHUP, for nohup


def parsed(model: str, options: str) -> dict[str, Any]:
    """What train.py makes of these options."""
    return vars(training_setup.parsed(["-m", model, *shlex.split(options)]))


@pytest.mark.parametrize("model", MODELS)
def test_train_sh_without_settings_is_the_published_run_on_eight_gpus(model: str):
    version = {"LEARNED_ALIGNMENT": "false"} if model == "FastPitch" else {}
    (words,) = dry_run("scripts/train.sh", MODEL=model, NUM_GPUS="8", **version)
    assert words[:9] == ["py", *f"{TORCHRUN} --nproc-per-node 8 --standalone train.py".split()]
    plain, mixed = PUBLISHED[model]
    assert vars(training_options(words)) == parsed(model, plain)
    (words,) = dry_run("scripts/train.sh", MODEL=model, NUM_GPUS="8", AMP="true", **version)
    assert vars(training_options(words)) == parsed(model, f"{plain} --amp {mixed}")


@pytest.mark.parametrize(
    ("variables", "launcher"),
    [
        ({"NUM_GPUS": "0"}, ""),
        ({"NUM_GPUS": "1"}, ""),
        ({"NUM_GPUS": "4", "PORT": "7"}, f"{TORCHRUN} --nproc-per-node 4 --master-port 7"),
        (
            {"NNODES": "2", "MASTER_ADDR": "a", "RUN_ID": "x", "NUM_GPUS": "8"},
            f"{TORCHRUN} --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-id x --rdzv-endpoint a:29500",
        ),
    ],
)
def test_training_starts_processes_as_the_machines_ask(variables: dict[str, str], launcher: str):
    (words,) = dry_run("scripts/train.sh", **variables)
    assert words[: words.index("train.py")] == ["py", *launcher.split()]
    assert ("--cuda" in words) == (variables.get("NUM_GPUS") != "0")


def test_a_gpu_gets_the_whole_published_update_of_a_vocoder():
    for n_gpus, accumulation, size in (("1", "1", 128), ("4", "2", 16)):
        variables = {"MODEL": "HiFi-GAN", "NUM_GPUS": n_gpus, "GRAD_ACCUMULATION": accumulation}
        for mels, expected in (("", size), ("mels", 16)):  # a corpus to fine-tune on may be small
            (words,) = dry_run("scripts/train.sh", **variables, INPUT_MELS_DIR=mels)
            assert training_options(words).batch_size == expected


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda path: path.stem)
def test_each_platform_file_trains_with_the_published_batches(path: Path):
    machine, model, precision, size = path.stem.split("_")
    (words,) = dry_run(path, "--seed", "5", EPOCHS="10")
    args, n_gpus = training_options(words), int(size.removesuffix("GPU"))
    assert n_processes(words) == n_gpus
    assert (args.model, args.amp, args.cuda, args.seed, args.epochs) == (model, precision == "AMP", True, 5, 10)
    if model in ("Tacotron2", "WaveGlow"):  # published by the batch of one GPU
        tacotron2 = 128 if machine == "DGXA100" else {"AMP": 104, "FP32": 48}[precision]
        batch = tacotron2 if model == "Tacotron2" else {"AMP": 10}.get(precision, 4)
        assert (args.batch_size, args.gradient_accumulation_steps) == (batch, 1)
    else:
        global_batch = {"FastPitch": 256, "HiFi-GAN": 128, "Jasper": 1024 if n_gpus == 16 else 512}[model]
        assert n_gpus * args.batch_size * args.gradient_accumulation_steps == global_batch
    if model == "Jasper":
        assert args.batch_size == {"DGX1-16GB": 16, "T4": 16}.get(machine, 64 if precision == "AMP" else 32)
    if model == "HiFi-GAN":
        assert args.no_amp_grouped_conv == (machine == "DGXA100" and args.amp)
    if model == "WaveGlow":
        assert training_options(dry_run(path)[0]).epochs == 1001


@pytest.mark.parametrize(("clips", "set_apart", "batch", "epochs"), [(16, 2, 8, 300), (72, 12, 8, 42), (8, 2, 6, 300)])
def test_finetune_voice_sh_of_a_dataset_alone_starts_from_the_shipped_voice(tmp_path, clips, set_apart, batch, epochs):
    lines = [f"c{number}|Text." for number in range(clips)]
    (tmp_path / "metadata.csv").write_text("\n".join(lines) + "\n")
    variables = {"OUTPUT_DIR": str(tmp_path / "out"), "SPEAKER": "anna"}
    lists = dry_run("scripts/finetune_voice.sh", tmp_path, **variables)[0]
    assert int(lists[lists.index("--n-val") + 1]) == set_apart
    training = tmp_path / "out/filelists/anna_audio_text_train_filelist.txt"
    training.parent.mkdir(parents=True)
    training.write_text("wavs/a.wav|Text.|anna\n" * (clips - set_apart))
    args = training_options(dry_run("scripts/finetune_voice.sh", tmp_path, **variables)[1])
    assert (args.from_checkpoint, args.batch_size, args.epochs) == (Path("voices/en-small.pt"), batch, epochs)
