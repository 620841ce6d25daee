"""The toolkit of hosts and participants: score, pack, build, check and run a challenge.

Importing it only defines names, and lets Python find plug-in families under Segjudge's names.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # loading `typing` takes as long as Python takes to start
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from .analysis.comparison import Comparison, compare
    from .analysis.standings import Ranking, rank
    from .evaluation_script.files.problems import HostError, SubmissionError
    from .scoring import score
    from .scoring.arrays import FrameAccumulator, score_arrays
    from .scoring.scores import Scores, load
    from .system.errors import UsageError

__all__ = [
    "Comparison", "FrameAccumulator", "HostError", "Ranking", "Scores", "SubmissionError", "UsageError", "compare",
    "load", "rank", "score", "score_arrays",
]  # fmt: skip

#: The module of each public name, imported on first use, since EvalAI's worker has an older Python.
_MODULES = {
    "Comparison": "segjudge.analysis.comparison",
    "FrameAccumulator": "segjudge.scoring.arrays",
    "HostError": "segjudge.evaluation_script.files.problems",
    "Ranking": "segjudge.analysis.standings",
    "Scores": "segjudge.scoring.scores",
    "SubmissionError": "segjudge.evaluation_script.files.problems",
    "UsageError": "segjudge.system.errors",
    "compare": "segjudge.analysis.comparison",
    "load": "segjudge.scoring.scores",
    "rank": "segjudge.analysis.standings",
    "score": "segjudge.scoring",
    "score_arrays": "segjudge.scoring.arrays",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__


class _PluginFinder:
    """A finder of plug-in families' modules, used where Segjudge has no module of the name."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if name.rpartition(".")[0] not in ("segjudge.families", "segjudge.evaluation_script.families"):
            return None
        from .system.plugins import find_plugin_spec

        return find_plugin_spec(name)


sys.meta_path.append(_PluginFinder)  # last
