#!/usr/bin/env bash
# Builds the Docker image speech-toolkit of this folder. Arguments go to docker build.
#   bash scripts/docker/build.sh
#   bash scripts/docker/build.sh --build-arg FROM_IMAGE_NAME=nvcr.io/nvidia/pytorch:25.10-py3
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" && answer_help "$@" && cd "$ROOT" && exec_or_print docker build . -t speech-toolkit "$@"
