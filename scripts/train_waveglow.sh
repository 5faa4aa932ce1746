#!/usr/bin/env bash
# Trains WaveGlow as published: scripts/train.sh with MODEL=WaveGlow.
MODEL=WaveGlow source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
