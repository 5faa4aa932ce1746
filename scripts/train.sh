#!/usr/bin/env bash
# Trains MODEL (FastPitch, Tacotron2, HiFi-GAN, WaveGlow, Harmonic or Jasper) as published; arguments go to train.py.
#   NUM_GPUS=1 BS=64 GRAD_ACCUMULATION=4 AMP=true bash scripts/train.sh --resume
#   NUM_GPUS=0 BS=8 GRAD_ACCUMULATION=32 bash scripts/train.sh  # FastPitch, on the CPU
#   DATASET_PATH=my_voice NAME=my_voice bash scripts/train.sh  # on the lists of scripts/prepare_dataset.sh
#   LEARNED_ALIGNMENT=true ENERGY=true bash scripts/train.sh  # FastPitch 1.1, from recordings and transcripts alone
#   MODEL=Tacotron2 LOAD_MEL_FROM_DISK=false bash scripts/train.sh  # mels computed in training
#   MODEL=HiFi-GAN NUM_GPUS=1 GRAD_ACCUMULATION=8 AMP=true bash scripts/train.sh --no_amp_grouped_conv
#   MODEL=Jasper MODEL_CONFIG=jasper/configs/jasper10x5dr_speedp-offline_speca.yaml bash scripts/train.sh
# Variables change the published recipe, which train.py holds; words NAME=value before the arguments are defaults for
# them, as platform/*.sh pass. Paths are relative to the project's folder. For several machines, run it on each with
# NNODES and MASTER_ADDR (host of the first) set, and NODE_RANK if they cannot agree on who is first by themselves.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run_script train "$@"
