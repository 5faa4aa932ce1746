#!/usr/bin/env bash
# Tests and measures this toolkit on one GPU, and adds what each step prints to OUT/gpu.md.
#   bash scripts/benchmarks/gpu.sh OUT
#   MINUTES=4 ONLY="training inference" bash scripts/benchmarks/gpu.sh OUT  # of training inference tests recognition extraction tf32 compiling
# A step that fails, or takes longer than 90 s, doesn't keep others from running; the exit status is then 1. PYTHON=python3
# takes one that has what requirements.txt lists.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" && answer_help "$@"
[ $# = 1 ] || fail 2 "expected: bash scripts/benchmarks/gpu.sh OUT"
use_python
mkdir -p "$1" && OUT=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'kill "$pid" 2>/dev/null; wait "$pid"; exit 130' INT TERM
cd "$ROOT"
failed=0 pid="" end=$((SECONDS + 60 * ${MINUTES:-9}))
export NUM_GPUS=1 PYTHONUNBUFFERED=1

# step GROUP COMMAND: runs a command of Bash, unless the group isn't asked for or time is up.
step() {
    local left=$((end - SECONDS)) start=$SECONDS status=0
    [ -z "${ONLY:-}" ] || [[ " $ONLY " = *" $1 "* ]] || return 0
    if [ "$DRY_RUN" = 1 ]; then
        echo "$2"
    elif [ "$left" -gt 0 ]; then
        printf '\n## %s\n\n```\n' "$2" >>"$OUT/gpu.md"
        timeout --signal=INT --kill-after=10 "$((left < 90 ? left : 90))" bash -c "$2" >>"$OUT/gpu.md" 2>&1 &
        pid=$!
        wait "$pid" || status=$?
        [ "$status" = 0 ] || failed=1
        printf '```\n\nExit status %s after %s s.\n' "$status" "$((SECONDS - start))" | tee -a "$OUT/gpu.md"
    fi
}

models=("FastPitch -bs 64 --accumulation 4" "HiFi-GAN -bs 128" "Tacotron2 -bs 128" "WaveGlow -bs 10"
    "Jasper -bs 64 --accumulation 4 --steps 2" "FastPitch -bs 64 --accumulation 4 --learned-alignment" "Harmonic -bs 8")
updates="$PYTHON -m scripts.benchmarks.updates $work --cuda --model"
random="$PYTHON -m scripts.benchmarks.random_models $work --model"
fastpitch="FASTPITCH=$work/FastPitch_random.pt" tacotron2="TACOTRON2=$work/Tacotron2_random.pt"
hifigan="HIFIGAN=$work/HiFi-GAN_v1.pt" waveglow="WAVEGLOW=$work/WaveGlow_256.pt"
measure="OUTPUT_DIR=$work/speaking REPEATS=10 AMP=both BS_SEQUENCE='1 2 4 8' bash scripts/inference_benchmark.sh"
if [ "$DRY_RUN" != 1 ]; then
    about='import torch; print(torch.cuda.get_device_name(), "torch", torch.__version__, sep=", ")'
    about=$("$PYTHON" -c "$about" 2>/dev/null) || fail 1 "no GPU that PyTorch can use"
    echo "# $(date +%F), $about, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)" >"$OUT/gpu.md"
fi
for words in "${models[@]}"; do step training "$updates $words --settings bfloat16"; done
step inference "$random FastPitch && $random Tacotron2 && $random HiFi-GAN --kind v1 && $random WaveGlow --kind 256"
step inference "$fastpitch $hifigan $measure"
step inference "$fastpitch $hifigan DENOISING=0.005 $measure --cuda-graphs"
step inference "$fastpitch $waveglow $measure --cuda-graphs"
step inference "$tacotron2 $waveglow $measure --max-decoder-steps 600"
# Other files of tests may import what such a machine lacks.
step tests "$PYTHON -m pytest -q -m gpu -p no:cacheprovider -rfE $(grep -l pytest.mark.gpu tests/test_*.py | xargs)"
step recognition "$random Jasper --count 16 && JASPER=$work/Jasper_random.pt MANIFEST=$work/list.txt DATASET_PATH=$work \
OUTPUT_DIR=$work/transcribing ITERATIONS=10 MODEL=Jasper bash scripts/inference_benchmark.sh"
step extraction "$PYTHON extract_mels.py -d $work --wav-text-filelist $work/list.txt --extract-mels --sampling-rate 16000 --cuda"
for words in "${models[@]}"; do step tf32 "$updates $words --settings tf32"; done
for words in "${models[@]:0:2}"; do step compiling "$updates $words --settings bfloat16 --compile"; done
step compiling "$fastpitch $hifigan $measure --compile"
exit "$failed"
