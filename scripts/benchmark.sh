#!/usr/bin/env bash
# Measures a part of the toolkit on this machine, and prints a table. Parts: train, updates, inference, voices and gpu.
#   bash scripts/benchmark.sh updates output/updates --model FastPitch -bs 64  # training on noise in memory, with the longest kernels
#   bash scripts/benchmark.sh voices list.txt --recordings wavs ours=".venv/bin/python inference.py -i {list} -o {folder}"
#   bash scripts/benchmark.sh gpu output/gpu  # a short run of everything on one GPU
# train runs scripts/train_benchmark.sh, and inference runs scripts/inference_benchmark.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run benchmark "$@"
