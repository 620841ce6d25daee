"""Messages with absl's names and levels, by way of the standard library."""

from __future__ import annotations

import logging as standard
from typing import Any

#: absl's levels: the higher, the more is shown.
FATAL, ERROR, WARNING, INFO, DEBUG = -3, -2, -1, 0, 1
WARN = WARNING

_STANDARD = {
    FATAL: standard.CRITICAL, ERROR: standard.ERROR, WARNING: standard.WARNING,
    INFO: standard.INFO, DEBUG: standard.DEBUG,
}  # fmt: skip
_logger = standard.getLogger("segjudge.davisinteractive")
_shown = {"info": 0, "verbosity": WARNING}


def get_absl_logger() -> standard.Logger:
    """Return the logger that all of this goes to."""
    return _logger


def set_verbosity(level: int) -> None:
    """Show messages up to this level; levels beyond DEBUG show all."""
    _shown["verbosity"] = int(level)
    _logger.setLevel(_STANDARD[max(FATAL, min(DEBUG, int(level)))])


def get_verbosity() -> int:
    """Return the level up to which messages are shown."""
    return _shown["verbosity"]


def set_info_level(level: int) -> None:
    """Show `verbose` messages up to this level, and with them what is information."""
    _shown["info"] = int(level)
    if get_verbosity() < INFO:
        set_verbosity(INFO)
    if not standard.getLogger().handlers and not _logger.handlers:
        _logger.addHandler(standard.StreamHandler())


def verbose(msg: Any, level: int = 0, *args: Any) -> None:
    """Show a message, if its level is not beyond the one that `set_info_level` named."""
    if level <= _shown["info"]:
        info(msg, *args)


def log(level: int, msg: Any, *args: Any, **more: Any) -> None:
    """Show a message of a level."""
    _logger.log(_STANDARD[max(FATAL, min(DEBUG, int(level)))], msg, *args, **more)


def vlog(level: int, msg: Any, *args: Any, **more: Any) -> None:
    """Show a message of a level."""
    log(level, msg, *args, **more)


def debug(msg: Any, *args: Any, **more: Any) -> None:
    """Show a detail."""
    _logger.debug(msg, *args, **more)


def info(msg: Any, *args: Any, **more: Any) -> None:
    """Show information."""
    _logger.info(msg, *args, **more)


def warning(msg: Any, *args: Any, **more: Any) -> None:
    """Show a warning."""
    _logger.warning(msg, *args, **more)


warn = warning


def error(msg: Any, *args: Any, **more: Any) -> None:
    """Show an error."""
    _logger.error(msg, *args, **more)


def exception(msg: Any, *args: Any, **more: Any) -> None:
    """Show an error with its traceback."""
    _logger.error(msg, *args, **{"exc_info": True, **more})


def fatal(msg: Any, *args: Any, **more: Any) -> None:
    """Show what nobody can go on from; unlike absl's this does not end the process."""
    _logger.critical(msg, *args, **more)
