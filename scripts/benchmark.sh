#!/usr/bin/env bash
# Measures one part of this toolkit on this machine, and prints a table: train, updates, inference, serving, feed
# and voices.
#   NUM_GPUS=1 BS=128 GRAD_ACCUMULATION=1 bash scripts/benchmark.sh train --model HiFi-GAN  # mel frames/s by precision
#   bash scripts/benchmark.sh updates output/updates --model FastPitch -bs 64  # in memory, with the longest kernels
#   bash scripts/benchmark.sh serving --clients 200  # serve.py under load
#   bash scripts/benchmark.sh voices list.txt --recordings wavs ours=".venv/bin/python inference.py -i {list} -o {folder}"
# train is scripts/train_benchmark.sh on noise, with the arguments --model, -bs, --accumulation, --steps (updates that are
# timed), --settings (several of fp32, tf32, float16, bfloat16) and --max-duration; others go to train.py. inference is
# scripts/inference_benchmark.sh. `.venv/bin/python -m scripts.benchmarks.feed --help` lists the arguments of feed, and so on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run benchmark "$@"
