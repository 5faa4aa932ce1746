#!/usr/bin/env bash
# Speaks a text into speech.wav, with the voice and vocoder in voices/; further arguments go to inference.py.
#   bash scripts/speak.sh "Any text."  # makes .venv at the first call
#   OUTPUT=hello.flac bash scripts/speak.sh "Slowly, please." --pace 0.8  # the suffix decides the format
#   bash scripts/speak.sh --show "Dr. Lee paid $3.50."  # prints the words and phones, and speaks nothing
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
flags=()
while [[ "${1:-}" = --show || "${1:-}" = --plain ]]; do flags+=("$1") && shift; done
[[ $# -ge 1 && "$1" != --* ]] || fail 2 'expected: bash scripts/speak.sh "Any text." [options of inference.py]'
[ $# -lt 2 ] || [[ "$2" = -* ]] || fail 2 "$1 $2: put the text in quotes: bash scripts/speak.sh \"$1 $2${3:+ ...}\""
ensure_venv
exec_or_print "$PYTHON" inference.py --text "$1" --output "${OUTPUT:-speech.wav}" "${flags[@]}" "${@:2}"
