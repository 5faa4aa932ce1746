#!/usr/bin/env bash
# Trains WaveGlow as published: scripts/train.sh with MODEL=WaveGlow, whose variables and arguments it takes.
MODEL=WaveGlow exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
