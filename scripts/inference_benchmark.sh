#!/usr/bin/env bash
# Measures latency and throughput of MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper) in one table.
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=both BS_SEQUENCE="1 4 8" bash scripts/inference_benchmark.sh --cuda-graphs
# Arguments go to inference.py. `python -m scripts.benchmarks.random_models` makes models with random weights to measure.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run inference_benchmark "$@"
