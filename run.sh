#!/usr/bin/env bash
# Sets up the environments, then runs the challenge, the tests, or any `segjudge` command.
#
#   ./run.sh            build the bundle, check it, score the sample submissions, show the leaderboards
#   ./run.sh test       run the checks and the quick tests; --all adds the long ones; FILE runs one file
#   ./run.sh format     format the sources and apply ruff's fixes
#   ./run.sh site       build the documentation site in dist/site
#   ./run.sh worker     run the remote worker; docs/operators.md lists its settings
#   ./run.sh COMMAND …  run a command of segjudge, such as ./run.sh score --help
#   ./run.sh help       list the commands
#
# segjudge/set_up/ creates the environments.
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
export SEGJUDGE_BUNDLE="$HERE"
unset PYTHONPATH PYTHONHOME PYTHONPLATLIBDIR  # clusters' modules set them for another Python
unset PYTHONDONTWRITEBYTECODE  # images set it, and each start would compile hundreds of files again
[ "$(ulimit -f)" = unlimited ] || export PYTHONDONTWRITEBYTECODE=1  # a truncated file would stay broken

# Use the first that runs and is new enough. The environment's own comes first, so that it stays in use.
for python in "$HERE/.venv/bin/python" python3 python3.14 python3.13 python3.12 python3.11 python ""; do
    [ -n "$python" ] || { echo "run.sh: found no Python 3.11 or newer; install one" >&2; exit 3; }
    [[ "$("$python" -V 2>/dev/null)" =~ ^Python\ 3\.(1[1-9]|[2-9][0-9])(\.|$) ]] && break
done

# call MODULE ARGUMENT… runs the main function of a module that needs no packages.
call() {
    local code='import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; sys.exit(import_module(sys.argv.pop(1)).main(sys.argv[1:]))'
    exec "$python" -I -S -B -c "$code" "$HERE" "$@"
}
# enter ENVIRONMENT… -- ARGUMENT… replaces this shell by the toolkit's Python with these arguments.
enter() { call segjudge.set_up.main "$@"; }
# help ARGUMENT… prints the help of a command, which needs no environment.
help() {
    exec "$python" -I -B -c 'import sys; sys.path.append(sys.argv.pop(1)); from segjudge.__main__ import main; sys.exit(main())' "$HERE" "$@"
}

[ "${1:-}" != help ] || help "$@"
for word in "$@"; do
    case "$word" in
        --) break ;;
        -h | --help)
            case "$1" in
                test | format) break ;;
                site) echo "usage: ./run.sh site [--out FOLDER]   build the documentation site (default: dist/site)" 2>/dev/null || true; exit ;;
            esac
            help "$@"
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
    worker)  # in this folder, unless the current folder is a bundle
        [ -f challenge_config.yaml ] || [ -f challenge_config.yml ] || cd "$HERE"
        ;;
esac
case "${*:-run} " in  # -P: do not import a folder named segjudge in the current folder
    "rehearse "*" --agents"*) enter 'toolkit[all]' try:worker -- -P -m segjudge "$@" ;;
    "rehearse "*) enter toolkit try:worker -- -P -m segjudge "$@" ;;
    "interactive "* | "arena "* | *" --agents"* | *" --plots"* | *" --scheduler"*) enter 'toolkit[all]' -- -P -m segjudge "$@" ;;
    "push "*" hugging-face "* | "worker "*" hugging-face "*) enter 'toolkit[all]' -- -P -m segjudge "$@" ;;
    "score "*://* | "report "*://* | "compare "*://* | "pack "*://*) enter 'toolkit[all]' -- -P -m segjudge "$@" ;;
    "run "*) enter toolkit found:worker -- -P -m segjudge "${@:-run}" ;;
    *) enter toolkit -- -P -m segjudge "$@" ;;
esac
