#!/usr/bin/env bash
# Measures one part of this toolkit on this machine, and prints a table: train, inference, serving,
# feed, vocoder or gpu.
#   bash scripts/benchmark.sh train  # a full-size FastPitch on made-up data: valid mel frames/s in each precision
#   NUM_GPUS=1 BS=128 GRAD_ACCUMULATION=1 bash scripts/benchmark.sh train --model HiFi-GAN
#   AMP=both BS_SEQUENCE="1 4 8" bash scripts/benchmark.sh inference  # as scripts/inference_benchmark.sh
#   bash scripts/benchmark.sh feed  # mel frames/s that one training process is fed with, and where the time goes
#   bash scripts/benchmark.sh serving --clients 200  # serve.py under load: requests/s, latencies, answers that are lost
#   bash scripts/benchmark.sh vocoder --kind v1 --amp  # HiFi-GAN beside the layers of its paper
#   bash scripts/benchmark.sh gpu output/gpu  # all of it in short on one GPU, as scripts/benchmarks/gpu.sh
# `.venv/bin/python -m scripts.benchmarks.train --help` lists the further arguments of train, and so on; train passes those
# that it does not have on to train.py, and serving to serve.py. scripts/train_benchmark.sh times train.py on a corpus.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script benchmark "$@"
