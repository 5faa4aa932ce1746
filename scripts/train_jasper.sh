#!/usr/bin/env bash
# Trains Jasper as published: scripts/train.sh with MODEL=Jasper.
MODEL=Jasper source "$(dirname "${BASH_SOURCE[0]}")/train.sh" "$@"
