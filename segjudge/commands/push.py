"""`segjudge push`: the bundle onto EvalAI."""

from __future__ import annotations

import argparse
import os
import tempfile
from typing import TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.agreement import describe_scoring
from segjudge.platforms.evalai.bundle.build import VARIANTS, build, takes_kernel
from segjudge.platforms.evalai.bundle.bundle_source import BundleSource
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import mappings_in
from segjudge.platforms.evalai.bundle.server_state import load_state, save_state, state_after_push

from .bundle import fetch_kernel, kernel_options
from .check import passes, print_problems
from .shared import DONE, OURS, bundle_options, named_bundle, say, say_version

if TYPE_CHECKING:
    from segjudge.platforms.evalai.bundle.push import ChallengePush, PushedChallenge


def push(args: argparse.Namespace) -> int:
    """Check the bundle, have EvalAI validate it, then create or update the challenge."""
    from segjudge.platforms.evalai.bundle.check import check
    from segjudge.platforms.evalai.bundle.push import (
        ChallengePush,
        RejectedError,
        find_repository,
        locate_sentences,
        without_sponsors,
    )
    from segjudge.platforms.evalai.settings import read_settings

    source = named_bundle(args)
    root = source.root
    account = read_settings()
    name = find_repository(args.repository or "", root)
    process = ChallengePush(account, name)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        bundle = source.archive or _built(source, os.path.join(folder, "challenge_config.zip"), args)
        existing = process.existing()
        state = process.state(load_state(root, account.host, name), existing) if existing else None
        if not passes(check(bundle, state)):
            return OURS
        if existing and without_sponsors(bundle, os.path.join(folder, "update.zip")):
            bundle = os.path.join(folder, "update.zip")
            say("warning: sponsors are left out, since EvalAI fails on an update that has them")
        try:
            say(f"{account.host}: {process.validate(bundle)}")
            if args.dry_run:
                effect = f"update challenge {existing['id']}" if existing else "become a new challenge"
                print(f"{name} would {effect}.")
                return DONE
            pushed = process.create_or_update(bundle)
        except RejectedError as error:
            print_problems(list(locate_sentences(bundle, error.sentences)))
            return OURS
        with Bundle(bundle) as opened:
            config, scoring = opened.config, describe_scoring(opened)
    _note(root, name, config, scoring, process, pushed)
    _print_challenge(pushed, [str(phase.get("codename")) for phase in mappings_in(config, "challenge_phases")])
    return DONE


def _note(
    root: str,
    repository: str,
    config: dict[str, Any],
    scoring: dict[str, str],
    process: ChallengePush,
    pushed: PushedChallenge,
) -> None:
    """Keep what was pushed, so that the next check knows what an update may not change."""
    from segjudge.platforms.evalai.settings import server_address

    try:
        source = process.source(pushed.number)
        state = state_after_push(config, source=source, approved=pushed.approved, scoring=scoring)
        save_state(root, server_address(), repository, state)
    except OSError as error:
        say(f"warning: what was pushed could not be noted ({error})")


def _built(source: BundleSource, out: str, args: argparse.Namespace) -> str:
    """Build the bundle, with the kernel where it can be had."""
    say_version(source)
    if args.kernel or (not args.no_kernel and takes_kernel(source)):
        try:
            fetch_kernel(source)
        except HostError as error:
            say(f"warning: {error}")
    variant, image = args.variant or "", args.environment_image or ""
    return build(source.root, out, variant, image, lenient=True, kernel=not args.no_kernel).path


def _print_challenge(pushed: PushedChallenge, codenames: list[str]) -> None:
    print(pushed.message)
    print(f"challenge  {pushed.number}")
    print(f"queue      {pushed.queue or '(none)'}")
    listed = [codename for codename in codenames if codename in pushed.phases]
    for codename in (*listed, *(other for other in pushed.phases if other not in listed)):
        print(f"phase      {pushed.phases[codename]}  {codename}")


def push_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `push`."""
    bundle_options(sub)
    sub.add_argument("--repository", metavar="OWNER/NAME", help="default: GITHUB_REPOSITORY, then the git remote")
    sub.add_argument("--variant", choices=VARIANTS, help="how the challenge runs (default: as the YAML says)")
    sub.add_argument("--environment-image", help="code-upload: the image of your environment, in a registry")
    kernel_options(sub, "take the compiled kernel along; this is the default")
    sub.add_argument("--dry-run", action="store_true", help="have it validated, and stop there")
