#!/usr/bin/env bash
# Measures latency and throughput of MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper), and prints one table.
#   BS_SEQUENCE="1 4 8" REPEATS=100 bash scripts/inference_benchmark.sh  # phrases of 128 characters
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=both bash scripts/inference_benchmark.sh --cuda-graphs
#   FASTPITCH=voice.pt AMP=both REPEATS=5 BATCH_SIZE=1 NUM_GPUS=0 bash scripts/inference_benchmark.sh  # a laptop
#   TACOTRON2=voice.pt WAVEGLOW=vocoder.pt bash scripts/inference_benchmark.sh
#   HIFIGAN=vocoder.pt PHRASES=mels.tsv bash scripts/inference_benchmark.sh  # the vocoder alone
#   MODEL=HiFi-GAN BATCH_SIZE=1 REPEATS=5 NUM_GPUS=0 bash scripts/inference_benchmark.sh  # random-v1, and the paper's layers
#   JASPER=jasper.pt BATCH_SIZE_SEQ="1 8" MAX_DURATION_SEQ="2 7" bash scripts/inference_benchmark.sh --ema  # recognition
#   MODEL=Jasper MODEL_CONFIG=jasper/configs/jasper_digits.yaml BATCH_SIZE_SEQ=1 MAX_DURATION_SEQ=2 ITERATIONS=10 \
#       NUM_GPUS=0 bash scripts/inference_benchmark.sh  # Jasper on a laptop
# The vocoder alone speaks the mels or the recordings of a list with the column mel or wav, or, of random weights, random
# mels of 8.05 s: they take the same time. A network's first sound of a sentence of 20 s, streamed, is timed too. Recognition is of batches of recordings of up to MAX_DURATION_SEQ, padded.
# Arguments go to inference.py. Without a vocoder's checkpoint a downloaded one for the voice makes the sound, or that in ./voices,
# or Griffin-Lim. Without a checkpoint of Jasper (JASPER) random weights are measured, and without LibriSpeech noise: both take the same time.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script inference_benchmark "$@"
