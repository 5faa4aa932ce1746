#!/usr/bin/env bash
# Measures one part of this toolkit on this machine, and prints a table: train, inference, serving, feed, vocoder or gpu.
#   NUM_GPUS=1 BS=128 GRAD_ACCUMULATION=1 bash scripts/benchmark.sh train --model HiFi-GAN  # mel frames/s by precision
#   bash scripts/benchmark.sh serving --clients 200  # serve.py under load
#   bash scripts/benchmark.sh gpu output/gpu  # all of it in short on one GPU
# `.venv/bin/python -m scripts.benchmarks.train --help` lists the arguments of train, which passes others on to train.py,
# and so on; inference is scripts/inference_benchmark.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script benchmark "$@"
