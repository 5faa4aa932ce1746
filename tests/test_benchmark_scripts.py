"""The benchmark scripts run what their settings say, and their tables are computed rightly."""

from pathlib import Path

import pytest
import torch
from shell import ROOT, dry_run, n_processes, run_bash, training_options

import inference
from common.errors import InputError
from common.logger import Logger
from common.registry import get_model
from scripts.benchmarks import random_models, table, train as benchmark_training, vocoder


def cells(kind: str, *logs: str | Path) -> list[list[str]]:
    """Those of each line of a table."""
    return [list(row.values()) for row in table.rows(kind, list(map(str, logs)))]


# Training


def test_the_training_benchmark_runs_each_combination(tmp_path: Path):
    variables = {"BS": "2 16", "NUM_GPUS": "0 4", "OUTPUT_DIR": tmp_path, "MODEL": "HiFi-GAN", "DATASET_PATH": tmp_path}
    *runs, table = dry_run("scripts/train_benchmark.sh", "--seed", "4", **variables)
    found = []
    for words in runs:
        args = training_options(words)
        assert n_processes(words) * args.batch_size * args.gradient_accumulation_steps == 128
        assert (args.model, args.epochs, args.validation_interval, args.seed) == ("HiFi-GAN", 10, 11, 4)
        assert (args.epochs_per_checkpoint, args.samples_interval) == (11, 11)
        found.append((args.batch_size, n_processes(words), args.cuda, args.amp))
    assert found == [(size, n, n > 1, amp) for size in (2, 16) for n in (1, 4) for amp in (False, True)]
    assert table[1:4] == ["-m", "scripts.benchmarks.table", "training"]
    logs = [word.rpartition("/")[0].partition("=") for word in table[4:]]
    assert [(processes, Path(path).parent) for processes, _, path in logs] == [(n, tmp_path) for n in "1144" * 2]


@pytest.mark.parametrize("model", ["FastPitch", "Tacotron2", "WaveGlow"])
def test_the_training_benchmark_makes_speech_where_there_is_no_corpus(tmp_path: Path, model: str):
    making, words, _ = dry_run(
        "scripts/train_benchmark.sh", MODEL=model, OUTPUT_DIR=tmp_path, NUM_GPUS="0", AMP="false"
    )
    assert making[2] == "scripts.datasets.make_corpus"
    args = training_options(words)
    assert (args.model, args.dataset_path) == (model, tmp_path / "corpus")
    assert args.training_files == [tmp_path / "corpus/train.txt"]
    if model == "FastPitch":
        assert args.learned_alignment
    if model == "Tacotron2":
        assert not args.load_mel_from_disk


def test_the_training_benchmark_of_jasper_makes_noise_where_there_is_no_corpus(tmp_path: Path):
    script = "scripts/train_benchmark_jasper.sh"
    making, words, *_ = dry_run(script, OUTPUT_DIR=tmp_path, NUM_GPUS_SEQ="1", MAX_DURATION="3")
    wanted = f"{tmp_path}/noise --model Jasper --no-checkpoint --count 768 --max-duration 3.0"
    wanted += " --model-config jasper/configs/jasper10x5dr_speedp-online_train-benchmark.yaml"
    assert making[2:] == ["scripts.benchmarks.random_models", *wanted.split()]
    args = training_options(words)
    assert args.training_files == args.validation_files == [tmp_path / "noise/list.txt"]
    assert (args.max_duration, args.ema_decay, args.cudnn_benchmark) == (3.0, 0, args.cuda)


def training_log(path: Path, *, amp: bool, batch_size: int, took: list[list[float]]) -> Path:
    """A log of epochs, each with the seconds of its updates; 1000 frames a second in each."""
    logger = Logger(path, stdout=False)
    logger.parameter(batch_size=batch_size, gradient_accumulation_steps=2, amp=amp, amp_dtype="auto")
    for epoch, updates in enumerate(took, 1):
        for number, seconds in enumerate(updates, 1):
            logger.log((epoch, number, len(updates)), {"train_took": seconds, "train_frames/s": 1.0})
        speed = 1000 * len(updates) / sum(updates)
        logger.log((epoch,), {"avg_train_frames/s": speed, "avg_train_took": sum(updates)})
    logger.close()
    return path


