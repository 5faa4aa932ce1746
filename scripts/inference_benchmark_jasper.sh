#!/usr/bin/env bash
# Measures the latency of recognition: scripts/inference_benchmark.sh with MODEL=Jasper, whose variables it takes.
MODEL=Jasper exec bash "$(dirname "${BASH_SOURCE[0]}")/inference_benchmark.sh" "$@"
