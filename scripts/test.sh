#!/usr/bin/env bash
# Checks everything: the tests, then style, layers and types; arguments go to pytest.
#   bash scripts/test.sh  # all of it (makes .venv on the first call)
#   bash scripts/test.sh tests/test_text.py -x  # one file, stopping at the first failure
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" && answer_help "$@"
cd "$ROOT"
use_python dev
# One thread a process: the tests run side by side, and sums come out the same on every machine.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
export PYTHONWARNINGS=error::FutureWarning # in the commands that the tests run, as in the tests themselves

trap 'exit 130' INT # Ctrl-C ends pytest cleanly, then this script

# check NAME COMMAND...: runs a check and reports its result; the next one runs even if it fails.
failed=0
check() {
    local result=passed
    (exec_or_print "${@:2}") || result=failed
    [ "$result" = passed ] || failed=1
    [ "$DRY_RUN" = 1 ] || echo "$1: $result"
}

# nproc would return OMP_NUM_THREADS instead of the number of cores.
workers=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
[ "$workers" -le 8 ] || workers=8 # each worker loads torch
check tests "$PYTHON" -m pytest -n "$workers" --dist worksteal "$@"
check ruff "$PYTHON" -m ruff check --quiet .
check import-linter "$PYTHON" -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo
check mypy "$PYTHON" -m mypy --no-error-summary
exit "$failed"
