"""scripts/benchmarks/gpu.sh measures every model, the most telling first, within its time."""

import re
import shlex
from pathlib import Path

from shell import ROOT, run_bash
from training_setup import parsed

from common.registry import available_models

LISTS = "-o out --training-files a_dur_.txt --validation-files b.txt".split()
SCRIPT = ROOT / "scripts/benchmarks/gpu.sh"


def test_every_model_is_trained_and_each_training_has_the_options_of_train_py(tmp_path: Path):
    done = run_bash("-c", f"bash {SCRIPT} {tmp_path}", DRY_RUN="1")
    lines = done.stdout.splitlines()
    trainings = [shlex.split(line.partition(" --model ")[2]) for line in lines if "benchmarks.updates" in line]
    assert {words[0] for words in trainings} == set(available_models())
    assert "bfloat16" in lines[0] and "tf32" in lines[-6]
    for words in trainings:
        own = {"--accumulation", "--steps", "--settings"}
        others = [word for place, word in enumerate(words) if not {word, words[place - 1]} & own]
        assert parsed(["--model", *others, *LISTS]).model == words[0]
    for name in ("TACOTRON2", "HIFIGAN", "WAVEGLOW", "JASPER"):
        assert any(re.search(rf"\b{name}=", line) for line in lines)
    only = run_bash("-c", f"bash {SCRIPT} {tmp_path}", DRY_RUN="1", ONLY="tests extraction").stdout
    assert only.count("\n") == 2 and "tests/test_gpu.py" in only
