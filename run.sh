#!/usr/bin/env bash
# The door: sets up what is needed, then runs the challenge, the tests, or any `linejudge` command.
#
#   ./run.sh            build the bundle, check it, score the sample submissions, show the leaderboards
#   ./run.sh test       run every check and test
#   ./run.sh worker     the remote worker; its settings are in docs/operators.md
#   ./run.sh COMMAND …  pass on to the command line, e.g. ./run.sh score --help
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
VENV="$HERE/.venv"
WORKER="$HERE/.venv-worker"
CLIENT="$HERE/.venv-client"
export LINEJUDGE_BUNDLE="$HERE"

fail() { printf 'run.sh: %s\n' "$*" >&2; exit 3; }

# python_of MINIMUM CANDIDATE… prints the first candidate that runs and is new enough.
python_of() {
    local minimum="$1" candidate; shift
    for candidate in "$@"; do
        if "$candidate" -c "import sys; sys.exit(sys.version_info[:2] < ($minimum))" >/dev/null 2>&1; then
            printf '%s\n' "$candidate"; return 0
        fi
    done
    return 1
}

# quietly LOG COMMAND… shows the end of the log only when the command fails.
quietly() {
    local log="$1"; shift
    "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "failed: $* (the whole log is in $log)"; }
}

# An environment is good when its stamp says what it was made from; anything else is made again,
# so that an interrupted installation or a moved checkout mends itself.
stamp() { printf '%s %s %s' "$1" "$HERE" "$(cat "${@:2}" | cksum)"; }

is_good() { # is_good ENVIRONMENT STAMP
    [ -x "$1/bin/python" ] && [ "$(cat "$1/stamp" 2>/dev/null)" = "$2" ] && "$1/bin/python" -c '' 2>/dev/null
}

make_venv() { # make_venv PYTHON ENVIRONMENT
    rm -rf "$2"
    "$1" -m venv "$2" >/dev/null 2>&1 || {
        rm -rf "$2"
        fail "$1 cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv"
    }
}

set_up() { # set_up EXTRA: the environment of the toolkit; each of "", "all" and "test" holds those before it
    local wanted python larger
    wanted="$(stamp "${1:-plain}" "$HERE/pyproject.toml")"
    is_good "$VENV" "$wanted" && return
    for larger in all test; do
        [ "${1:-}" != test ] && is_good "$VENV" "$(stamp "$larger" "$HERE/pyproject.toml")" && return
    done
    python="$(python_of '3, 11' python3 python3.14 python3.13 python3.12 python3.11 python)" ||
        fail "Python 3.11 or newer is needed and was not found"
    printf 'Setting up (once, about a minute)…\n' >&2
    make_venv "$python" "$VENV"
    quietly "$VENV/install.log" "$VENV/bin/python" -m pip install --disable-pip-version-check \
        -e "$HERE${1:+[$1]}"
    printf '%s' "$wanted" >"$VENV/stamp"
}

find_worker_python() { # the worker's interpreter, fetched when it is nowhere
    python_of '3, 9' python3.9 "$HOME"/.pyenv/versions/3.9.*/bin/python "${PYENV_ROOT:-/nowhere}"/versions/3.9.*/bin/python && return
    quietly "$VENV/uv.log" "$VENV/bin/python" -m pip install --disable-pip-version-check uv
    "$VENV/bin/uv" python install 3.9 >"$VENV/uv.log" 2>&1 && "$VENV/bin/uv" python find 3.9 2>/dev/null
}

set_up_worker() { # Python 3.9 with the packages and pins of EvalAI's worker
    local wanted python
    wanted="$(stamp worker "$HERE/linejudge/bundle/worker-3.9.txt" "$HERE/tests/worker-requirements.txt" "$HERE/evaluation_script/requirements.txt")"
    is_good "$WORKER" "$wanted" && return
    python="$(find_worker_python)" || return 1
    make_venv "$python" "$WORKER"
    quietly "$WORKER/install.log" "$WORKER/bin/python" -m pip install --disable-pip-version-check \
        -c "$HERE/linejudge/bundle/worker-3.9.txt" -r "$HERE/evaluation_script/requirements.txt" \
        -r "$HERE/tests/worker-requirements.txt"
    printf '%s' "$wanted" >"$WORKER/stamp"
}

