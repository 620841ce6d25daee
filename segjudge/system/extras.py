"""The extras of this distribution: their modules, and the message about a missing one.

`pyproject.toml` declares their packages; `tests/house/test_extras.py` compares both, and lists the extra of each room.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from . import IMPORT_ROOT
from .errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

#: Extra → the modules that its code imports, without those of the extras that it contains.
MODULES = {
    "host": ("dateutil", "packaging", "requests"),
    "serve": ("itsdangerous", "nh3", "python_multipart", "sqlalchemy", "starlette", "uvicorn"),
    "interactive": ("cv2", "matplotlib", "pandas", "requests", "skimage", "starlette", "uvicorn"),
    "agents": ("google.protobuf", "grpc", "grpc_health", "gymnasium"),
    "tables": ("pandas",),
    "cluster": ("boto3", "distributed", "fsspec"),
    "torch": ("torch", "torchmetrics"),
    "aws": ("boto3",),
    "hub": ("huggingface_hub",),
}
#: Extra → the extra that it contains.
CONTAINED = {"serve": "host", "agents": "host", "aws": "host", "hub": "host"}
_PROJECT = "segjudge"


class MissingExtraError(UsageError, ModuleNotFoundError):
    """Raised if an extra is needed but not installed."""


def require_extra(extra: str, subject: str, command: str = "") -> None:
    """Raise `MissingExtraError` unless the modules of an extra are installed.

    The subject is the feature that needs them; a command names itself, because `./run.sh COMMAND` installs its needs.
    """
    modules = [*MODULES.get(CONTAINED.get(extra, ""), ()), *MODULES[extra]]
    if missing := next((module for module in modules if not _is_installed(module)), ""):
        raise make_error(extra, subject, missing, command)


def make_error(extra: str, subject: str, module: str, command: str = "") -> MissingExtraError:
    """Return the error of a subject that lacks a module of an extra."""
    text = f"{subject} needs the extra {extra} ({module} is not installed): {install_line(extra, command)}"
    return MissingExtraError(text, name=module)


def install_line(extra: str, command: str = "") -> str:
    """Return the command that installs an extra for this installation: run.sh, pip or uv."""
    if command and os.path.exists(script := os.path.join(IMPORT_ROOT, "run.sh")):
        return f"{format_script_path(script)} {command}"
    tool = _find_installer()
    source = _find_source(_read_installation(), extra)
    return f"{tool} {source or shlex.join(list_packages(extra))}"


def _find_installer() -> str:
    """Return the command that installs here: uv's without pip, else pip's, by name if that finds it."""
    import shutil

    if not _is_installed("pip"):
        return f"uv pip install --python {_quote_plain(sys.executable)}"
    path = shutil.which("pip")
    is_ours = path and os.path.dirname(path) == os.path.dirname(sys.executable)
    return "pip install" if is_ours else f"{_quote_plain(sys.executable)} -m pip install"


def find_distribution() -> Distribution | None:
    """Return the installed distribution, ignoring metadata that setuptools leaves in a checkout."""
    from importlib.metadata import distributions

    return next((entry for entry in distributions(name=_PROJECT) if entry.read_text("METADATA")), None)


def list_packages(extra: str) -> list[str]:
    """Return the packages of an extra as the installed distribution declares them, nested extras included."""
    distribution = find_distribution()
    lines = distribution and distribution.requires
    packages: list[str] = []
    for line in lines or ():
        if re.search(rf"""extra == ["']{extra}["']""", line):
            package = line.partition(";")[0].strip()
            inner = re.fullmatch(rf"{_PROJECT}\[([\w,-]+)\]", package)
            packages += [each for name in inner[1].split(",") for each in list_packages(name)] if inner else [package]
    return list(dict.fromkeys(packages))


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is not installed, or a test hides it
        return False


def _read_installation() -> dict[str, Any] | None:
    """Return the source of this installation; None if not installed, {} for an index."""
    distribution = find_distribution()
    if distribution is None:
        return None
    text = distribution.read_text("direct_url.json")
    content: dict[str, Any] = json.loads(text) if text else {}
    return content


def _find_source(installation: dict[str, Any] | None, extra: str) -> str:
    """Return the installer's name of this project with an extra; "" if its source is gone."""
    if installation is None:  # imported from a folder
        return _quote(f"{IMPORT_ROOT}[{extra}]") if os.path.exists(os.path.join(IMPORT_ROOT, "pyproject.toml")) else ""
    url = installation.get("url")
    if not url:
        return _quote(f"{_PROJECT}[{extra}]")
    if not url.startswith("file:"):
        commit = installation.get("vcs_info")
        address = f"{commit['vcs']}+{url}@{commit['commit_id']}" if commit else url
        return _quote(f"{_PROJECT}[{extra}] @ {address}")
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    path = url2pathname(urlsplit(url).path)
    if not os.path.exists(path):
        return ""
    is_editable = installation.get("dir_info", {}).get("editable")
    return ("-e " if is_editable else "") + _quote(f"{path}[{extra}]")


def _quote(text: str) -> str:
    """Return text with brackets quoted as all shells read it."""
    return shlex.quote(text) if re.search(r"""["$`\\!]""", text) and os.name != "nt" else f'"{text}"'


def format_script_path(path: str, folder: str = os.curdir) -> str:
    """Return a checkout's `run.sh` as it is typed in a folder."""
    with suppress(OSError):  # the folder or the checkout may be gone
        if os.path.samefile(folder, os.path.dirname(path)):
            return "./run.sh"
    return _quote_plain(path)


def _quote_plain(text: str) -> str:
    return text if re.fullmatch(r"[\w@%+=:,./~-]+", text) else _quote(text)
