#!/usr/bin/env bash
# Trains WaveGlow as published: scripts/train.sh with MODEL=WaveGlow; arguments go to train.py.
#   bash scripts/train_waveglow.sh --resume
#   BS=2 bash scripts/train_waveglow.sh --wn-channels 64 --flows 6 --early-every 2
MODEL=WaveGlow source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
