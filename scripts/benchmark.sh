#!/usr/bin/env bash
# Measures one part of this toolkit on this machine, and prints a table: train, inference, serving, feed, extract, vocoder,
# decoder or gpu.
#   bash scripts/benchmark.sh train  # a full-size FastPitch on made-up data: valid mel frames/s in each precision
#   NUM_GPUS=1 BS=128 GRAD_ACCUMULATION=1 bash scripts/benchmark.sh train --model HiFi-GAN
#   AMP=both BS_SEQUENCE="1 4 8" bash scripts/benchmark.sh inference  # as scripts/inference_benchmark.sh
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt bash scripts/benchmark.sh serving --clients 20 --rounds 1  # serve.py under load
#   bash scripts/benchmark.sh feed  # mel frames/s that one training process is fed with, and where the time goes
#   bash scripts/benchmark.sh extract --dataset-path my_voice --repeat 3 --num-workers 2  # mels and pitch
#   bash scripts/benchmark.sh vocoder vocoder.pt  # HiFi-GAN against the layers of its paper; random weights without a file
#   bash scripts/benchmark.sh decoder --batch-sizes 1 4 8  # Tacotron 2's, steps/s
#   bash scripts/benchmark.sh gpu output/gpu  # all of it in short on one GPU, as scripts/benchmarks/gpu.sh
# `.venv/bin/python -m scripts.benchmarks.train --help` lists the further arguments of train, and so on; train passes those
# that it does not have on to train.py, serving to serve.py. scripts/train_benchmark.sh times train.py on a corpus.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

what=${1:-}
[ $# -eq 0 ] || shift
case "$what" in
    inference) exec bash scripts/inference_benchmark.sh "$@" ;;
    gpu) exec bash scripts/benchmarks/gpu.sh "$@" ;;
    train | serving | feed | extract | vocoder | decoder) ;;
    *) wrong_option "${what:+$(shown "$what"): }expected train, inference, serving, feed, extract, vocoder, decoder or gpu" ;;
esac
use_python
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one, or all for train; 0: the CPU
command=("$PYTHON" -m "scripts.benchmarks.$what")
case "$what" in
    train)
        : "${BS:=16}" # utterances in a micro-batch of one process, of train
        : "${GRAD_ACCUMULATION:=4}" # micro-batches in an update, of train
        need_whole_numbers 1 99999 BS GRAD_ACCUMULATION
        resolve_gpus
        require_gpus "$NUM_GPUS"
        [ "$NUM_GPUS" -le 1 ] ||
            command=("$PYTHON" "${TORCHRUN[@]}" --standalone --nproc-per-node "$NUM_GPUS" "${command[@]:1}")
        command+=(--batch-size "$BS" --accumulation "$GRAD_ACCUMULATION")
        [ "$NUM_GPUS" -eq 0 ] || command+=(--cuda)
        ;;
    serving)
        : "${FASTPITCH:=}" # checkpoint of the voice of serving; empty: the newest
        : "${TACOTRON2:=}" # checkpoint of a voice, instead of FASTPITCH
        : "${HIFIGAN:=}"   # checkpoint of the vocoder of serving
        : "${WAVEGLOW:=}"  # the same, instead of HIFIGAN
        : "${HARMONIC:=}"  # the same, instead of HIFIGAN
        : "${AMP:=false}" # `true`: mixed precision, of serving and vocoder
        PHRASES="" find_checkpoint "$@"
        add_given command --fastpitch "$FASTPITCH" --tacotron2 "$TACOTRON2" --hifigan "$HIFIGAN" \
            --waveglow "$WAVEGLOW" --harmonic "$HARMONIC"
        add_flags command
        note_vocoder
        ;;
    vocoder) EMA="" add_flags command ;;
    feed | decoder) AMP="" EMA="" add_flags command ;;
esac
exec_or_print "${command[@]}" "$@"
