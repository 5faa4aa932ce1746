"""The benchmark scripts run what their settings say, and their tables are computed rightly."""

from pathlib import Path

from shell import ROOT, dry_run, n_processes, run_bash, training_options

from common.logger import Logger
from scripts.benchmarks import table


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
    assert table[1:3] == ["-m", "scripts.benchmarks.table"]
    assert [Path(word).parts[-2] for word in table[3:5]] == ["gpus0_bs2_acc64_full", "gpus0_bs2_acc64_mixed"]
    variables |= {"BS": "8", "NUM_GPUS": "1", "AMP": "true"}
    (words, _) = dry_run("scripts/benchmark.sh", "train", "--compile", **variables)
    assert training_options(words).amp and training_options(words).compile


def test_the_table_has_the_last_figures_of_each_log(tmp_path: Path):
    for name, latency in (("one/nvlog.json", 0.6), ("fp32.json", 0.25)):
        logger = Logger(tmp_path / name, stdout=False)
        for factor in (9, 1):  # an earlier, slower run in the same file
            logger.parameter(batch_size=4)
            logger.log((), {"avg_latency": factor * latency, "90%_latency": 1.0, "avg_mel_gen_RTF@4": 3.0})
    logger.log((), {"avg_hifigan_frames/s": 1234567.8})
    rows = table.rows([f"{tmp_path}/one/nvlog.json", f"{tmp_path}/fp32.json"])
    assert [list(row.values()) for row in rows] == [["one", "0.6", "1", "-"], ["fp32", "0.25", "1", "1.23457e+06"]]
    assert table.markdown(rows)[0] == "|run|avg_latency|90%_latency|avg_hifigan_frames/s|"


def test_the_benchmark_takes_one_batch_size_and_a_vocoder():
    variables = {"CPU": "true", "BATCH_SIZE": "2"}
    (words,) = dry_run("scripts/inference_benchmark.sh", FASTPITCH="v.pt", HIFIGAN="h.pt", DENOISING="0.1", **variables)
    text = " ".join(words)
    assert "--benchmark" in words and "--hifigan h.pt" in text and "--batch-size 2" in text
    assert "--denoising-strength 0.1" in text
    (words,) = dry_run("scripts/inference_benchmark.sh", TACOTRON2="t.pt", WAVEGLOW="w.pt", **variables)
    assert "--tacotron2 t.pt --waveglow w.pt" in " ".join(words) and "--fastpitch" not in words
    assert run_bash(ROOT / "scripts/inference_benchmark.sh", FASTPITCH="v.pt", AMP="perhaps").returncode == 2
