"""`segjudge push`: the bundle onto EvalAI."""

from __future__ import annotations

import argparse
import os
import tempfile

from segjudge.bundle.build import build, read_config
from segjudge.bundle.check import check
from segjudge.bundle.problems import ERROR, items
from segjudge.bundle.push import Push, Pushed, repository, without_sponsors
from segjudge.bundle.server_sentences import RejectedError, mapped
from segjudge.bundle.server_state import remember, remembered, state_of
from segjudge.bundle.variants import VARIANTS
from segjudge.evalai.settings import read_settings

from .bundle import report_findings
from .shared import DONE, OURS, bundle_root, say


def push(args: argparse.Namespace) -> int:
    """Check the bundle, have EvalAI validate it, then create or update the challenge."""
    root = bundle_root()
    account = read_settings()
    name = repository(args.repository or "", root)
    process = Push(account, name)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "challenge_config.zip")
        built = build(root, out, args.variant or "", args.environment_image or "", lenient=True)
        held = process.held()
        findings = check(built.path, process.state(remembered(root, account.host, name), held) if held else None)
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
    config = read_config(root)
    state = state_of(config, source=process.source(pushed.challenge), approved=pushed.approved)
    try:
        remember(root, account.host, name, state)
    except OSError as error:
        say(f"warning: what was pushed could not be noted ({error})")
    _show(pushed, [str(phase.get("codename")) for phase in items(config, "challenge_phases")])
    return DONE


def _show(pushed: Pushed, codenames: list[str]) -> None:
    print(pushed.said)
    print(f"challenge  {pushed.challenge}")
    print(f"queue      {pushed.queue or '(none)'}")
    listed = [codename for codename in codenames if codename in pushed.phases]
    for codename in (*listed, *(other for other in pushed.phases if other not in listed)):
        print(f"phase      {pushed.phases[codename]}  {codename}")


def push_options(sub: argparse.ArgumentParser) -> None:
    """What `push` takes."""
    sub.add_argument("--repository", metavar="OWNER/NAME", help="default: GITHUB_REPOSITORY, then the git remote")
    sub.add_argument("--variant", choices=VARIANTS, help="how the challenge runs (default: as the YAML says)")
    sub.add_argument("--environment-image", help="code-upload: the image of your environment, in a registry")
    sub.add_argument("--dry-run", action="store_true", help="have it validated, and stop there")