set_up_client() { # the official `evalai` client; see the comments in the files of its packages
    local wanted
    wanted="$(stamp client "$HERE/tests/client-pinned.txt" "$HERE/tests/client-requirements.txt")"
    is_good "$CLIENT" "$wanted" && return
    make_venv "$VENV/bin/python" "$CLIENT"
    quietly "$CLIENT/install.log" "$CLIENT/bin/python" -m pip install --disable-pip-version-check \
        --no-deps -r "$HERE/tests/client-pinned.txt"
    quietly "$CLIENT/install.log" "$CLIENT/bin/python" -m pip install --disable-pip-version-check \
        -r "$HERE/tests/client-requirements.txt"
    printf '%s' "$wanted" >"$CLIENT/stamp"
}

in_halves() { # every test, in two processes at once: most of them wait for others most of the time
    local half failed=0
    "$VENV/bin/python" -m pytest -p no:cacheprovider tests/test_[!a-h]*.py >"$VENV/tests.log" 2>&1 &
    half=$!
    "$VENV/bin/python" -m pytest tests/journeys tests/test_[a-h]*.py || failed=$?
    wait "$half" || failed=$?
    printf '\nThe other half:\n'
    cat "$VENV/tests.log"
    return "$failed"
}

run_tests() {
    set_up test
    set_up_client
    export LINEJUDGE_EVALAI_CLIENT="$CLIENT/bin/python"
    cd "$HERE"
    if set_up_worker; then
        export LINEJUDGE_WORKER_PYTHON="$WORKER/bin/python"
    elif [ "${CI:-}" = true ]; then
        fail "the worker's Python 3.9 was not found and could not be fetched, and CI does not go without"
    else
        printf '\n*** PYTHON 3.9 ABSENT: the tests under the worker'\''s interpreter are SKIPPED ***\n\n' >&2
    fi
    "$VENV/bin/ruff" format --check .
    "$VENV/bin/ruff" check .
    "$VENV/bin/mypy"
    # Both interpreters at once: each uses one core most of the time.
    local beside="" failed=0
    if [ -n "${LINEJUDGE_WORKER_PYTHON:-}" ]; then
        "$LINEJUDGE_WORKER_PYTHON" -m pytest -p no:cacheprovider "$@" >"$WORKER/tests.log" 2>&1 &
        beside=$!
        trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
    fi
    if [ $# -gt 0 ]; then
        "$VENV/bin/python" -m pytest "$@" || failed=$?
    else
        in_halves || failed=$?
    fi
    if [ -n "$beside" ]; then
        wait "$beside" || [ $? -eq 5 ] || failed=1  # 5: none of the tests asked for is for that interpreter
        trap - EXIT
        printf '\nThe same under the interpreter and pins of EvalAI'\''s worker:\n'
        cat "$WORKER/tests.log"
    fi
    return "$failed"
}

if [ "${1:-}" = test ]; then
    shift
    run_tests "$@"
elif [ "${1:-}" = worker ]; then
    shift
    set_up ""
    cd "$HERE"
    exec "$VENV/bin/python" -m remote_challenge_evaluation "$@"
else
    case " $* " in
        " interactive "* | " arena "* | *" --agents "*) set_up all ;;
        *) set_up "" ;;
    esac
    if [ "${1:-}" = rehearse ] && set_up_worker; then export LINEJUDGE_WORKER_PYTHON="$WORKER/bin/python"; fi
    exec "$VENV/bin/python" -P -m linejudge "${@:-run}"  # -P: a folder named linejudge below us is not it
fi
