"""A competition's bundle, zip or folder, opened as Codabench's unpacker does, and the programs and data in it."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segjudge.platforms.evalai.bundle.bundle_source import UNREADABLE
from segjudge.platforms.evalai.bundle.opened_bundle import BundleRefusedError
from segjudge.platforms.rules.problems import BundleProblem, mappings_in

if TYPE_CHECKING:
    from segjudge.platforms.evalai.bundle.yaml_lines import YamlLines

CONFIG = "competition.yaml"
_PLATFORM = "Codabench"
#: The seconds that the public queue allows a run.
CAP = 600
#: The maximum length of a title: Codabench appends it to the name of the uploaded file, which may have 255 characters.
TITLE = 181
#: The place of a missing top-level key.
_FIRST_LINE = f"{CONFIG}:1:1"
#: Files that describe what a program runs, in the order of precedence.
METADATA = ("metadata.yaml", "metadata")
#: Codabench's message about an unexpected error while unpacking, followed by Python's text.
ERROR_LOG = "Unpacking the bundle failed. Here is the error log: "
#: The maximum bytes when unpacked, above the quota of an account.
_UNPACKED_BYTES = 20 << 30


def refusal(rule: int, subject: str, fault: str, remedy: str, quote: str) -> BundleProblem:
    """Return a problem that Codabench rejects, in its own words."""
    return BundleProblem(subject, fault, remedy, quote, rule, platform=_PLATFORM)


def crash(rule: int, subject: str, fault: str, remedy: str, text: str) -> BundleProblem:
    """Return a problem that Codabench reports with an exception of Python."""
    return refusal(rule, subject, fault, remedy, ERROR_LOG + text)


class OpenedCompetition:
    """The files of a bundle in a folder, and its config with the lines."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        path = self.path(CONFIG)
        if not os.path.exists(path):
            quote = "is missing from zip, check your folder structure to make sure it is in the root directory."
            remedy = "Zip the files themselves, not the folder around them"
            fault = "is missing at the top of the bundle"
            raise BundleRefusedError(refusal(1, CONFIG, fault, remedy, f"{CONFIG} {quote}"))
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            fault = "is a folder" if os.path.isdir(path) else f"cannot be read ({error.strerror})"
            text = f"[Errno {error.errno}] {error.strerror}: '<temporary folder>/{CONFIG}'"
            problem = crash(1, CONFIG, fault, "Replace it by the file itself", text)
            raise BundleRefusedError(problem) from None
        self.config, self.lines = _parse(data)

    def path(self, name: str) -> str:
        """Return the path where the unpacker looks for a file; it may lie outside the bundle."""
        return os.path.join(self.folder, name)

    def is_inside(self, name: str) -> bool:
        path = os.path.realpath(self.path(name))
        return not os.path.isabs(name) and (path == self.folder or path.startswith(self.folder + os.sep))

    def data(self, name: object) -> str:
        """Return the path of a data set in the bundle; "" for others."""
        path = self.path(name) if isinstance(name, str) else ""
        return path if path and os.path.exists(path) and self.is_inside(str(name)) else ""

    def mappings(self, key: str) -> list[tuple[str, dict[Any, Any]]]:
        return [(f"{key}[{index}]", item) for index, item in enumerate(mappings_in(self.config, key))]

    def locate(self, problem: BundleProblem) -> BundleProblem:
        location = problem.location or self.lines.location(problem.subject) or _FIRST_LINE
        return replace(problem, location=location, platform=_PLATFORM)

    def sort_phases(self) -> list[tuple[str, dict[Any, Any]]]:
        """Return the phases by index, as the unpacker sorts them, or as written if that fails."""
        phases = self.mappings("phases")
        try:
            return sorted(phases, key=lambda entry: entry[1].get("index", 0))
        except TypeError:
            return phases


def can_be_path(name: str) -> bool:
    """Return whether a string can be a file name: no NUL, no half character."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


@contextmanager
def open_competition(path: str) -> Iterator[OpenedCompetition]:
    """Open a bundle; raises `BundleRefusedError` if Codabench fails on its config."""
    if os.path.isdir(path):
        yield OpenedCompetition(path)
        return
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        _extract(path, folder)
        yield OpenedCompetition(folder)


def _extract(path: str, folder: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _UNPACKED_BYTES:
                fault = f"unpacks to more than {_UNPACKED_BYTES >> 30} GiB, above the quota of an account"
                raise BundleRefusedError(BundleProblem(path, fault, "Remove files that are not needed", rule=7))
            archive.extractall(folder)
    except zipfile.BadZipFile:
        problem = refusal(2, path, "is not a zip", "Zip it again", "Bad zip file uploaded.")
        raise BundleRefusedError(problem) from None
    except (OSError, RuntimeError, NotImplementedError, ValueError, EOFError) as error:
        problem = crash(2, path, f"cannot be unpacked ({error})", "Zip it again, without encryption", str(error))
        raise BundleRefusedError(problem) from None


def _parse(data: bytes) -> tuple[dict[Any, Any], YamlLines]:
    """Return the config, parsed by PyYAML's loader, as on the site."""
    import yaml

    from segjudge.platforms.evalai.bundle.yaml_lines import read_yaml

    try:
        config = yaml.safe_load(data.decode("utf-8"))
        _, lines = read_yaml(CONFIG, data)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        location = f"{CONFIG}:{mark.line + 1}:{mark.column + 1}" if mark else _FIRST_LINE
        fault = f"is not YAML in UTF-8: {getattr(error, 'problem', None) or error}"
        problem = crash(3, CONFIG, fault, "Correct that line or the one above", str(error))
        raise BundleRefusedError(replace(problem, location=location)) from None
    if not isinstance(config, dict):
        text = f"'{type(config).__name__}' object has no attribute 'get'"
        problem = crash(3, CONFIG, "is empty or not a mapping", "Write it as key: value", text)
        raise BundleRefusedError(replace(problem, location=_FIRST_LINE))
    return config, lines


class WorkerFailureError(Exception):
    """Raised where Codabench's worker fails, with the worker's message."""


@contextmanager
def _open_archive(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except UNREADABLE:
        raise WorkerFailureError("Bad or empty zip file") from None


def list_names(path: str) -> list[str]:
    if os.path.isdir(path):
        paths = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        return sorted(os.path.relpath(name, path) for name in paths)
    with _open_archive(path) as archive:
        return [name for name in archive.namelist() if not name.endswith("/")]


def read_texts(path: str, names: Iterable[str]) -> dict[str, str]:
    if os.path.isdir(path):
        return {name: Path(path, name).read_text(encoding="utf-8", errors="replace") for name in names}
    with _open_archive(path) as archive:
        return {name: archive.read(name).decode("utf-8", "replace") for name in names}


def unpack(path: str, folder: str) -> None:
    """Unpack a zip, or copy a folder, as the worker finds it."""
    if os.path.isdir(path):
        shutil.copytree(path, folder, dirs_exist_ok=True)
        return
    os.makedirs(folder, exist_ok=True)
    with _open_archive(path) as archive:
        archive.extractall(folder)


def find_command(path: str) -> str:
    """Return the command of a program; "" without one."""
    import yaml

    names = list_names(path)
    name = next((name for name in METADATA if name in names), "")
    if not name:
        return ""
    try:
        metadata: Any = yaml.safe_load(read_texts(path, [name])[name])
    except (yaml.YAMLError, ValueError, RecursionError):
        return ""
    command = metadata.get("command") if isinstance(metadata, dict) else None
    return command if isinstance(command, str) else ""
