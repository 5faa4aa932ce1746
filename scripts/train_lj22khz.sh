#!/usr/bin/env bash
# Trains HiFi-GAN as published: scripts/train.sh with MODEL=HiFi-GAN, whose variables and arguments it takes.
MODEL=HiFi-GAN exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
