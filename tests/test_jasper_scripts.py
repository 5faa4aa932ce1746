"""Jasper's own shell scripts build the right commands."""

from pathlib import Path

from shell import ROOT, dry_run, run_bash, training_options

from common.recognition.arguments import build_parser as recognition_parser
from common.registry import get_model
from jasper.yaml_config import load_config


def test_the_digits_script_trains_and_hears_what_its_settings_say():
    lists, training, hearing = dry_run("scripts/train_digits.sh", "--resume", DATASET="/data/fsdd", EPOCHS="7")
    assert lists == ["py", "-m", "scripts.datasets.make_digits_lists", "/data/fsdd", "output/digits"]
    args = training_options(training)
    assert (args.epochs, args.cuda, args.resume, args.dataset_path) == (7, False, True, Path("/data/fsdd/recordings"))
    settings = load_config(ROOT / args.model_config)
    assert settings.model.features.sample_rate == 8000
    assert args.ema_decay > 0
    heard = recognition_parser(get_model("Jasper")).parse_args(hearing[2:])
    assert heard.jasper == Path("output/digits/Jasper_checkpoint_7.pt") and heard.ema
    assert heard.input == args.validation_files == [Path("output/digits/test.txt")]
    result = run_bash(ROOT / "scripts/train_digits.sh", DATASET="/absent")
    assert result.stderr.strip().startswith(
        "error: /absent/recordings: no such folder; run scripts/download_fsdd.sh, or"
    )


def test_evaluation_hears_each_list(tmp_path: Path):
    for name in ("dev-clean", "test-other"):
        (tmp_path / f"librispeech-{name}-wav.json").touch()
    variables = {"JASPER": "j.pt", "DATASET_PATH": tmp_path, "DATASETS": "dev-clean test-other", "EMA": "true"}
    lines = dry_run("scripts/evaluation.sh", "-bs", "3", CPU="true", **variables)
    runs = [recognition_parser(get_model("Jasper")).parse_args(words[2:]) for words in lines if "inference.py" in words]
    assert [run.output[0].name for run in runs] == ["librispeech-dev-clean-wav.json", "librispeech-test-other-wav.json"]
    assert all((run.ema, run.quiet, run.batch_size, run.dataset_path) == (True, True, 3, tmp_path) for run in runs)
    absent = run_bash(ROOT / "scripts/evaluation.sh", JASPER="j.pt", DATASET_PATH="/absent")
    assert absent.returncode == 1 and absent.stderr.startswith("error: /absent/librispeech-dev-clean-wav.json: no such")
