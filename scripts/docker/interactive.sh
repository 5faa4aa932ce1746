#!/usr/bin/env bash
# Starts a shell, or the command given, in the image that scripts/docker/build.sh made, with this folder and all GPUs.
#   bash scripts/docker/interactive.sh
#   PORT=6006 bash scripts/docker/interactive.sh tensorboard --logdir output --bind_all
# PORT, by default 8888, is opened on this machine; NUM_GPUS is the container's number of GPUs (auto: all).
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" && answer_help "$@"

gpus=${NUM_GPUS:-auto}
[ "$gpus" != auto ] || gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
command=(docker run --rm --ipc host -v "$ROOT:/workspace/speech-toolkit" -p "${PORT:-8888}:${PORT:-8888}")
[ "$gpus" = 0 ] || command+=(--gpus "$gpus")
[ ! -t 0 ] || command+=(-it)
exec_or_print "${command[@]}" speech-toolkit "$@"
