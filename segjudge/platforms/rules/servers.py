"""The servers whose code the rules repeat: the commit, and the files from which each module's rows were taken.

docs/decisions.md says how to compare the rows with newer code.
"""

from __future__ import annotations

from typing import NamedTuple


class ServerCode(NamedTuple):
    """A server's code at the commit from which all rows about it were taken."""

    repository: str
    commit: str
    #: The module of the rows, below `segjudge.platforms` → the server's files.
    files: dict[str, tuple[str, ...]]


_CONFIG, _VIEWS = "apps/challenges/challenge_config_utils.py", "apps/challenges/views.py"
EVALAI = ServerCode(
    "Cloud-CV/EvalAI",
    "0f04039",
    {
        "evalai.bundle.validation": (_CONFIG,),
        "evalai.bundle.rules": (_CONFIG, _VIEWS),
        "evalai.bundle.check": (_VIEWS,),
        "evalai.bundle.shared_rules": (_CONFIG,),
        "evalai.bundle.fields": ("apps/challenges/serializers.py", "apps/challenges/models.py"),
        "evalai.bundle.script_rules": ("scripts/workers/submission_worker.py", "requirements/worker_py3_9.txt"),
    },
)
_UNPACKER = "src/apps/competitions/unpackers"
CODABENCH = ServerCode(
    "codalab/codabench",
    "c7dbc75",
    {
        "codabench.check": (_UNPACKER, "src/apps/competitions/tasks.py"),
        "codabench.shared_rules": (_UNPACKER,),
        "codabench.serializer_fields": ("src/apps/api/serializers", "src/apps/competitions/models.py"),
        "codabench.pitfalls": ("compute_worker/compute_worker.py", "src/apps/leaderboards/models.py"),
    },
)
