"""`segjudge build`, `check` and `push` with `--platform hugging-face`."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from typing import TYPE_CHECKING

from segjudge.system.files import OutputFolder, temporary_folder

from .evalai import CHECKS, check_source, has_errors, passes
from .parser import CommandParser, program
from .shared import (
    DONE,
    OURS,
    OUTPUT,
    RARELY,
    TAKEN,
    Command,
    InputPath,
    add_bundle_options,
    choose_bundle,
    say_version,
)

if TYPE_CHECKING:
    from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
    from segjudge.platforms.hugging_face.push import HubPush
    from segjudge.platforms.rules.problems import BundleProblem

#: The group of options about the repositories on the Hub.
_HUB = "repositories"
#: What the parts of a board cost, as read in August 2026.
_COSTS = """\
Costs: the Space runs on CPU Basic, which costs nothing, but creating it needs PRO, a Team or an Enterprise account.
Private data sets: 100 GB are free, 1 TB with PRO. The evaluator runs on a machine of yours."""
_TOKENS = """\
Make two fine-grained tokens on {hub}/settings/tokens, for these repositories only:
  the Space's:     write {name}-submissions
  the evaluator's: read {name}-submissions; write {name}-results and {name}-private
Then:
  SUBMISSIONS_TOKEN=hf_... {program} push {path} --platform hugging-face --owner {owner}
  HF_TOKEN=hf_... {program} worker --platform hugging-face {name}"""


def _name_board(args: argparse.Namespace, path: str) -> str:
    """Return OWNER/NAME of the board of a challenge."""
    from segjudge.platforms.hugging_face.settings import name_repository

    stem = os.path.basename(os.path.abspath(path)).removesuffix(".zip")
    return name_repository(args.owner, args.name or re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-"))


def _build(args: argparse.Namespace) -> int:
    from segjudge.platforms.hugging_face.build import build, list_folders

    source = choose_bundle(args.bundle, args.path)
    say_version(source)
    repository = _name_board(args, source.root)
    for name, folder in list_folders(build(source, repository, args.out or ""), repository).items():
        print(f"Built {os.path.relpath(folder)} for {name}")
    return DONE


def _check(args: argparse.Namespace) -> int:
    source = choose_bundle(args.bundle, args.path)
    with temporary_folder("segjudge-") as folder:
        problems = _build_checked(source, _name_board(args, source.root), folder)
    if not passes(problems):
        return OURS if any(problem.leaks for problem in problems) else TAKEN
    print("The board would work on the Hub, as far as its files show.")
    return TAKEN if problems and args.strict else DONE


def _build_checked(source: BundleSource, repository: str, folder: str) -> list[BundleProblem]:
    """Return the problems of a challenge by EvalAI's rules; if none is an error, build its board in a folder."""
    from segjudge.platforms.hugging_face.build import build

    problems = check_source(source)
    if not has_errors(problems):
        build(source, repository, folder)
    return problems


def _push(args: argparse.Namespace) -> int:
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.utils import disable_progress_bars, logging

    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.platforms.hugging_face.build import list_folders
    from segjudge.platforms.hugging_face.jobs import TOKEN, start_jobs
    from segjudge.platforms.hugging_face.push import SECRET, HubPush

    if not get_token():
        raise HostError("HF_TOKEN is not set: a token of the Hub that may create repositories, or `hf auth login`")
    if args.evaluator and not os.environ.get(TOKEN):
        raise HostError(
            f"{TOKEN} is not set: the evaluator's token; a push without --evaluator says which rights it needs"
        )
    logging.get_logger("huggingface_hub").setLevel("ERROR")  # it warns where nothing has changed
    if not sys.stderr.isatty():
        disable_progress_bars()
    push = HubPush(HfApi())
    with temporary_folder("segjudge-") as folder:
        if args.static:
            return _push_static(args, push, folder)
        source = choose_bundle(args.bundle, args.path)
        repository = _name_board(args, source.root)
        problems = _build_checked(source, repository, folder)
        if not passes(problems):
            return OURS
        token = os.environ.get(SECRET, "")
        history = _read_history(args.history, source) if args.history else None
        for line in push.push(repository, folder, token):
            print(line)
        for line in push.add_history(repository, *history) if history else ():
            print(line)
        if args.evaluator:
            lock = os.path.join(list_folders(folder, repository)[repository], "requirements.txt")
            with open(lock, encoding="utf-8") as file:
                requirement = file.readline().strip()
            for line in start_jobs(push.api, repository, requirement, os.environ[TOKEN]):
                print(line)
    print(f"{push.api.endpoint}/spaces/{repository}")
    if not token and not push.has_secret(repository):
        print(_COSTS)
        path = shlex.quote(args.path or args.bundle or os.curdir)
        print(_TOKENS.format(hub=push.api.endpoint, name=repository, program=program(), path=path, owner=args.owner))
    return DONE


