#!/usr/bin/env bash
# Serves a voice over HTTP, with the studio on its front page; Ctrl-C stops it. Arguments go to serve.py.
#   bash scripts/serve.sh  # with the newest checkpoint in ./output, else in ./pretrained_models, else the voice in ./voices
#   FASTPITCH=voice.pt HIFIGAN=vocoder.pt JASPER=jasper.pt bash scripts/serve.sh --port 8090
#   TACOTRON2=voice.pt WAVEGLOW=vocoder.pt AMP=true bash scripts/serve.sh
# Without a vocoder's checkpoint a downloaded one for the voice makes the sound, or that in ./voices, or Griffin-Lim. The
# address is of this machine alone, unless --host says another.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
use_python

: "${FASTPITCH:=}" # checkpoint of the voice; empty: the newest
: "${TACOTRON2:=}" # checkpoint of a voice, instead of FASTPITCH
: "${HIFIGAN:=}"   # checkpoint of the vocoder
: "${WAVEGLOW:=}"  # the same, instead of HIFIGAN
: "${HARMONIC:=}"  # the same, instead of HIFIGAN
: "${JASPER:=}"    # checkpoint of a recognizer; empty: no transcriptions
: "${SPEECH_API_KEY:=}" # key that clients must send; empty: they need none
: "${AMP:=false}" # `true`: mixed precision
: "${EMA:=}" # `true`: use the EMA weights; `false`: the raw ones; empty: EMA weights where there are any
: "${NUM_GPUS:=auto}" # `auto`: the GPU if there is one; 0: the CPU

PHRASES="" find_checkpoint "$@"
command=("$PYTHON" serve.py)
add_given command --fastpitch "$FASTPITCH" --tacotron2 "$TACOTRON2" --hifigan "$HIFIGAN" --waveglow "$WAVEGLOW" \
    --harmonic "$HARMONIC"
add_given command --jasper "$JASPER"
add_flags command
note_vocoder
exec_or_print "${command[@]}" "$@"
