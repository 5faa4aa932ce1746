#!/usr/bin/env bash
# Speaks a text into speech.wav, with the voice and vocoder in voices/; it is speech speak; options are those of inference.py.
#   bash scripts/speak.sh "Any text."  # makes .venv at the first call
#   OUTPUT=hello.flac bash scripts/speak.sh "Slowly, please." --pace 0.8  # the suffix decides the format
#   bash scripts/speak.sh --show "Dr. Lee paid $3.50."  # prints the words and phones, and speaks nothing
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_ready -m speech_toolkit speak "$@" ${OUTPUT:+--output "$OUTPUT"}
