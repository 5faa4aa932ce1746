#!/usr/bin/env bash
# Times training of Jasper: scripts/train_benchmark.sh with MODEL=Jasper, whose variables it takes.
MODEL=Jasper exec bash "$(dirname "${BASH_SOURCE[0]}")/train_benchmark.sh" "$@"
