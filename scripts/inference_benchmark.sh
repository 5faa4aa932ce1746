#!/usr/bin/env bash
# Measures latency and throughput of MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper), and prints one table.
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=both BS_SEQUENCE="1 4 8" bash scripts/inference_benchmark.sh --cuda-graphs
#   MODEL=HiFi-GAN BATCH_SIZE=1 REPEATS=5 NUM_GPUS=0 bash scripts/inference_benchmark.sh  # random-v1 on random mels
#   JASPER=jasper.pt BATCH_SIZE_SEQ="1 8" MAX_DURATION_SEQ="2 7" bash scripts/inference_benchmark.sh --ema  # recognition
# Arguments go to inference.py. Without a checkpoint of a vocoder or of Jasper random weights can be measured, and without
# LibriSpeech noise: they take the same time.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run inference_benchmark "$@"
