#!/usr/bin/env bash
# Writes the locks again with uv: packaging/locks/renew.sh [-P PACKAGE | --upgrade]
#
# Each lock has hashes of all files of a package, for every system and Python. uv.txt: the uv that run.sh fetches.
# toolkit.txt: all extras, the tests, and what builds wheels. release.txt: what packaging/build.py needs.
# tests/commands/peers.txt: a package whose own tests run with our stand-in.
# client.txt: EvalAI's official client. worker.txt: EvalAI's worker, whose Python is 3.9.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
options=(--quiet --universal --generate-hashes --no-header --no-annotate)
uv() { command uv pip compile "${options[@]}" "$@"; }
uv --python-version 3.11 "$@" -o packaging/locks/uv.txt - <<< "uv"
uv --python-version 3.11 "$@" -o packaging/locks/toolkit.txt pyproject.toml --extra test - <<< $'pip\nsetuptools>=77'
uv --python-version 3.11 "$@" -o packaging/locks/release.txt - <<< $'build\nsetuptools>=77\ntwine\nziglang==0.13.0'
uv --python-version 3.11 --no-deps -o tests/commands/peers.txt - <<< $'faster-coco-eval==1.8.0\nparameterized==0.9.0'
# Without the dependencies of the client, whose lxml has no wheel for a Python of today.
uv --python-version 3.11 "$@" -o packaging/locks/client.txt tests/client-requirements.txt
uv --python-version 3.11 --no-deps -o packaging/locks/pinned.txt tests/client-pinned.txt
cat packaging/locks/pinned.txt >> packaging/locks/client.txt
uv --python-version 3.9 "$@" -o packaging/locks/worker.txt -c segjudge/platforms/evalai/bundle/worker-3.9.txt \
    evaluation_script/requirements.txt tests/worker-requirements.txt - <<< "pip"
# Without what only later Pythons would install.
awk '/^[a-z]/ { kept = !/python_full_version (>=|==) .3\.1/ } kept' packaging/locks/worker.txt > packaging/locks/pinned.txt
mv packaging/locks/pinned.txt packaging/locks/worker.txt
