"""`segjudge new` and `benchmarks`: create a challenge or list benchmarks; `host` is an earlier name of `new`."""

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
from segjudge.system.files import OutputFolder

from .parser import PROGRAM, CommandParser, program
from .shared import (
    DONE,
    OUTPUT,
    RARELY,
    TRUTH,
    WIDTH,
    Command,
    InputPath,
    ProgressBar,
    add_truth_options,
    choose_bundle,
    look,
    say,
)

if TYPE_CHECKING:
    from segjudge.starting.new_challenge import NewChallenge

#: The default protocol of a demo.
_DEMO = "davis2017"
#: The help of `--build`.
_BUILD = "also build the bundles for EvalAI and Codabench, in FOLDER/dist"
_BENCHMARK = f"the benchmark whose rules score; `{PROGRAM} benchmarks` lists them"
_TRUTH = "the ground truth: a dataset as published (folder or zip), or a packed annotation file"
#: The options of `new` about challenges.
_OF_CHALLENGES = (
    "protocol",
    "truth",
    "demo",
    "build",
    "title",
    "subset",
    "layout",
    "unseen",
    "categories",
    "all_metrics",
    "board",
    "history",
)


def _new(args: argparse.Namespace) -> int:
    import tempfile

    from segjudge.families.truths import TruthSource
    from segjudge.starting.new_challenge import NewChallenge, write_demo_truth

    if args.family is not None:
        return _write_family(args)
    if args.history:
        return _continue_board(args)
    if args.demo and args.truth:
        raise UsageError("--demo brings its own truth; omit --truth")
    if args.board and args.build:
        raise UsageError("--board and --build exclude each other: nothing of a board is uploaded as a bundle")
    folder = args.folder or _ask("Folder to write", "FOLDER")
    protocol = args.protocol or (
        _DEMO if args.demo else _ask("Protocol (`segjudge benchmarks` lists them)", "--protocol NAME")
    )
    if protocol not in PROTOCOLS:
        raise UsageError(describe_unknown(protocol))
    with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
        if args.demo:
            truth = write_demo_truth(PROTOCOLS[protocol], temporary)
        else:
            truth = args.truth or _ask("The truth: a dataset's folder or zip, or its JSON", "--truth PATH")
        source = TruthSource(truth, args.layout, args.subset, args.unseen, args.categories)
        written = _write_challenge(
            NewChallenge(
                folder,
                protocol,
                source,
                args.title,
                args.segjudge,
                all_metrics=args.all_metrics,
                is_demo=args.demo,
                board=args.board or "",
            )
        )
    if args.build:
        _build_all(folder)
    return written


def _write_family(args: argparse.Namespace) -> int:
    from segjudge.starting.new_family import NewFamily, create_family

    options = [name for name in _OF_CHALLENGES if getattr(args, name)]
    if options:
        raise UsageError(f"--family writes a plug-in, not a challenge; omit --{options[0].replace('_', '-')}")
    family = NewFamily(args.folder or _ask("Folder to write", "FOLDER"), args.family, args.segjudge)
    create_family(family)
    print(f"{family.folder}: a plug-in with the family {family.name}, copied from docs/adding-a-family.md.")
    print(
        "Next, in that folder: pip install -r requirements.txt -e . pytest, then pytest. README.md describes the files."
    )
    return DONE


def _continue_board(args: argparse.Namespace) -> int:
    """Write a board for the challenge of an archive, with its history."""
    if not args.board:
        raise UsageError("--history needs --board, such as --board github")
    options = [name for name in _OF_CHALLENGES if name not in ("board", "history") and getattr(args, name)]
    if options:
        fault = f"omit --{options[0].replace('_', '-')}, which the archive's challenge decides"
        raise UsageError(f"--history {args.history}: {fault}")
    from segjudge.starting.continued_board import continue_board

    folder = args.folder or _ask("Folder to write", "FOLDER")
    for note in continue_board(folder, args.history, args.segjudge):
        say(note)
    print(f"{folder}: the challenge of {args.history}, with its history. Keep the folder private: it holds the truth.")
    _print_steps(folder, args.board)
    return DONE


