#!/usr/bin/env bash
# Trains Jasper as published: scripts/train.sh with MODEL=Jasper, whose variables and arguments it takes.
MODEL=Jasper exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
