#!/usr/bin/env bash
# Measures one part of this toolkit on this machine, and prints a table: train, updates, inference, voices or gpu.
#   bash scripts/benchmark.sh updates output/updates --model FastPitch -bs 64  # training on noise in memory, with the longest kernels
#   bash scripts/benchmark.sh voices list.txt --recordings wavs ours=".venv/bin/python inference.py -i {list} -o {folder}"
#   bash scripts/benchmark.sh gpu output/gpu  # all of it in short on one GPU
# train is scripts/train_benchmark.sh, and inference is scripts/inference_benchmark.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run benchmark "$@"
