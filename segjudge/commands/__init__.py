"""The commands, thin; with `cli.py` the only place that prints.

`COMMANDS` says which module has a command, and `PLATFORMS` the same of platforms beside EvalAI.  A module's own
`COMMANDS` has for each of its commands what adds options to a parser and what runs it, which turns the arguments into
typed values, and returns the exit code.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import NamedTuple

__all__ = ["COMMANDS", "EVALAI", "GROUPS", "PLATFORMS", "shared", "worker"]

#: The modules that write numpy's docstrings, in each of its layouts.
_DOCSTRINGS = {f"numpy.{core}._add_newdocs{kind}" for core in ("core", "_core") for kind in ("", "_scalars")}


class _DocstringFinder:
    """Has numpy's docstrings written when a program asks for them: they are an eighth of its start."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in _DOCSTRINGS else None
        if spec and spec.loader:
            from importlib.util import LazyLoader

            spec.loader = LazyLoader(spec.loader)
        return spec


# Commands are programs of their own: numpy, which some of them load, starts in half the time with one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.meta_path.insert(0, _DocstringFinder)


class _Row(NamedTuple):
    """Where a command is, and what it does."""

    #: The module of `segjudge.commands` whose `COMMANDS` has it.
    module: str
    about: str


#: The commands, which the help shows by `GROUPS`.
COMMANDS = {
    "new": _Row("new", "Write a small repository with a challenge: your truth, a protocol, samples, texts."),
    "host": _Row("new", "Write a challenge of a benchmark as `new` does: `host NAME --truth PATH --out FOLDER`."),
    "benchmarks": _Row("new", "List the benchmarks, by family: what each one scores, in a line."),
    "run": _Row(
        "evalai", "Build the bundle, check it, score every sample submission as EvalAI does, show the leaderboards."
    ),
    "score": _Row("score", "Score a results folder, zip or JSON, exactly as the server would."),
    "merge": _Row("score", "Merge the parts that `score --part` wrote into the scores of one run."),
    "compare": _Row(
        "methods", "Compare methods on the same truth: differences, intervals, and which can be told apart."
    ),
    "rank": _Row("methods", "Rank methods by their scores, and tell how far the ranking holds."),
    "pack": _Row("data", "Make an annotation file from a dataset in its published layout."),
    "show": _Row("data", "Draw truth, and detections beside it, over images: PNGs and one page."),
    "report": _Row(
        "report", "Write one page, for a browser without network, that shows what results scored and where they fail."
    ),
    "convert": _Row("data", "Convert Places-style PNGs to COCO's JSON, as the official converter does."),
    "compress": _Row("data", "Make results smaller for an upload, and prove that no pixel changed."),
    "demo": _Row("data", "Make the synthetic annotation files and sample submissions."),
    "build": _Row("evalai", "Build the zip that EvalAI takes, for one of the four ways to run a challenge."),
    "check": _Row("evalai", "Check the bundle by EvalAI's rules (exit code 3), and by what goes wrong later (4)."),
    "push": _Row("evalai", "Check the bundle, have EvalAI validate it, then create or update the challenge."),
    "board": _Row(
        "board", "Write a challenge's leaderboards as a static page, CSV and badges, to show them elsewhere."
    ),
    "worker": _Row(
        "worker",
        "Score the submissions of a remote challenge until asked to stop; its settings are environment variables.",
    ),
    "rehearse": _Row("rehearse", "Serve EvalAI's API and web pages, with this bundle in it, and play its worker."),
    "interactive": _Row("interactive", "Segment interactively: serve sessions, run a method, plot its curve."),
    "arena": _Row(
        "arena",
        "Run an agent against an environment, or with --static a command that writes a submission, without containers.",
    ),
    "completion": _Row("completion", "Print what completes commands, options and their values in bash, zsh or fish."),
    "schema": _Row("evalai", "Write the JSON Schema of challenge_config.yaml, for editors."),
}
#: What the help shows first and together: what is done every day, by whom the rest is done.
GROUPS = {
    "every day": ("score", "report", "compare", "rank", "show", "benchmarks"),
    "to prepare results and truths": ("compress", "pack", "convert", "merge", "demo"),
    "to host a challenge": ("new", "host", "run", "check", "build", "push", "board", "worker", "rehearse", "schema"),
    "for methods that interact": ("interactive", "arena"),
    "for the shell": ("completion",),
}
#: The commands of platforms beside EvalAI, by `--platform`.
PLATFORMS = {
    "codabench": {
        "run": _Row(
            "codabench",
            "Build competitions, check them, score every sample as Codabench's compute worker does, show the "
            "leaderboards.",
        ),
        "build": _Row(
            "codabench",
            "Build competitions for Codabench: one for each chain of phases that follow each other on one leaderboard.",
        ),
        "check": _Row(
            "codabench", "Check competitions by the rules of Codabench's unpacker, and by what goes wrong later."
        ),
        "push": _Row(
            "codabench",
            "Check competitions, upload those that Codabench does not have yet, wait until they are unpacked.",
        ),
    },
    "grand-challenge": {
        "build": _Row(
            "grand_challenge",
            "Build evaluation methods for grand-challenge.org: for each phase an image's context, its truth, its "
            "settings.",
        ),
    },
}
EVALAI = "evalai"
