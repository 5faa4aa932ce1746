#!/usr/bin/env bash
# Speaks a text into speech.wav with the voice and vocoder in voices/, like `speech speak`; options are those of inference.py.
#   OUTPUT=hello.flac bash scripts/speak.sh "Slowly, please." --pace 0.8  # the suffix decides the format
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m speech_toolkit speak "$@" ${OUTPUT:+--output "$OUTPUT"}