def test_tables_of_training_are_of_the_steady_state_and_compare_like_runs(tmp_path: Path):
    a = training_log(tmp_path / "a", amp=False, batch_size=16, took=[[1000.0], [1.0], [0.8]])
    b = training_log(tmp_path / "b", amp=True, batch_size=16, took=[[9.0, 9.0], [0.5, 0.5]])
    c = training_log(tmp_path / "c", amp=True, batch_size=16, took=[[0.2] * 9])
    d = training_log(tmp_path / "d", amp=True, batch_size=4, took=[[0.2, 0.2]])
    assert cells("training", f"1={a}", f"1={b}", f"4={c}", f"4={d}") == [
        ["16", "2", "1", "full", "1,125", "35.56", "0.90", "-", "1.00"],
        ["16", "2", "1", "mixed", "2,000", "64.00", "1.00", "1.78", "1.00"],
        ["16", "2", "4", "mixed", "5,000", "640.00", "1.80", "-", "2.50"],
        ["4", "2", "4", "mixed", "5,000", "160.00", "0.40", "-", "1.00"],
    ]


@pytest.mark.parametrize(("limit", "smallest"), [(0, 1), (2, 3), (5, 1), (8, 8), (37, 3)])
def test_the_largest_batch_that_fits_is_found_in_few_tries(limit: int, smallest: int):
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= limit

    assert benchmark_training.search(fits, smallest=smallest, largest=1000) == limit
    assert len(tried) == len(set(tried)) <= 12
    limit = 100
    assert benchmark_training.search(fits, smallest=3, largest=20) == 20 and tried[-4:] == [3, 6, 12, 20]


@pytest.mark.parametrize("model", ["WaveGlow", "Tacotron2"])
def test_the_waveglow_benchmark_searches_for_the_largest_batch_of_a_model(model: str):
    variables = {"MODEL": model, "NUM_GPUS": "1", "BATCH_SIZE": "2", "PRECISIONS": "fp32 float16", "WN_CHANNELS": "256"}
    script = "scripts/train_benchmark_waveglow.sh"
    (words,) = dry_run(script, "--compile", **variables)
    assert words[:3] == ["py", "-m", "scripts.benchmarks.train"]
    options, further = benchmark_training.parse_args(words[3:])
    found = (options.model, options.batch_size, options.accumulation, options.largest_batch, options.cuda)
    assert found == (model, 2, 1, 2**16, True)
    assert options.settings == ("fp32", "float16")
    assert further == [*(["--wn-channels", "256"] if model == "WaveGlow" else []), "--compile"]
    (words,) = dry_run(script, NUM_GPUS="0")
    options, _ = benchmark_training.parse_args(words[3:])
    assert (options.model, options.largest_batch, options.cuda, options.settings) == ("WaveGlow", 8, False, ())
    assert run_bash(ROOT / script, NUM_GPUS="2").stderr.startswith("error: NUM_GPUS=2: expected auto")


def test_bfloat16_is_measured_where_the_processor_has_it_or_it_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    (words,) = dry_run("scripts/benchmark_train.sh", NUM_GPUS="0")
    for instructions, further, names in (
        ("false", [], ("fp32",)),
        ("false", ["--settings", "bfloat16"], ("bfloat16",)),
        ("true", [], ("fp32", "bfloat16")),
    ):
        monkeypatch.setenv("CPU_BFLOAT16", instructions)
        args, _ = benchmark_training.parse_args([*words[3:], *further])
        assert benchmark_training.chosen_settings(args) == names


def test_waveglow_is_measured_by_batch_size_on_a_cpu_until_memory_ends(monkeypatch, capsys):
    words = "--model WaveGlow -bs 1 --accumulation 1 --steps 1 --settings fp32 --wn-channels 8 --flows 2"
    words += " --segment-length 1024 --largest-batch 4"
    monkeypatch.setattr("sys.argv", ["train", *words.split()])
    measure = benchmark_training.measure

    def measure_up_to_2(setting, options, further, ranks):
        if options.batch_size > 2:
            raise torch.OutOfMemoryError
        return measure(setting, options, further, ranks)

    monkeypatch.setattr(benchmark_training, "measure", measure_up_to_2)
    assert benchmark_training.main() == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|fp32")]
    assert [row[1] for row in rows] == ["1", "2"]
    for size, row in enumerate(rows, start=1):
        frames, sequences, _, seconds = map(float, row[2:6])
        assert sequences * seconds == pytest.approx(size, rel=0.1), "as far as it is printed"
        assert frames == pytest.approx(4 * sequences, rel=0.1, abs=1)
    assert lines[-1] == "fp32: the largest batch up to 4 that fits is 2"
    monkeypatch.setattr("sys.argv", ["train", *words.replace("-bs 1", "-bs 3").split()[:-2]])
    with pytest.raises(InputError, match="fp32: out of memory at --batch-size 3"):
        benchmark_training.main()


