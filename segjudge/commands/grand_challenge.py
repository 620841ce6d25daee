"""`segjudge build --platform grand-challenge`."""

from __future__ import annotations

import argparse
import os

from segjudge.system.files import OutputFolder

from .shared import DONE, Command, add_bundle_options, choose_bundle, say, say_version


def _build(args: argparse.Namespace) -> int:
    from segjudge.platforms.grand_challenge.build import build

    source = choose_bundle(args.bundle, args.path)
    say_version(source)
    for folder, notes in build(source, args.out or "").items():
        for note in notes:
            say(note)
        print(f"{os.path.relpath(folder)}: docker build it, upload the image and ground_truth.tar.gz;")
        print("    phase-settings.json holds the JSON paths to enter in the phase's form")
    return DONE


def _add_build_options(sub: argparse.ArgumentParser) -> None:
    add_bundle_options(sub)
    about = "where to write (default: dist/grand-challenge)"
    sub.add_argument("--out", metavar="FOLDER", type=OutputFolder, help=about)


COMMANDS = {"build": Command(_add_build_options, _build)}
