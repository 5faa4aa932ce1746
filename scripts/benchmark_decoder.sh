#!/usr/bin/env bash
# Times Tacotron 2's decoder, full size with random weights: steps/s by batch size and precision.
#   bash scripts/benchmark_decoder.sh [--cuda] [--batch-sizes 1 4 8] [--steps 400] [--symbols 128]
#   bash scripts/benchmark_decoder.sh --training [--cuda] [--batch-sizes 4]      the training step against plain autograd
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_python -m scripts.benchmarks.decoder "$@"
