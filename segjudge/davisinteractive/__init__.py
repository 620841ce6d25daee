"""The DAVIS interactive framework's names, for programs written for it.

Run such a program with `python -m segjudge.davisinteractive program.py`, replace `davisinteractive` with
`segjudge.davisinteractive` in it, or call `install_alias` first. `segjudge.interactive` defines everything; one table
here creates the modules that programs import.
"""

import importlib
import sys
from types import ModuleType

from . import logging

__all__ = ["install_alias", "logging"]

#: The release of the framework that this package replaces.
__version__ = "1.0.4"

_FRAMEWORK = "davisinteractive"
#: Module of the framework, after its package → the module that defines its names, and the names.
_MODULES = {
    "common": ("pathlib", "Path"),
    "connector": ("", ""),
    "connector.fabric": ("segjudge.interactive.remote_session", "ServerConnectionFabric"),
    "connector.local": ("segjudge.interactive.session", "LocalConnector"),
    "connector.remote": ("segjudge.interactive.remote_session", "RemoteConnector"),
    "dataset": ("segjudge.interactive.dataset", "Davis"),
    "dataset.davis": ("segjudge.interactive.dataset", "Davis"),
    "evaluation": ("segjudge.interactive.evaluation", "EvaluationService"),
    "evaluation.service": ("segjudge.interactive.evaluation", "EvaluationService ROBOT_DEFAULT_PARAMETERS"),
    "metrics": ("segjudge.interactive.masks", "batched_f_measure batched_jaccard"),
    "metrics.f_measure": ("segjudge.interactive.masks", "batched_f_measure f_measure"),
    "metrics.jaccard": ("segjudge.interactive.masks", "batched_f_measure batched_jaccard f_measure"),
    "robot": ("segjudge.interactive.robot", "InteractiveScribblesRobot"),
    "robot.interactive_robot": ("segjudge.interactive.robot", "InteractiveScribblesRobot"),
    "session": ("segjudge.interactive.davis_session", "DavisInteractiveSession"),
    "session.session": ("segjudge.interactive.davis_session", "DavisInteractiveSession"),
    "storage": ("segjudge.interactive.reports", "AbstractStorage LocalStorage"),
    "storage.abstract": ("segjudge.interactive.reports", "AbstractStorage"),
    "storage.local": ("segjudge.interactive.reports", "LocalStorage"),
    "third_party": ("", ""),
    "third_party.mask_api": (
        "segjudge.interactive.masks", "decode_batch_masks decode_mask encode_batch_masks encode_mask",
    ),
    "utils": ("", ""),
    "utils.mask": ("segjudge.interactive.masks", "combine_masks"),
    "utils.operations": ("segjudge.interactive.scribbles", "bezier_curve bresenham"),
    "utils.scribbles": (
        "segjudge.interactive.scribbles",
        "annotated_frames annotated_frames_object fuse_scribbles is_empty scribbles2mask scribbles2points",
    ),
    "utils.visualization": ("segjudge.interactive.scribbles", "draw_scribble overlay_mask plot_scribble"),
}  # fmt: skip


def _make_module(path: str, source: str, names: list[str]) -> ModuleType:
    """Make a module whose names are looked up when they are first used."""
    module = ModuleType(f"{__name__}.{path}", f"Names that {source or 'modules below'} defines.")

    def look_up(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(source), name)

    vars(module).update(__all__=names, __path__=[], __getattr__=look_up)
    return module


for _path, (_source, _names) in _MODULES.items():
    _package, _, _name = f"{__name__}.{_path}".rpartition(".")
    sys.modules[f"{_package}.{_name}"] = _make_module(_path, _source, _names.split())
    setattr(sys.modules[_package], _name, sys.modules[f"{_package}.{_name}"])


def install_alias() -> None:
    """Make `import davisinteractive` import this package in this process.

    Raises ImportError if it has already been imported.
    """
    imported = sys.modules.get(_FRAMEWORK)
    if imported is not None and imported is not sys.modules[__name__]:
        raise ImportError(f"{_FRAMEWORK} is already imported; call install_alias() first")
    for path in ("", ".logging", *(f".{path}" for path in _MODULES)):
        sys.modules[_FRAMEWORK + path] = sys.modules[__name__ + path]
