#!/usr/bin/env bash
# Measures the latency of recognition: scripts/inference_benchmark.sh with MODEL=Jasper.
#   BATCH_SIZE_SEQ="1 8" MAX_DURATION_SEQ="2 7" bash scripts/inference_benchmark_jasper.sh
#   MODEL_CONFIG=jasper/configs/jasper_digits.yaml BATCH_SIZE_SEQ=1 ITERATIONS=10 bash scripts/inference_benchmark_jasper.sh
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/inference_benchmark.sh" "$@"