def _host(args: argparse.Namespace) -> int:
    from segjudge.families.truths import TruthSource
    from segjudge.starting.new_challenge import NewChallenge

    source = TruthSource(args.truth, args.layout, args.subset, args.unseen, args.categories)
    written = _write_challenge(
        NewChallenge(args.out, args.protocol, source, args.title, args.segjudge, args.all_metrics)
    )
    if args.build:
        _build_all(args.out)
    return written


def _build_all(folder: str) -> None:
    """Build the bundles for EvalAI and Codabench in the folder's `dist`."""
    from segjudge.platforms.codabench.build import build as build_competitions
    from segjudge.platforms.evalai.bundle.build import build as build_bundle

    print(build_bundle(folder))
    built = build_competitions(choose_bundle(folder))
    for text, codenames in built.notes.items():
        say(f"{', '.join(codenames)}: {text}.")
    print(*built.competitions, sep="\n")


def _write_challenge(challenge: NewChallenge) -> int:
    from segjudge.starting.new_challenge import create

    source = challenge.source._replace(path=os.path.expanduser(challenge.source.path))
    if not os.path.exists(source.path):
        raise UsageError(f"--truth {source.path}: there is no such file or folder")
    with ProgressBar() as bar:
        notes = create(replace(challenge, source=source), bar)
    for note in notes:
        say(note)
    secret = f"Keep {'the folder private' if challenge.board else 'it private'}: it holds the truth."
    print(f"{challenge.folder}: a challenge scored by {challenge.protocol}. {secret}")
    _print_steps(challenge.folder, challenge.board)
    return DONE


def _print_steps(folder: str, board: str) -> None:
    """Print what to do next with a new challenge or board."""
    # No program reads a leading dot as an option.
    quoted = shlex.quote(os.path.join(os.curdir, folder) if folder[0] == "-" else folder)
    if board:
        print(f"Next: {program()} check {quoted} --platform {board}; HOSTING.md has the steps to open it.")
    else:
        print(f"Next: {program()} run {quoted}; its README.md describes each file.")


