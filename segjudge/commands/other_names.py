"""The names of commands and options in other tools, and Segjudge's for them."""

from __future__ import annotations

_SCORE = ("score results", "score RESULTS --truth PATH --protocol NAME")
_SCORE_PHASE = ("score a submission as the server would", "score RESULTS --phase CODENAME")
_REPORT = ("see where results fail", "report RESULTS --truth PATH --protocol NAME")
_LIST = ("list the benchmarks", "benchmarks")
_DESCRIBE = ("describe a benchmark", "benchmarks NAME")
_NEW = ("write a challenge", "new FOLDER --protocol NAME --truth PATH")
_CHECK = ("check a challenge", "check BUNDLE")
_RUN = ("score a challenge's samples, with leaderboards", "run BUNDLE")
_PUSH = ("create or update a challenge on EvalAI", "push BUNDLE")
_BOARD = ("publish a challenge's leaderboards", "board CHALLENGE --out FOLDER")
_REHEARSE = ("run EvalAI on this machine", "rehearse BUNDLE")
_RESCORE = ("score all submissions of an event again", "rescore SUBMISSIONS --truth PATH --protocol NAME --out FOLDER")
_COMPARE = ("compare methods", "compare A.zip B.zip --truth PATH --protocol NAME")
_RANK = ("rank methods", "rank A.json B.json")
_PACK = ("pack a published dataset", "pack --layout LAYOUT --root DATA --out TRUTH.zip")
_COMPRESS = ("make results smaller", "compress RESULTS --out SMALL.zip")
_SUBMIT = ("submit from a terminal", "evalai challenge CHALLENGE phase PHASE submit --file FILE")
#: The beginnings of other programs' commands: EvalAI's own client submits.
_OTHER_PROGRAMS = ("evalai ",)

#: Purposes and the commands that serve them, by the name of another tool.
_COMMANDS = {
    **dict.fromkeys(("evaluate", "eval", "evaluation", "assess", "judge", "predict"), (_SCORE, _SCORE_PHASE)),
    **dict.fromkeys(("validate", "lint"), (_SCORE_PHASE, _CHECK)),
    **dict.fromkeys(("list", "ls", "tasks", "protocols", "datasets", "metrics"), (_LIST, _DESCRIBE)),
    **dict.fromkeys(("info", "describe", "protocol", "benchmark"), (_DESCRIBE,)),
    **dict.fromkeys(("leaderboard", "leaderboards", "standings"), (_RUN, _BOARD, _RANK)),
    **dict.fromkeys(("submit", "submission", "submissions"), (_SCORE_PHASE, _SUBMIT)),
    **dict.fromkeys(("init", "create", "start", "scaffold"), (_NEW,)),
    **dict.fromkeys(("challenge", "challenges", "phase", "phases"), (_RUN, _NEW)),
    **dict.fromkeys(("upload", "deploy", "publish", "update"), (_PUSH, _BOARD)),
    **dict.fromkeys(("serve", "server", "rehearsal"), (_REHEARSE,)),
    **dict.fromkeys(("visualize", "visualise", "view", "draw", "plot", "errors"), (_REPORT,)),
    **dict.fromkeys(("diff", "versus"), (_COMPARE,)),
    "ranking": (_RANK,),
    **dict.fromkeys(("test", "tests", "try"), (_RUN, _CHECK)),
    **dict.fromkeys(("package", "zip"), (_PACK, _COMPRESS)),
    **dict.fromkeys(("re-score", "reevaluate", "re-evaluate", "rejudge"), (_RESCORE,)),
    "version": (("show the version", "--version"),),
    "exit-codes": (("list the exit codes", "help --all"),),
}

#: Our options for those of other tools that differ more than in their spelling; `score` takes the others as they are.
OPTIONS = {"lvos_path": "--truth PATH --protocol NAME"}


def suggest_commands(name: str, program: str) -> list[str]:
    """Return a line for each command that corresponds to a name from another tool."""
    pairs = _COMMANDS.get(name.lower().lstrip("-").replace("_", "-"), ())
    return [
        f"  to {purpose}: {line if line.startswith(_OTHER_PROGRAMS) else f'{program} {line}'}"
        for purpose, line in pairs
    ]
