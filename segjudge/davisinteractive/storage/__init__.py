"""Storages of an evaluation service."""

from . import abstract, local
from .abstract import AbstractStorage
from .local import LocalStorage

__all__ = ["AbstractStorage", "LocalStorage", "abstract", "local"]
