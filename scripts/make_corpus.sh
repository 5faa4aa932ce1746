#!/usr/bin/env bash
# Makes a corpus of texts that a server with OpenAI's speech API reads: a teacher's, or scripts/serve.sh.
#   bash scripts/make_corpus.sh texts.txt -o teacher --from-server http://127.0.0.1:8080 --voice alloy --license Apache-2.0
#   OPENAI_API_KEY=... bash scripts/make_corpus.sh texts.txt -o two --from-server https://host/v1 --model tts --voice ann bob
# Texts are lines id|text, or texts alone; scripts/datasets/choose_texts.py orders them. Clips that are empty, cut off, or
# far too fast or slow for their text are named and left out. Run again, it resumes. docs/DATA.md says what licenses allow.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && run_python -m scripts.datasets.make_corpus "$@"