# Inference


def test_the_benchmark_of_jasper_pads_to_the_longest(tmp_path: Path):
    making, *lines = dry_run(
        "scripts/inference_benchmark_jasper.sh",
        "--no-trim-silence",
        BATCH_SIZE_SEQ="4",
        MAX_DURATION_SEQ="2",
        AMP="true",
        OUTPUT_DIR=tmp_path,
        ITERATIONS="9",
    )
    assert making[2] == "scripts.benchmarks.random_models"
    (words,) = (words for words in lines if "inference.py" in words)
    args = inference.build_recognition_parser(get_model("Jasper")).parse_args(words[2:])
    assert (args.iterations, args.warmup_steps, args.max_duration, args.batch_size, args.amp) == (9, 2, 2.0, 4, True)
    assert (args.pad_to_max_duration, args.trim_silence) == (True, False)


def synthesis(**variables: str | Path) -> list[list[str]]:
    """The commands of the inference benchmark on a CPU."""
    return dry_run("scripts/inference_benchmark.sh", CPU="true", **variables)


def follows(words: list[str], *parts: str) -> bool:
    """Whether those words stand in a command, one after the other."""
    return any(words[start : start + len(parts)] == list(parts) for start in range(len(words)))


def test_the_benchmark_takes_one_batch_size_and_a_vocoder():
    options = {"FASTPITCH": "v.pt", "HIFIGAN": "h.pt", "BATCH_SIZE": "2", "DENOISING": "0.1"}
    (words,) = synthesis(**options)
    assert "--benchmark" in words
    assert follows(words, "--hifigan", "h.pt") and follows(words, "--denoising-strength", "0.1")
    assert follows(words, "--batch-size", "2")
    (words,) = synthesis(AUDIO="false", **options)
    assert "--no-audio" in words and not {"--hifigan", "--denoising-strength"} & set(words)
    (words,) = synthesis(TACOTRON2="t.pt", WAVEGLOW="w.pt", BATCH_SIZE="2")
    assert follows(words, "--tacotron2", "t.pt", "--waveglow", "w.pt")
    assert "--fastpitch" not in words
    assert run_bash(ROOT / "scripts/inference_benchmark.sh", FASTPITCH="v.pt", AMP="perhaps").returncode == 2


@pytest.mark.parametrize(
    ("variables", "model", "kind"),
    [
        ({"HIFIGAN": "random-v3"}, "HiFi-GAN", "v3"),
        ({"MODEL": "HiFi-GAN"}, "HiFi-GAN", "v1"),
        ({"WAVEGLOW": "random-256"}, "WaveGlow", "256"),
        ({"MODEL": "WaveGlow", "WAVEGLOW": "random-512"}, "WaveGlow", "512"),
    ],
)
def test_the_benchmark_of_a_random_vocoder_makes_it_and_random_mels(
    tmp_path: Path, variables: dict[str, str], model: str, kind: str
):
    made, *runs = synthesis(AMP="both", BS_SEQUENCE="1 3", REPEATS="7", OUTPUT_DIR=tmp_path, **variables)
    wanted = f"-m scripts.benchmarks.random_models {tmp_path} --model {model} --kind {kind} --count 3"
    assert made[1:] == wanted.split()
    assert len(runs) == 4
    option = "--hifigan" if model == "HiFi-GAN" else "--waveglow"
    for words in runs:
        assert follows(words, option, f"{tmp_path}/{model}_{kind}.pt")
        assert follows(words, "--input", f"{tmp_path}/random_mels.tsv")
        assert "--fastpitch" not in words


