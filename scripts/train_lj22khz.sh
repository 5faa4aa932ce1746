#!/usr/bin/env bash
# Trains HiFi-GAN as published: scripts/train.sh with MODEL=HiFi-GAN; arguments go to train.py.
#   bash scripts/train_lj22khz.sh --resume
#   NUM_GPUS=1 BATCH_SIZE=64 GRAD_ACCUMULATION=2 AMP=true bash scripts/train_lj22khz.sh --no_amp_grouped_conv
MODEL=HiFi-GAN source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
