#!/usr/bin/env bash
# Speaks ten sentences with a trained voice; arguments go to inference.py.
#   bash scripts/inference_example.sh  # with the newest checkpoint in ./output
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt AMP=true bash scripts/inference_example.sh --pace 0.9
#   TACOTRON2=voice.pt WAVEGLOW=vocoder.pt bash scripts/inference_example.sh
#   HIFIGAN=vocoder.pt PHRASES=mels.tsv bash scripts/inference_example.sh  # mels or recordings of a list, without a voice
# Without a vocoder's checkpoint the sound is made by Griffin-Lim.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${FASTPITCH:=}" # checkpoint; empty: the newest in ./output, or none for a list with the column mel or wav
: "${TACOTRON2:=}" # checkpoint of a voice, instead of FASTPITCH
: "${HIFIGAN:=}"   # checkpoint of the vocoder
: "${WAVEGLOW:=}"  # the same, instead of HIFIGAN
: "${SIGMA:=0.9}"  # of WaveGlow's noise
: "${DENOISING:=$([ -n "$WAVEGLOW" ] && echo 0.01 || echo 0.005)}" # strength of the denoiser, by default 0.005, or 0.01 of WaveGlow; 0: none
: "${PHRASES:=phrases/devset10.tsv}" # list to speak
: "${BATCH_SIZE:=32}" # batch size
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU
: "${SPEAKER:=0}" # speaker, by name or number

find_checkpoint
name=$(basename "$PHRASES")
precision=$([ "$AMP" = true ] && echo amp || echo fp32)
: "${OUTPUT_DIR:=output/audio_${name%.*}_$precision}" # folder for the results, by default named after the list

command=("$PYTHON" inference.py --input "$PHRASES" --output "$OUTPUT_DIR" --batch-size "$BATCH_SIZE")
[ -z "$FASTPITCH" ] || command+=(--speaker "$SPEAKER")
add_given command --fastpitch "$FASTPITCH" --tacotron2 "$TACOTRON2" --hifigan "$HIFIGAN" --waveglow "$WAVEGLOW"
[ -z "$WAVEGLOW" ] || command+=(--sigma-infer "$SIGMA")
[ -z "$HIFIGAN$WAVEGLOW" ] || command+=(--denoising-strength "$DENOISING")
add_flags command
exec_or_print "${command[@]}" "$@"