def test_a_random_vocoder_speaks_its_mels_and_the_table_shows_how_fast(tmp_path, monkeypatch):
    monkeypatch.setattr(random_models, "N_FRAMES", 40)  # where bfloat16 is emulated, 693 take long
    random_models.main([str(tmp_path), *"--model HiFi-GAN --kind v3 --count 1".split()])
    options = ["-i", str(tmp_path / "random_mels.tsv"), "--hifigan", str(tmp_path / "HiFi-GAN_v3.pt"), "-bs", "1"]
    for name, precision in (("fp32", []), ("amp", ["--amp", "--amp-dtype", "bfloat16"])):
        inference.main([*options, "--log-file", str(tmp_path / name), *precision])
    first, second = table.rows("inference", [str(tmp_path / "fp32"), str(tmp_path / "amp")])
    assert (first["Precision"], second["Precision"]) == ("FP32", "BF16")
    assert first["Frames/s of the text-to-mel model"] == first["Vocoder's speed-up"] == "-"
    assert float(second["Vocoder's speed-up"]) > 0 and float(first["Vocoder's frames/s"].replace(",", "")) > 0
    assert first["Avg latency (s)"] == first["Vocoder's latency (s)"]


def write_log(path: Path, *, amp: bool, latency: float, audio: bool = True) -> Path:
    """A log as inference.py leaves it after an earlier, slower run of the same name."""
    for factor in (9, 1):
        logger = Logger(path, stdout=False)
        logger.parameter(batch_size=4, amp=amp, precision="BF16" if amp else "FP32")
        figures = {"avg_generator_frames/s": 5000.0, "avg_samples/s": 1280000.4}
        figures |= {"avg_hifigan_frames/s": 1200.0 / latency, "avg_hifigan_samples/s": 999.0}
        for stage in ("", "generator_", "hifigan_"):
            figures |= {f"avg_{stage}latency": factor * latency, f"avg_{stage}RTF": 2.5}
            figures |= {f"{name}_{stage}latency": factor * (latency + 0.1) for name in ("90%", "95%", "99%")}
        if not audio:
            figures = {key: value for key, value in figures.items() if "generator" in key}
        for name, value in figures.items():
            logger.log((), {name: value})
        logger.close()
    return path


def test_the_table_has_a_line_for_each_run_with_the_speed_up_of_mixed_precision(tmp_path: Path):
    logs = [
        write_log(tmp_path / "fp32.json", amp=False, latency=0.6),
        write_log(tmp_path / "amp.json", amp=True, latency=0.2),
        write_log(tmp_path / "mels.json", amp=True, latency=0.2, audio=False),
    ]
    rows = cells("inference", *logs)
    samples = "5,000|1,280,000"
    assert "|".join(rows[0]) == f"4|FP32|0.600|-|0.700|0.700|0.700|{samples}|-|2.50|2,000|0.600|2.50|-"
    assert "|".join(rows[1]) == f"4|BF16|0.200|-|0.300|0.300|0.300|{samples}|3.00|2.50|6,000|0.200|2.50|3.00"
    assert rows[2][8] == "-" and rows[2][11:] == ["-"] * 4


@pytest.mark.parametrize("kind", table.COLUMNS)
def test_the_log_of_a_run_that_was_cut_short_is_named(kind: str, tmp_path: Path):
    logger = Logger(tmp_path / "log.json", stdout=False)
    logger.parameter(batch_size=4)
    logger.close()
    with pytest.raises(InputError, match=r"log\.json: no .* cut short"):
        table.rows(kind, [f"{'1=' if kind == 'training' else ''}{tmp_path}/log.json"])


def test_hifigan_is_compared_with_the_layers_of_its_paper(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vocoder, "N_FRAMES", 10)
    vocoder.main("--kind v3 --repeats 3 --amp --amp-dtype bfloat16".split())
    lines = [line.strip("|").split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")][2:]
    assert [line[0] for line in lines] == [
        "the original's layers, float32",
        "this toolkit, float32",
        "this toolkit, bfloat16",
    ]
    assert lines[0][3:] == ["1.00", "0e+00"]
    assert all(float(line[1]) >= 0 and float(line[3]) > 0 for line in lines)
    assert 0 <= float(lines[1][4]) < 1e-4 < float(lines[2][4])
