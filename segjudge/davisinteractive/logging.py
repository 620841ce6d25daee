"""Messages with absl's names and levels, written by the standard library."""

import logging as standard
from typing import Any

#: absl's levels; a higher level shows more.
FATAL, ERROR, WARNING, INFO, DEBUG = -3, -2, -1, 0, 1
WARN = WARNING
_STANDARD_LEVELS = {
    FATAL: standard.CRITICAL, ERROR: standard.ERROR, WARNING: standard.WARNING,
    INFO: standard.INFO, DEBUG: standard.DEBUG,
}  # fmt: skip

_logger = standard.getLogger("segjudge.davisinteractive")
_levels = {"info": 0, "verbosity": WARNING}

debug, info, warning, error = _logger.debug, _logger.info, _logger.warning, _logger.error
warn, exception = warning, _logger.exception
#: Unlike absl's function, it does not end the process.
fatal = _logger.critical


def get_absl_logger() -> standard.Logger:
    return _logger


def _standard_level(level: int) -> int:
    return _STANDARD_LEVELS[max(FATAL, min(DEBUG, int(level)))]


def set_verbosity(level: int) -> None:
    """Show messages up to this level; levels beyond DEBUG show all."""
    _levels["verbosity"] = int(level)
    _logger.setLevel(_standard_level(level))


def get_verbosity() -> int:
    return _levels["verbosity"]


def set_info_level(level: int) -> None:
    """Show `verbose` messages up to this level, and with them messages of the level INFO."""
    _levels["info"] = int(level)
    if get_verbosity() < INFO:
        set_verbosity(INFO)
    if not standard.getLogger().handlers and not _logger.handlers:
        _logger.addHandler(standard.StreamHandler())


def verbose(msg: object, level: int = 0, *args: object) -> None:
    """Show a message up to the level that `set_info_level` set."""
    if level <= _levels["info"]:
        info(msg, *args)


def log(level: int, msg: object, *args: object, **options: Any) -> None:
    _logger.log(_standard_level(level), msg, *args, **options)


vlog = log