def _list_benchmarks(args: argparse.Namespace) -> int:
    if args.name:
        return _describe_benchmark(args.name, as_json=args.json)
    if args.json:
        rows = [
            {"name": protocol.name, "family": name, "about": protocol.about, "metrics": list(protocol.metrics),
             "revision": protocol.revision}
            for name, family in FAMILIES.items()
            for protocol in family.protocols.values()
        ]  # fmt: skip
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return DONE
    width, columns = max(map(len, PROTOCOLS)), look(otherwise=WIDTH).width
    for name, family in FAMILIES.items():
        print(f"{name}:")
        for protocol in family.protocols.values():
            print(_list_item(protocol.name, protocol.about, min(width, columns // 2), columns))
    for fault in FAMILIES.faults:
        say(fault)
    print(f"\nTo describe one:\n  {program()} benchmarks NAME")
    print(f"To host one:\n  {program()} new FOLDER --protocol NAME --truth PATH")
    return DONE


def _describe_benchmark(name: str, *, as_json: bool) -> int:
    from segjudge.starting.benchmarks import describe_benchmark

    benchmark, columns = describe_benchmark(PROTOCOLS[name]), look(otherwise=WIDTH).width
    if as_json:
        print(json.dumps(benchmark.as_json(), indent=1, ensure_ascii=False))
        return DONE
    print(
        textwrap.fill(
            f"{name}  {benchmark.protocol.about}", columns - 1, subsequent_indent="    ", break_on_hyphens=False
        )
    )
    print("\nmetrics (the first one ranks):")
    width = max(len(metric.name) for metric in benchmark.metrics)
    for metric in benchmark.metrics:
        print(_list_item(metric.name, f"{metric.about} ({metric.describe_values()})", width, columns))
    if benchmark.truth:
        print(f"\ntruth as published, for a small synthetic dataset (--layout {benchmark.layout}):")
        print(*(f"  {path}" for path in benchmark.truth), sep="\n")
        print(f"\nsubmission ({benchmark.upload_types}), for the same dataset:")
        print(*(f"  {path}" for path in benchmark.submission), sep="\n")
    if benchmark.page:
        print(f"\nmore: {benchmark.page}")
    commands = {
        "score results": f"score RESULTS --truth PATH --protocol {name}",
        "host it": f"new FOLDER --protocol {name} --truth PATH",
        "try it on synthetic data": f"new FOLDER --protocol {name} --demo",
    }
    for purpose, command in commands.items():
        print(f"\nto {purpose}:\n  {program()} {command}")
    return DONE


def _list_item(name: str, about: str, width: int, columns: int) -> str:
    """Return a name and its description in two columns, wrapped to a width."""
    indent = " " * (width + 4)
    return textwrap.fill(
        about, columns - 1, initial_indent=f"  {name:{width}}  ", subsequent_indent=indent, break_on_hyphens=False
    )


def _ask(question: str, option: str) -> str:
    """Return the user's answer on a terminal; raises UsageError for a missing option elsewhere."""
    instead = "" if option == "FOLDER" else ", or --demo for a small synthetic truth"
    missing = UsageError(f"new needs {option}{instead}; see {program()} help new")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise missing
    answer = ""
    while not answer:
        print(f"{question}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise missing
        answer = line.strip()
    return answer


def _add_new_options(sub: CommandParser) -> None:
    about = "the folder to write; it must be empty or missing"
    sub.add_argument("folder", nargs="?", metavar="FOLDER", type=OutputFolder, help=about)
    sub.arrange_groups(TRUTH, OUTPUT, RARELY)
    add = sub.options_of(TRUTH)
    add("--protocol", choices=PROTOCOLS, metavar="NAME", help=_BENCHMARK)
    add("--truth", metavar="PATH", type=InputPath, help=_TRUTH)
    add("--demo", action="store_true", help=f"use a small synthetic truth (default benchmark: {_DEMO})")
    sub.options_of(OUTPUT)("--build", action="store_true", help=_BUILD)
    about = "write the two repositories of a board that needs no server: %(choices)s"
    sub.options_of(OUTPUT)("--board", choices=("github",), help=about)
    about = "with --board: the archive of an event, whose challenge and leaderboards the board continues"
    sub.options_of(OUTPUT)("--history", metavar="EVENT", type=InputPath, default="", help=about)
    _add_choices(sub)
    about = "write a plug-in with a new family of this name instead of a challenge"
    sub.options_of(RARELY)("--family", metavar="NAME", help=about)


def _add_host_options(sub: CommandParser) -> None:
    add = sub.add_argument
    add("protocol", choices=PROTOCOLS, metavar="NAME", help=_BENCHMARK)
    add("--truth", required=True, metavar="PATH", type=InputPath, help=_TRUTH)
    add("--out", required=True, metavar="FOLDER", help="the folder to write; it must be empty or missing")
    add("--build", action="store_true", help=_BUILD)
    _add_choices(sub)


def _add_list_options(sub: CommandParser) -> None:
    about = "the benchmark to describe: its metrics, files of truth and submission, web page, and commands to copy"
    sub.add_argument("name", nargs="?", choices=PROTOCOLS, metavar="NAME", help=about)
    sub.options_of(OUTPUT)("--json", action="store_true", help="print JSON, with metrics and revisions")


def _add_choices(sub: CommandParser) -> None:
    sub.options_of(OUTPUT)("--title", metavar="TEXT", default="", help="the challenge's title (default: from FOLDER)")
    about = "put all metrics on the leaderboard (default: the first ones, at most seven)"
    sub.options_of(OUTPUT)("--all-metrics", action="store_true", help=about)
    add_truth_options(sub, "the benchmark's own")
    scores = "the Segjudge that scores: a wheel, or the git URL of a commit (default: this one)"
    sub.options_of(RARELY)("--segjudge", metavar="FROM", default="", help=scores)


COMMANDS = {
    "new": Command(_add_new_options, _new, "segjudge new my-challenge --protocol davis2017 --truth DAVIS --subset val"),
    "host": Command(_add_host_options, _host, "segjudge new my-challenge --protocol davis2017 --truth DAVIS"),
    "benchmarks": Command(_add_list_options, _list_benchmarks, "segjudge benchmarks davis2017"),
}
