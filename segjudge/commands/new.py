"""`segjudge new`, `host`, `benchmarks`: a challenge of one's own, in a folder of its own."""

import argparse
import os
import sys
import tempfile
from itertools import groupby

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.families import OPTIONAL_LAYOUTS
from segjudge.system.errors import UsageError

from .shared import DONE, ProgressBar, program, say, shell_path

#: What is made where nothing else is asked for.
DEMO = "davis2017"


def new(args: argparse.Namespace) -> int:
    """Write a small repository with a challenge: your truth, a protocol, samples, texts."""
    from segjudge.starting.demo import write_published

    if args.demo and args.truth:
        raise UsageError("--demo brings its own truth; leave out --truth")
    folder = args.folder or _asked("Folder to write", "FOLDER")
    protocol = args.protocol or (DEMO if args.demo else _asked(f"Protocol ({', '.join(PROTOCOLS)})", "--protocol"))
    if protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {protocol!r}{name_hint(protocol, PROTOCOLS)}")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
        if args.demo:
            return _write(args, folder, protocol, write_published(PROTOCOLS[protocol], temporary))
        question = "The truth: a dataset's folder or zip, or its JSON"
        return _write(args, folder, protocol, args.truth or _asked(question, "--truth"))


def host(args: argparse.Namespace) -> int:
    """Write a challenge of a benchmark as `new` does: `host NAME --truth PATH --out FOLDER`."""
    return _write(args, args.out, args.protocol, args.truth)


def _write(args: argparse.Namespace, folder: str, protocol: str, truth: str) -> int:
    from segjudge.datasets.opening import TruthSource
    from segjudge.starting.new_challenge import NewChallenge, create

    truth = os.path.expanduser(truth)
    if not os.path.exists(truth):
        raise UsageError(f"--truth {truth}: there is no such file or folder")
    source = TruthSource(truth, args.layout or "", args.subset, args.unseen, args.categories)
    with ProgressBar() as bar:
        notes = create(NewChallenge(folder, protocol, source, args.title, args.segjudge), bar)
    for note in notes:
        say(note)
    print(f"{folder}: a challenge scored by {protocol}. Keep it private: it holds the truth.")
    print(f"Next: {program()} run {shell_path(folder)}; its README.md says what each file is for.")
    return DONE


def benchmarks(args: argparse.Namespace) -> int:
    """List the benchmarks, by track: what each one scores, in a line."""
    del args
    width = max(map(len, PROTOCOLS))
    for track, protocols in groupby(PROTOCOLS.values(), lambda protocol: protocol.track):
        print(f"{track}:")
        for protocol in protocols:
            print(f"  {protocol.name:{width}}  {protocol.about}")
    print(f"\nTo host one: {program()} host NAME --truth PATH --out FOLDER")
    return DONE


def _asked(question: str, option: str) -> str:
    """Ask the user on a terminal and return the answer; elsewhere raise UsageError for the missing option."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"new needs {option}")
    answer = ""
    while not answer:
        print(f"{question}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise UsageError(f"new needs {option}")
        answer = line.strip()
    return answer


def new_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    sub.add_argument("folder", nargs="?", help="the folder to write, which must be empty or not there")
    sub.add_argument("--protocol", choices=PROTOCOLS, metavar="PROTOCOL", help=", ".join(PROTOCOLS))
    sub.add_argument("--truth", help="a dataset as it was published, or a packed annotation file")
    sub.add_argument("--demo", action="store_true", help=f"take a small synthetic truth of PROTOCOL's form ({DEMO})")
    _common_options(sub)


def host_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `host`."""
    sub.add_argument("protocol", choices=PROTOCOLS, metavar="NAME", help="a benchmark of those that `benchmarks` lists")
    sub.add_argument("--truth", required=True, help="its truth as it was published, or a packed annotation file")
    sub.add_argument("--out", required=True, metavar="FOLDER", help="the folder to write, empty or not there")
    _common_options(sub)


def _common_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--subset", default="", help="the list of sequences, e.g. val")
    sub.add_argument("--title", default="", help="the challenge's title (default: from FOLDER)")
    sub.add_argument(
        "--segjudge",
        metavar="FROM",
        default="",
        help="what scores: a wheel, or the git address of a commit (default: this Segjudge)",
    )
    sub.add_argument(
        "--layout", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help="how TRUTH is laid out (default: as PROTOCOL's)"
    )
    sub.add_argument("--unseen", default="", help="file with the names of unseen sequences or categories")
    sub.add_argument("--categories", default="", metavar="FILE", help="with Places-style PNGs: their categories")
