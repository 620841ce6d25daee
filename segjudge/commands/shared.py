"""What all commands share: exit codes, where the bundle is, how they talk."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable
from typing import Any, Self

from segjudge.bundle.fields import CONFIG
from segjudge.errors import UsageError

#: 0 done, 1 something in the participant's files, 2 usage, 3 a broken truth or bundle, or a fault of ours.
DONE, THEIRS, USAGE, OURS = 0, 1, 2, 3

#: Where `run.sh` is; without it the folder of the bundle is looked for.
BUNDLE = "SEGJUDGE_BUNDLE"


def say(text: str) -> None:
    """Talk goes to stderr, results to stdout."""
    print(text, file=sys.stderr, flush=True)


def program() -> str:
    """What somebody types to run us."""
    return "./run.sh" if os.environ.get(BUNDLE) else "segjudge"


def bundle_root() -> str:
    """The folder with `challenge_config.yaml`."""
    above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for folder in (os.environ.get(BUNDLE, ""), os.getcwd(), above):
        if folder and os.path.exists(os.path.join(folder, CONFIG)):
            return folder
    raise UsageError(f"no {CONFIG} here; run it in the bundle's folder")


def listening(host: str, port: int) -> socket.socket:
    """A port, taken at once: a second server should say so before it does anything."""
    # The protocol is named, since asyncio sets TCP_NODELAY only then: 40 ms of each answer.
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(1024)
    except OSError as error:
        taken.close()
        told = f"port {port} of {host} cannot be taken ({error.strerror}); name another with --port"
        raise UsageError(told) from None
    return taken


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """What an option takes that is a number within bounds."""

    def number(text: str) -> int:
        if not text.strip().lstrip("+-").isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return number


def seconds(text: str) -> float:
    """What an option takes that is a time."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 10**7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds")
    return number


class Bar:
    """A progress bar where there is a terminal, nothing elsewhere."""

    def __init__(self, unit: str = "sequence") -> None:
        self._bar: Any = None
        self._unit = unit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Note how far the scoring is."""
        if self._bar is None and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit=self._unit, leave=False)
        if self._bar is not None:
            self._bar.total, self._bar.n = total, done
            self._bar.set_description(name)