def _read_history(archive: str, source: BundleSource) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the public and the private rows with which the board of a challenge begins."""
    import datetime

    from segjudge.archive.event import open_event
    from segjudge.archive.ledger_history import make_history
    from segjudge.evaluation_script.files.problems import HostError
    from segjudge.ledger.rows import ENTRIES
    from segjudge.platforms.hugging_face.settings import find_rules

    with open_event(archive) as event:
        public, private = make_history(event, find_rules(source), datetime.datetime.now(datetime.timezone.utc))
    if not any(path.startswith(f"{ENTRIES}/") for path in public):
        raise HostError(f"{archive}: no public leaderboard has a phase and split of this challenge")
    return public, private


def _push_static(args: argparse.Namespace, push: HubPush, folder: str) -> int:
    """Publish the board of an ended event, of an archive or of a challenge on the Hub, as a Static Space."""
    from segjudge.archive.event import is_event
    from segjudge.platforms.hugging_face.static import write_from_archive, write_from_results

    path = args.path or args.bundle
    if path and is_event(path):
        repository = _name_board(args, path)
        write_from_archive(path, folder)
    else:
        source = choose_bundle(args.bundle, args.path)
        repository = _name_board(args, source.root)
        write_from_results(push.api, repository, str(source.config().get("title") or ""), folder)
    for line in push.push_static(repository, folder):
        print(line)
    print(f"{push.api.endpoint}/spaces/{repository} costs nothing and never sleeps.")
    return DONE


def _add_options(sub: CommandParser) -> None:
    add_bundle_options(sub)
    add = sub.options_of(_HUB)
    add("--owner", metavar="OWNER", required=True, help="the user or organisation on the Hub")
    add("--name", metavar="NAME", default="", help="the name of the Space (default: the challenge's folder)")


def _add_build_options(sub: CommandParser) -> None:
    sub.arrange_groups(_HUB, OUTPUT, RARELY)
    _add_options(sub)
    about = "the folder to write (default: dist/hugging-face)"
    sub.options_of(OUTPUT)("--out", metavar="FOLDER", type=OutputFolder, help=about)


def _add_check_options(sub: CommandParser) -> None:
    sub.arrange_groups(_HUB, CHECKS, RARELY)
    _add_options(sub)
    sub.options_of(CHECKS)("--strict", action="store_true", help="fail on warnings, for CI")


def _add_push_options(sub: CommandParser) -> None:
    sub.arrange_groups(_HUB, RARELY)
    _add_options(sub)
    about = "publish a Static Space with the leaderboards of an archive, or of the board on the Hub, instead of a board"
    add = sub.options_of(_HUB, exclusive=True)
    add("--static", action="store_true", help=about)
    about = "let each submission start a Job of the Hub that scores it (needs EVALUATOR_TOKEN)"
    sub.options_of(_HUB)("--evaluator", choices=("job",), help=about)
    add("--history", metavar="EVENT", type=InputPath, help="begin with the leaderboards of an archive of `leave`")


_EXAMPLE = "segjudge {} my-challenge --platform hugging-face --owner my-lab"
COMMANDS = {
    "build": Command(_add_build_options, _build, _EXAMPLE.format("build")),
    "check": Command(_add_check_options, _check, _EXAMPLE.format("check")),
    "push": Command(_add_push_options, _push, _EXAMPLE.format("push")),
}
