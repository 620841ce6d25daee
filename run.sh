#!/usr/bin/env bash
# Sets up the environments, then runs the challenge, the tests, or any `segjudge` command.
#
#   ./run.sh            build the bundle, check it, score the sample submissions, show the leaderboards
#   ./run.sh test       run the checks and tests; with --all, those that take long too; with a file, that one
#   ./run.sh format     format the sources, and mend what ruff can mend
#   ./run.sh site       build the site of the documentation: dist/site
#   ./run.sh worker     the remote worker; its settings are in docs/operators.md
#   ./run.sh COMMAND …  pass on to the command line, e.g. ./run.sh score --help
#
# The environments are made by segjudge/set_up/.
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
export SEGJUDGE_BUNDLE="$HERE"
[ "$(ulimit -f)" = unlimited ] || export PYTHONDONTWRITEBYTECODE=1  # it would be cut off, and broken from then on

# Use the first that runs and is new enough; the environment's own comes first, so that it keeps its Python.
for python in "$HERE/.venv/bin/python" python3 python3.14 python3.13 python3.12 python3.11 python ""; do
    [ -n "$python" ] || { echo "run.sh: Python 3.11 or newer is needed and was not found" >&2; exit 3; }
    if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then break; fi
done

# call MODULE ARGUMENT… runs the main function of a module that needs nothing installed.
call() {
    local code='import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; sys.exit(import_module(sys.argv.pop(1)).main(sys.argv[1:]))'
    exec "$python" -I -S -B -c "$code" "$HERE" "$@"
}
# enter ENVIRONMENT… -- ARGUMENT… runs the toolkit's Python with these arguments in place of this shell.
enter() { call segjudge.set_up.main "$@"; }

for word in "$@"; do
    case "$word" in
        --) break ;;
        -h | --help)
            case "$1" in
                test | format) break ;;
                site) exec echo "usage: ./run.sh site [FOLDER]   build the site of the documentation: dist/site" ;;
            esac
            enter help -- -P -m segjudge "$@"
            ;;
    esac
done
case "${1:-run}" in
    test | format)
        cd "$HERE"
        call tests.everything "$@"
        ;;
    site)
        shift
        enter 'toolkit[test]' -- "$HERE/docs/site/build.py" "$@"
        ;;
    worker)  # in this folder, unless one stands in a bundle of one's own
        [ -f challenge_config.yaml ] || [ -f challenge_config.yml ] || cd "$HERE"
        ;;
esac
case "${*:-run} " in  # -P: do not import a folder named segjudge in the current folder
    "rehearse "*"--agents"*) enter 'toolkit[all]' try:worker -- -P -m segjudge "$@" ;;
    "rehearse "*) enter toolkit try:worker -- -P -m segjudge "$@" ;;
    "interactive "* | "arena "* | *" --agents"*) enter 'toolkit[all]' -- -P -m segjudge "$@" ;;
    "run "*) enter toolkit found:worker -- -P -m segjudge "${@:-run}" ;;
    *) enter toolkit -- -P -m segjudge "$@" ;;
esac
