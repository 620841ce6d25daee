"""`linejudge push`: the bundle onto EvalAI."""

from __future__ import annotations

import argparse
import os
import tempfile

from evaluation_script.errors import HostError
from linejudge.bundle.build import build, read_config
from linejudge.bundle.check import check
from linejudge.bundle.finding import ERROR
from linejudge.bundle.push import Push, Pushed, RejectedError, mapped, repository, without_sponsors
from linejudge.bundle.state import remember, remembered, state_of
from linejudge.bundle.variants import VARIANTS
from linejudge.evalai.settings import settings

from .bundle import report_findings
from .shared import DONE, OURS, bundle_root, say


def push(args: argparse.Namespace) -> int:
    """Check the bundle, have EvalAI validate it, then create or update the challenge."""
    root = bundle_root()
    account = settings()
    name = repository(args.repository or "", root)
    process = Push(account, name)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "challenge_config.zip")
        built = build(root, out, args.variant or "", args.environment_image or "", lenient=True)
        held = process.held()
        findings = check(built.path, process.state(remembered(root)) if held else None)
        report_findings(findings)
        if any(finding.severity == ERROR for finding in findings):
            return OURS
        bundle = built.path
        if held and without_sponsors(bundle, os.path.join(folder, "update.zip")):
            bundle = os.path.join(folder, "update.zip")
            say("warning: sponsors are left out, since EvalAI fails on an update that has them")
        try:
            say(f"{account.host}: {process.validate(bundle)}")
            if args.dry_run:
                print(f"{name} would {'update challenge ' + str(held['id']) if held else 'become a new challenge'}.")
                return DONE
            pushed = process.looked_up(process.create_or_update(bundle))
        except RejectedError as error:
            report_findings(list(mapped(bundle, error.sentences)))
            return OURS
    _remember(root, process.source(pushed.challenge), pushed)
    _show(pushed)
    return DONE


def _remember(root: str, source: str, pushed: Pushed) -> None:
    try:
        remember(root, state_of(read_config(root), source=source, approved=pushed.approved))
    except (OSError, HostError) as error:
        say(f"warning: what was pushed could not be noted ({error})")


def _show(pushed: Pushed) -> None:
    print(pushed.said)
    print(f"challenge  {pushed.challenge}")
    print(f"queue      {pushed.queue or '(none)'}")
    for codename, number in pushed.phases.items():
        print(f"phase      {number}  {codename}")


def push_options(sub: argparse.ArgumentParser) -> None:
    """What `push` takes."""
    sub.add_argument("--repository", metavar="OWNER/NAME", help="default: GITHUB_REPOSITORY, then the git remote")
    sub.add_argument("--variant", choices=VARIANTS, help="how the challenge runs (default: as the YAML says)")
    sub.add_argument("--environment-image", help="code-upload: the image of your environment, in a registry")
    sub.add_argument("--dry-run", action="store_true", help="have it validated, and stop there")
