"""`segjudge new`, `host`, `benchmarks`: a challenge of one's own, in a folder of its own."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, describe_unknown
from segjudge.system.errors import UsageError

from .shared import (
    DONE,
    Command,
    InputPath,
    ProgressBar,
    add_truth_options,
    choose_bundle,
    look,
    program,
    read_source,
    say,
)

if TYPE_CHECKING:
    from segjudge.starting.new_challenge import NewChallenge

#: What is made where nothing else is asked for.
_DEMO = "davis2017"
#: The options of `new` that say something of a challenge.
_OF_CHALLENGES = ("protocol", "truth", "demo", "title", "subset", "layout", "unseen", "categories")


def _new(args: argparse.Namespace) -> int:
    import tempfile

    from segjudge.starting.new_challenge import NewChallenge, write_demo_truth

    if args.family is not None:
        return _write_family(args)
    if args.demo and args.truth:
        raise UsageError("--demo brings its own truth; leave out --truth")
    folder = args.folder or _ask("Folder to write", "FOLDER")
    protocol = args.protocol or (
        _DEMO if args.demo else _ask("Protocol (`segjudge benchmarks` lists them)", "--protocol")
    )
    if protocol not in PROTOCOLS:
        raise UsageError(describe_unknown(protocol))
    with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
        if args.demo:
            truth = write_demo_truth(PROTOCOLS[protocol], temporary)
        else:
            truth = args.truth or _ask("The truth: a dataset's folder or zip, or its JSON", "--truth")
        return _write(NewChallenge(folder, protocol, read_source(args, truth), args.title, args.segjudge))


def _write_family(args: argparse.Namespace) -> int:
    from segjudge.starting.new_family import NewFamily, create_family

    options = [name for name in _OF_CHALLENGES if getattr(args, name)]
    if options:
        raise UsageError(f"--family writes a plug-in, not a challenge; leave out --{options[0]}")
    family = NewFamily(args.folder or _ask("Folder to write", "FOLDER"), args.family, args.segjudge)
    create_family(family)
    print(f"{family.folder}: a plug-in with the family {family.name}, the example of docs/adding-a-family.md.")
    print("Next, there: pip install -r requirements.txt -e . pytest, and pytest; its README.md says what is in it.")
    return DONE


def _host(args: argparse.Namespace) -> int:
    from segjudge.starting.new_challenge import NewChallenge

    written = _write(NewChallenge(args.out, args.protocol, read_source(args, args.truth), args.title, args.segjudge))
    if args.build:
        _build_all(args.out)
    return written


def _build_all(folder: str) -> None:
    """Build what EvalAI and Codabench take, below the folder's `dist`."""
    from segjudge.platforms.codabench.build import build as build_competitions
    from segjudge.platforms.evalai.bundle.build import build as build_bundle

    print(build_bundle(folder))
    built = build_competitions(choose_bundle(folder))
    for text, codenames in built.notes.items():
        say(f"{', '.join(codenames)}: {text}.")
    print(*built.competitions, sep="\n")


def _write(challenge: NewChallenge) -> int:
    from segjudge.starting.new_challenge import create

    source = challenge.source._replace(path=os.path.expanduser(challenge.source.path))
    if not os.path.exists(source.path):
        raise UsageError(f"--truth {source.path}: there is no such file or folder")
    with ProgressBar() as bar:
        notes = create(replace(challenge, source=source), bar)
    for note in notes:
        say(note)
    print(f"{challenge.folder}: a challenge scored by {challenge.protocol}. Keep it private: it holds the truth.")
    # No program takes for an option what begins with a point.
    folder = shlex.quote(os.path.join(os.curdir, challenge.folder) if challenge.folder[0] == "-" else challenge.folder)
    print(f"Next: {program()} run {folder}; its README.md says what each file is for.")
    return DONE


def _list_benchmarks(args: argparse.Namespace) -> int:
    if args.json:
        rows = [
            {"name": protocol.name, "family": name, "about": protocol.about, "metrics": list(protocol.metrics),
             "revision": protocol.revision}
            for name, family in FAMILIES.items()
            for protocol in family.protocols.values()
        ]  # fmt: skip
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return DONE
    width, columns = max(map(len, PROTOCOLS)), look().width
    for name, family in FAMILIES.items():
        print(f"{name}:")
        for protocol in family.protocols.values():
            print(_list_item(protocol.name, protocol.about, min(width, columns // 2) if columns else width, columns))
    for fault in FAMILIES.faults:
        say(fault)
    print(f"\nTo host one: {program()} host NAME --truth PATH --out FOLDER")
    return DONE


def _list_item(name: str, about: str, width: int, columns: int) -> str:
    """A name and what it is about, beside each other and not wider than a terminal; 0: as wide as they are."""
    start = f"  {name:{width}}  "
    if not columns:
        return start + about
    return textwrap.fill(about, columns - 1, initial_indent=start, subsequent_indent=" " * (width + 4))


def _ask(question: str, option: str) -> str:
    """Ask the user on a terminal; elsewhere raise UsageError for the missing option."""
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
    add("--protocol", choices=PROTOCOLS, metavar="PROTOCOL", help="a benchmark of those that `benchmarks` lists")
    add("--truth", type=InputPath, help="a dataset as it was published, or a packed annotation file")
    add("--demo", action="store_true", help=f"take a small synthetic truth of PROTOCOL's form ({_DEMO})")
    add("--family", metavar="NAME", help="write no challenge, but a plug-in with a family of this name")
    _add_choices(sub)


def _add_host_options(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("protocol", choices=PROTOCOLS, metavar="NAME", help="a benchmark of those that `benchmarks` lists")
    truth = "its truth as it was published, or a packed annotation file"
    add("--truth", required=True, type=InputPath, help=truth)
    add("--out", required=True, metavar="FOLDER", help="the folder to write, empty or not there")
    add("--build", action="store_true", help="build what EvalAI and Codabench take, too: FOLDER/dist")
    _add_choices(sub)


def _add_list_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="print them for a program, with metrics and revisions")


def _add_choices(sub: argparse.ArgumentParser) -> None:
    add = sub.add_argument
    add("--title", default="", help="the challenge's title (default: from FOLDER)")
    scores = "what scores: a wheel, or the git address of a commit (default: this Segjudge)"
    add("--segjudge", metavar="FROM", default="", help=scores)
    add_truth_options(sub, "as PROTOCOL's")


COMMANDS = {
    "new": Command(_add_new_options, _new),
    "host": Command(_add_host_options, _host),
    "benchmarks": Command(_add_list_options, _list_benchmarks),
}
