#!/usr/bin/env bash
# Times training of Jasper: scripts/train_benchmark.sh with MODEL=Jasper; arguments go to train.py.
#   BATCH_SIZE_SEQ="32 64" NUM_GPUS_SEQ="1 4 8" bash scripts/train_benchmark_jasper.sh
#   NUM_GPUS_SEQ=0 BATCH_SIZE_SEQ=4 SEQUENCES=32 MAX_DURATION=3 bash scripts/train_benchmark_jasper.sh
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" "$@"
