"""The commands, thin; besides `cli.py`, only they print.

`COMMANDS` maps commands to modules, and `PLATFORMS` does so for platforms other than EvalAI. A module's own `COMMANDS`
gives each command two functions: one adds options to a parser; the other turns arguments into typed values, runs, and
returns the exit code.
"""

from typing import NamedTuple

__all__ = ["COMMANDS", "EARLIER", "EVALAI", "EXIT_CODES", "GROUPS", "PLATFORMS", "RARE", "UNIX", "parser", "shared"]


class _Row(NamedTuple):
    """The row of a command: its module, description and extra."""

    #: The module of `segjudge.commands` that defines it.
    module: str
    about: str
    #: The extra that it needs with every option; a platform's row may name a larger one.
    extra: str = ""


#: The commands, which the help shows by `GROUPS`; each description fits a line of 80 characters. They are text, because
#: importing all modules would take most of a short command's time.
COMMANDS = {
    "new": _Row("new", "Create a challenge in a folder, or a plug-in with a new family.", "host"),
    "benchmarks": _Row("new", "List the benchmarks; `benchmarks NAME` describes one."),
    "run": _Row("evalai", "Build and check a challenge; score its samples as EvalAI does.", "host"),
    "score": _Row("score", "Score results (folder, zip or JSON) as the server would."),
    "verify": _Row("verify", "Check a record of `score --record`: score again and compare."),
    "merge": _Row("score", "Merge the parts of `score --part` into the scores of one run."),
    "compare": _Row("methods", "Compare methods: differences, confidence intervals, verdicts."),
    "rank": _Row("methods", "Rank methods, and show how stable the ranking is."),
    "pack": _Row("data", "Pack a published dataset into an annotation file."),
    "report": _Row("report", "Write a page that shows where results fail."),
    "compress": _Row("data", "Compress results, and verify that no pixel changed."),
    "demo": _Row("data", "Generate the synthetic annotation files and samples."),
    "build": _Row("evalai", "Build the zip to upload to EvalAI.", "host"),
    "check": _Row("evalai", "Check a challenge by EvalAI's rules, and score its samples.", "host"),
    "push": _Row("evalai", "Check a challenge, then create or update it on EvalAI.", "host"),
    "board": _Row("board", "Export a challenge's leaderboards as a page, CSV and badges.", "host"),
    "leave": _Row("leave", "Take a whole challenge home from EvalAI, Codabench or CodaLab.", "host"),
    "rescore": _Row("rescore", "Score an event's submissions again, beside the old numbers."),
    "worker": _Row("worker", "Score the submissions of a remote challenge until stopped.", "host"),
    "rehearse": _Row("rehearse", "Run EvalAI on this machine: API, pages and worker.", "serve"),
    "interactive": _Row("interactive", "Serve scribble sessions, run a method in one, plot its curve.", "interactive"),
    "arena": _Row("arena", "Run an agent against an environment, without containers."),
    "schema": _Row("evalai", "Write the JSON Schema of challenge_config.yaml, for editors."),
}
#: Earlier names of commands, which still work but are not shown.
EARLIER = {
    "host": _Row("new", "Earlier name of `new FOLDER --protocol NAME --truth PATH`.", "host"),
    "show": _Row("data", "Earlier name of `report --draw FOLDER`."),
    "convert": _Row("data", "Earlier name of `pack --layout places2017 --root PNGS --out FILE.json`."),
}
#: The groups of commands in the help, the daily ones first.
GROUPS = {
    "daily": ("score", "report", "compare", "rank", "benchmarks"),
    "prepare results and truths": ("compress", "pack", "merge"),
    "publish numbers that others check": ("verify", "rescore"),
    "host a challenge": ("new", "run", "check", "build", "push", "board", "leave", "worker", "rehearse"),
    "interactive methods and agents": ("interactive", "arena"),
}
#: The groups that only `help --all` shows.
RARE = {"rarely used": ("demo", "schema")}
#: The commands that start, limit and stop other processes by calls that Windows lacks.
UNIX = frozenset({"run", "build", "check", "push", "worker", "rehearse", "interactive", "arena"})
#: Exit codes of all commands, with their meanings.
EXIT_CODES = {
    0: "success",
    1: "faulty results, or a faulty agent; `verify`: the numbers differ",
    2: "wrong usage; or a file, folder or address that does not exist",
    3: "faulty truth or challenge; missing or rejected token of a host; full disk; a defect in Segjudge",
    4: "`check`: EvalAI would accept the challenge, but it would not work, or has warnings under `--strict`; "
    "`compare --fail-below`: the gain is too small; `worker`: the server rejects the token; `verify`: cannot be known",
    130: "stopped with Ctrl-C",
}
#: The commands of platforms other than EvalAI, by `--platform`.
PLATFORMS = {
    "codabench": {
        "run": _Row(
            "codabench",
            "Build and check competitions, score every sample as Codabench's compute worker does, and print the "
            "leaderboards.",
        ),
        "build": _Row(
            "codabench",
            "Build competitions for Codabench, one for each chain of consecutive phases on one leaderboard.",
        ),
        "check": _Row(
            "codabench",
            "Check competitions by the rules of Codabench's unpacker, and for faults that it does not report.",
        ),
        "push": _Row(
            "codabench", "Check competitions, upload the new ones to Codabench, and wait until it has unpacked them."
        ),
    },
    "grand-challenge": {
        "build": _Row(
            "grand_challenge",
            "Build the evaluation methods for grand-challenge.org: a Docker context, the truth and the settings of "
            "each phase.",
        )
    },
    "github": {
        "check": _Row("github", "Check the two repositories of a board, and their challenge by EvalAI's rules."),
        "worker": _Row(
            "github",
            "Score the open submissions of a board once, and bring its page up to date. The board's workflow runs it.",
        ),
    },
    "hugging-face": {
        "build": _Row("hugging_face", "Build the content of a board's four repositories on the Hugging Face Hub."),
        "check": _Row("hugging_face", "Check a challenge by EvalAI's rules, and build its board for the Hub."),
        "push": _Row(
            "hugging_face",
            "Check a challenge, then create its board on the Hub or bring it up to date; a repetition changes nothing.",
            "hub",
        ),
        "worker": _Row(
            "hub_worker",
            "Score the submissions of a board on the Hugging Face Hub, on any machine, once or until stopped.",
            "hub",
        ),
    },
}
EVALAI = "evalai"
