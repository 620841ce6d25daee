"""The archive of a finished challenge: its bundle, boards, submissions and files, taken home from a platform.

`event` reads and writes the format, which `docs/leaving.md` describes. `evalai`, `codabench` and `codalab` fill an
archive, by the calls of `collecting`. `frozen_boards` shows its leaderboards, and `ledger_history` continues them on a
board without a server. `rescore` scores its submissions again (`event_source`), or those of a folder (`published`);
`rescored` holds the numbers.
"""

__all__ = [
    "codabench", "codalab", "collecting", "evalai", "event", "event_source", "frozen_boards", "ledger_history",
    "published", "rescore", "rescored",
]  # fmt: skip
