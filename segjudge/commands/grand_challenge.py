"""`segjudge build --platform grand-challenge`."""

import argparse
import os

from segjudge.platforms.grand_challenge.build import build as build_methods
from segjudge.system.files import OutputFolder

from .shared import DONE, bundle_options, named_bundle, say, say_version


def build(args: argparse.Namespace) -> int:
    """Build evaluation methods for grand-challenge.org: for each phase an image's context, its truth, its settings."""
    source = named_bundle(args)
    say_version(source)
    for folder, notes in build_methods(source, args.out or "").items():
        for note in notes:
            say(note)
        print(f"{os.path.relpath(folder)}: docker build it, upload the image and ground_truth.tar.gz;")
        print("    phase-settings.json holds the JSON paths to enter in the phase's form")
    return DONE


def build_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `build`."""
    bundle_options(sub)
    sub.add_argument(
        "--out", metavar="FOLDER", type=OutputFolder, help="where to write (default: dist/grand-challenge)"
    )
