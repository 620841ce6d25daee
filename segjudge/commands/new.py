"""`segjudge new`: a challenge of one's own, in a folder of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile

from segjudge.datasets.layouts import LAYOUTS
from segjudge.errors import UsageError
from segjudge.evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.sequence_protocols import SEQUENCE_PROTOCOLS

from .shared import DONE, ProgressBar, program, say

#: The benchmarks that there are templates for.
PROTOCOLS = {**SEQUENCE_PROTOCOLS, **INSTANCE_PROTOCOLS}


def new(args: argparse.Namespace) -> int:
    """Write a small repository with a challenge: your truth, a protocol, samples, texts."""
    from segjudge.datasets.opening import TruthSource
    from segjudge.demo.make import write_dataset
    from segjudge.starting.new_challenge import NewChallenge, create

    if args.demo and (args.protocol or args.truth):
        raise UsageError("--demo brings its own truth; leave out --protocol and --truth")
    folder = args.folder or _asked("Folder to write", "FOLDER")
    with tempfile.TemporaryDirectory() as temporary, ProgressBar() as bar:
        if args.demo:
            protocol, truth = "davis2017", os.path.join(temporary, "demo.zip")
            write_dataset(truth)
        else:
            protocol = args.protocol or _asked(f"Protocol ({', '.join(PROTOCOLS)})", "--protocol")
            if protocol not in PROTOCOLS:
                raise UsageError(f"there is no protocol {protocol!r}, only {', '.join(PROTOCOLS)}")
            truth = os.path.expanduser(
                args.truth or _asked("The truth: a dataset's folder or zip, or COCO's JSON", "--truth")
            )
        if not os.path.exists(truth):
            raise UsageError(f"--truth {truth}: there is no such file or folder")
        source = TruthSource(truth, args.layout or "", args.subset, args.unseen, args.categories)
        notes = create(NewChallenge(folder, protocol, source, args.title, args.segjudge), bar)
    for note in notes:
        say(f"truth: {note}")
    print(f"{folder}: a challenge scored by {protocol}. Keep it private: it holds the truth.")
    print(f"Next: {program()} run {shlex.quote(folder)}; its README.md says what each file is for.")
    return DONE


def _asked(question: str, option: str) -> str:
    """Return the user's answer on a terminal; elsewhere raise UsageError for the option that is missing."""
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
    sub.add_argument("--truth", help="a dataset as it was published, COCO's JSON, or a packed annotation file")
    sub.add_argument("--subset", default="", help="the list of sequences, e.g. val")
    sub.add_argument("--demo", action="store_true", help="take three small synthetic videos as the truth")
    sub.add_argument("--title", default="", help="the challenge's title (default: from FOLDER)")
    sub.add_argument("--segjudge", metavar="FROM", default="", help="what scores: a version, a wheel or a git address")
    sub.add_argument(
        "--layout", choices=LAYOUTS, metavar="LAYOUT", help="how TRUTH is laid out (default: as PROTOCOL's)"
    )
    sub.add_argument("--unseen", default="", help="file with the names of unseen sequences or categories")
    sub.add_argument("--categories", default="", metavar="FILE", help="with Places-style PNGs: their categories")
