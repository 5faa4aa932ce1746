#!/usr/bin/env bash
# Trains HiFi-GAN as published: scripts/train.sh with MODEL=HiFi-GAN.
MODEL=HiFi-GAN source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
