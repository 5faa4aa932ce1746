#!/usr/bin/env bash
# Checks everything: the tests, then style, layers and types; arguments go to pytest.
#   bash scripts/test.sh  # all of it (makes .venv at the first call)
#   bash scripts/test.sh tests/test_text.py -x  # one file, stopping at the first failure
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

source scripts/lib/browser.sh

ensure_venv dev
install_browser
# One thread a process: the tests run side by side, and sums come out the same on every machine.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
export PYTHONWARNINGS=error::FutureWarning # in the commands that the tests run, as in the tests themselves

trap 'exit 130' INT # Ctrl-C ends pytest in good order, and then this script too

# report NAME STATUS: one line for each check; a failed one does not keep the next from running.
failed=0
report() {
    [ "$2" = 0 ] || failed=1
    [ "${DRY_RUN:-0}" = 1 ] || say "$1: $([ "$2" = 0 ] && echo passed || echo failed)"
}

# lint NAME COMMAND...: runs a linter, and shows its output if it finds something.
lint() {
    local output status=0
    output=$(run_or_print "${@:2}" 2>&1) || status=$?
    [ "$status" = 0 ] && [ "${DRY_RUN:-0}" != 1 ] || say "$output"
    report "$1" "$status"
}

# nproc would take OMP_NUM_THREADS for the number of cores.
workers=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
[ "$workers" -le 8 ] || workers=8 # each worker loads torch
status=0
run_or_print "$PYTHON" -m pytest -n "$workers" --dist worksteal "$@" || status=$?
report tests "$status"
lint ruff "$PYTHON" -m ruff check --quiet .
lint import-linter "$PYTHON" -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo
lint mypy "$PYTHON" -m mypy --no-error-summary
exit "$failed"
