#!/usr/bin/env bash
# Another name for scripts/train_benchmark.sh.
source "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" "$@"
