"""`segjudge new`, `host`, `benchmarks`: a challenge of one's own, in a folder of its own."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.files.problems import name_hint
from segjudge.families import OPTIONAL_LAYOUTS
from segjudge.system.errors import UsageError

from .shared import DONE, Command, InputPath, ProgressBar, program, read_options, say, shell_path

#: What is made where nothing else is asked for.
_DEMO = "davis2017"


@dataclass(frozen=True)
class _Choices:
    """What `new` and `host` ask of a challenge, beside its folder, its protocol and its truth."""

    subset: str
    title: str
    segjudge: str
    layout: str | None
    unseen: str
    categories: str


def _new(args: argparse.Namespace) -> int:
    import tempfile

    from segjudge.starting.new_challenge import write_demo_truth

    if args.demo and args.truth:
        raise UsageError("--demo brings its own truth; leave out --truth")
    choices = read_options(_Choices, args)
    folder = args.folder or _ask("Folder to write", "FOLDER")
    protocol = args.protocol or (_DEMO if args.demo else _ask(f"Protocol ({', '.join(PROTOCOLS)})", "--protocol"))
    if protocol not in PROTOCOLS:
        raise UsageError(f"there is no protocol {protocol!r}{name_hint(protocol, PROTOCOLS)}")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
        if args.demo:
            return _write(choices, folder, protocol, write_demo_truth(PROTOCOLS[protocol], temporary))
        question = "The truth: a dataset's folder or zip, or its JSON"
        return _write(choices, folder, protocol, args.truth or _ask(question, "--truth"))


def _host(args: argparse.Namespace) -> int:
    return _write(read_options(_Choices, args), args.out, args.protocol, args.truth)


def _write(choices: _Choices, folder: str, protocol: str, truth: str) -> int:
    from segjudge.datasets.opening import TruthSource
    from segjudge.starting.new_challenge import NewChallenge, create

    truth = os.path.expanduser(truth)
    if not os.path.exists(truth):
        raise UsageError(f"--truth {truth}: there is no such file or folder")
    source = TruthSource(truth, choices.layout or "", choices.subset, choices.unseen, choices.categories)
    with ProgressBar() as bar:
        notes = create(NewChallenge(folder, protocol, source, choices.title, choices.segjudge), bar)
    for note in notes:
        say(note)
    print(f"{folder}: a challenge scored by {protocol}. Keep it private: it holds the truth.")
    print(f"Next: {program()} run {shell_path(folder)}; its README.md says what each file is for.")
    return DONE


def _list_benchmarks(_args: argparse.Namespace) -> int:
    width = max(map(len, PROTOCOLS))
    for name, family in FAMILIES.items():
        print(f"{name}:")
        for protocol in family.protocols.values():
            print(f"  {protocol.name:{width}}  {protocol.about}")
    print(f"\nTo host one: {program()} host NAME --truth PATH --out FOLDER")
    return DONE


def _ask(question: str, option: str) -> str:
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


def _add_new_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("folder", nargs="?", help="the folder to write, which must be empty or not there")
    add("--protocol", choices=PROTOCOLS, metavar="PROTOCOL", help=", ".join(PROTOCOLS))
    add("--truth", type=InputPath, help="a dataset as it was published, or a packed annotation file")
    add("--demo", action="store_true", help=f"take a small synthetic truth of PROTOCOL's form ({_DEMO})")
    _add_choices(sub)


def _add_host_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("protocol", choices=PROTOCOLS, metavar="NAME", help="a benchmark of those that `benchmarks` lists")
    truth = "its truth as it was published, or a packed annotation file"
    add("--truth", required=True, type=InputPath, help=truth)
    add("--out", required=True, metavar="FOLDER", help="the folder to write, empty or not there")
    _add_choices(sub)


def _add_choices(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("--subset", default="", help="the list of sequences, e.g. val")
    add("--title", default="", help="the challenge's title (default: from FOLDER)")
    scores = "what scores: a wheel, or the git address of a commit (default: this Segjudge)"
    add("--segjudge", metavar="FROM", default="", help=scores)
    layout = "how TRUTH is laid out (default: as PROTOCOL's)"
    add("--layout", choices=OPTIONAL_LAYOUTS, metavar="LAYOUT", help=layout)
    add("--unseen", default="", type=InputPath, help="file with the names of unseen sequences or categories")
    categories = "with Places-style PNGs: their categories"
    add("--categories", default="", metavar="FILE", type=InputPath, help=categories)


COMMANDS = {
    "new": Command(_add_new_options, _new),
    "host": Command(_add_host_options, _host),
    "benchmarks": Command(lambda _parser: None, _list_benchmarks),
}
