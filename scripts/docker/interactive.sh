#!/usr/bin/env bash
# Starts a shell, or the command given, in the image that scripts/docker/build.sh made, with this folder and all GPUs.
#   bash scripts/docker/interactive.sh
#   PORT=6006 bash scripts/docker/interactive.sh tensorboard --logdir output --bind_all
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

: "${PORT:=8888}" # of the container, opened on this machine
: "${NUM_GPUS:=auto}" # `auto`: all there are; 0: none

require_docker
need_whole_numbers 1 65535 PORT
resolve_gpus
command=(docker run --rm --ipc host -v "$ROOT:/workspace/speech-toolkit" -p "$PORT:$PORT")
[ "$NUM_GPUS" -eq 0 ] || command+=(--gpus "$([ "$NUM_GPUS" -eq "$(count_gpus)" ] && echo all || echo "$NUM_GPUS")")
[ ! -t 0 ] || command+=(-it)
exec_or_print "${command[@]}" speech-toolkit "$@"
