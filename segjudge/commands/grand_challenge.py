"""`segjudge build --platform grand-challenge`."""

from __future__ import annotations

import argparse
import os

from segjudge.system.files import OutputFolder

from .evalai import KERNEL, add_kernel_options, fetch_kernel
from .parser import CommandParser
from .shared import DONE, OUTPUT, RARELY, Command, add_bundle_options, choose_bundle, say, say_version


def _build(args: argparse.Namespace) -> int:
    from segjudge.platforms.grand_challenge.build import build

    source = choose_bundle(args.bundle, args.path)
    say_version(source)
    if args.kernel:
        fetch_kernel(source)
    for folder, method in build(source, args.out or "", kernel=not args.no_kernel).items():
        for note in method.notes:
            say(note)
        about = ", ".join(filter(None, [os.path.relpath(folder), method.about_kernel]))
        print(f"Built {about}: docker build it, upload the image and ground_truth.tar.gz;")
        path = f": the score's JSON path is {method.score_path}"
        print(f"    enter phase-settings.json in the phase's form{path}")
    return DONE


def _add_build_options(sub: CommandParser) -> None:
    sub.arrange_groups(OUTPUT, KERNEL, RARELY)
    add_bundle_options(sub)
    add_kernel_options(sub)
    about = "the folder to write (default: dist/grand-challenge)"
    sub.options_of(OUTPUT)("--out", metavar="FOLDER", type=OutputFolder, help=about)


COMMANDS = {"build": Command(_add_build_options, _build, "segjudge build my-challenge --platform grand-challenge")}
