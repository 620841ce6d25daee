"""A built bundle, opened: its config with the lines, and its files."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker.folder import has_our_modules
from segjudge.platforms.rules.fields import as_flag
from segjudge.platforms.rules.problems import BundleProblem, breaks_later, crash
from segjudge.system.python310 import Self

from .bundle_source import CONFIG_NAMES, UNREADABLE, script_files

if TYPE_CHECKING:
    from .yaml_lines import YamlLines

#: The maximum size of an upload to the server's web front.
UPLOAD_BYTES = 200 << 20
#: Limits above the size of any challenge.
_MEMBERS, _TEXT_BYTES, _UNPACKED_BYTES = 20_000, 4 << 20, 4 << 30
#: The maximum length of a path's part on Linux, and the bytes unpacked at once.
_NAME_BYTES, _CHUNK_BYTES = 255, 1 << 20


class BundleRefusedError(HostError):
    """Raised for a bundle without a checkable config."""

    def __init__(self, problem: BundleProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Bundle:
    """A bundle as the server unpacks it.

    Raises `BundleRefusedError` if the server would fail before the keys of the config. A bundle for another platform
    may exceed EvalAI's size limit.
    """

    def __init__(self, path: str, *, for_evalai: bool = True) -> None:
        self.path = path
        self._zip = _open_zip(path, UPLOAD_BYTES if for_evalai else sys.maxsize)
        try:
            self._members = _list_unpacked_files(self._zip, path)
            self.names = frozenset(self._members)
            #: The names in the zip's list, including folders.
            self.listed_names = self._zip.namelist()
            _check_sizes(self._zip, path)
            _check_members(self._zip, path)
            self.config_name = self._config_name()
            self.text = self.read(self.config_name)
            self.config, self.lines = self._parse_config()
        except BundleRefusedError:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Return the content of a file, by its path in the YAML."""
        try:
            return self._zip.read(self._members[os.path.normpath(name)])
        except UNREADABLE as error:
            raise BundleRefusedError(_not_a_zip(self.path, f"{name} in it cannot be read ({error})")) from None

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Yield a file, which may be larger than memory."""
        with self._zip.open(self._members[os.path.normpath(name)]) as file:
            yield file

    def size(self, name: str) -> int:
        return self._members[os.path.normpath(name)].file_size

    def has(self, path: object) -> bool:
        """Return whether a value of the YAML is the path of a bundled file."""
        return isinstance(path, str) and os.path.normpath(path) in self.names

    @cached_property
    def script(self) -> dict[str, bytes]:
        """Return the modules and requirements of the evaluation script; empty if unreadable."""
        path = self.config.get("evaluation_script")
        try:
            return script_files(self.read(str(path))) if self.has(path) else {}
        except UNREADABLE:
            return {}

    @cached_property
    def script_names(self) -> list[str]:
        """Return the names of all files in the script's zip; empty if unreadable."""
        path = self.config.get("evaluation_script")
        try:
            with zipfile.ZipFile(io.BytesIO(self.read(str(path)))) as script:
                return script.namelist()
        except (*UNREADABLE, HostError):
            return []

    def read_script(self) -> dict[str, bytes]:
        """Read all files of the script's zip; raises `HostError` where one leads out of the script's folder."""
        for name in self.script_names:
            if escapes(name):
                raise HostError(
                    f"{self.config['evaluation_script']}: holds {name}, which points outside; run `segjudge check`"
                )
        with zipfile.ZipFile(io.BytesIO(self.read(str(self.config["evaluation_script"])))) as script:
            return {name: script.read(name) for name in script.namelist()}

    @property
    def is_foreign(self) -> bool:
        return not has_our_modules(self.script)

    @property
    def is_evaluated_elsewhere(self) -> bool:
        """Return whether the challenge is evaluated outside EvalAI's worker."""
        return self.has_flag("remote_evaluation") or (
            self.has_flag("is_docker_based") and not self.has_flag("is_static_dataset_code_upload")
        )

    def has_flag(self, key: str) -> bool:
        """Read a flag of the challenge, in any spelling that the server accepts."""
        return as_flag(self.config.get(key)) is True

    def _config_name(self) -> str:
        names = [name for name in self.listed_names if name in CONFIG_NAMES]
        if len(names) == 1:
            return names[0]
        if names:
            quote = f"There are {len(names)} challenge config YAML files instead of 1 in the zip file!"
            problem = BundleProblem(self.path, f"holds {' and '.join(names)}", "Keep one", quote, 4)
        else:
            quote = "There is no YAML file in the zip file you uploaded!"
            below = [name for name in self.listed_names if os.path.basename(name) in CONFIG_NAMES]
            fault = "holds no challenge config" + (f" at its top, only {below[0]}" if below else "")
            problem = BundleProblem(self.path, fault, "Put it at the top", quote, 3)
        raise BundleRefusedError(problem)

    def _parse_config(self) -> tuple[dict[str, Any], YamlLines]:
        import yaml

        from .yaml_lines import read_yaml, yaml_problem

        try:
            config, lines = read_yaml(self.config_name, self.text)
        except yaml.YAMLError as error:
            raise BundleRefusedError(yaml_problem(self.config_name, error)) from None
        if not isinstance(config, dict):
            raise BundleRefusedError(crash(self.config_name, "is empty or not a mapping", "Write it as key: value", 7))
        return config, lines


def escapes(path: str) -> bool:
    """Return whether a path leaves the bundle."""
    return os.path.isabs(path) or os.path.normpath(path).split(os.sep)[0] == os.pardir


def _open_zip(path: str, limit: int) -> zipfile.ZipFile:
    if os.path.getsize(path) > limit:
        fault = f"has {os.path.getsize(path) / 1e6:,.0f} MB; EvalAI allows {limit >> 20} MiB"
        remedy = "Upload large annotation files with `evalai challenge C phase P submit --file F --annotation`"
        raise BundleRefusedError(BundleProblem(path, fault, remedy))
    if not os.path.getsize(path):
        problem = BundleProblem(path, "is empty", "Build it again", "The submitted file is empty.", 1)
        raise BundleRefusedError(problem)
    try:
        return zipfile.ZipFile(path)
    except NotImplementedError as error:
        fault = f"is an unsupported kind of zip ({error})"
        raise BundleRefusedError(crash(path, fault, "Make it with segjudge build", 2)) from None
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BundleRefusedError(_not_a_zip(path, f"is not a zip ({error})")) from None


def _list_unpacked_files(archive: zipfile.ZipFile, path: str) -> dict[str, zipfile.ZipInfo]:
    """Return the files by their unpacked paths on the server."""
    if len(archive.namelist()) > _MEMBERS:
        fault = f"holds more than {_MEMBERS:,} files"
        raise BundleRefusedError(breaks_later(path, fault, "Remove files that EvalAI does not read"))
    if unsafe := [name for name in archive.namelist() if escapes(name)]:
        raise BundleRefusedError(_not_a_zip(path, f"holds {unsafe[0]}, which points outside"))
    files: dict[str, zipfile.ZipInfo] = {}
    folders: dict[str, str] = {}
    for member in archive.infolist():
        parts = [name for name in member.filename.split("/") if name not in ("", os.curdir, os.pardir)]
        if (not parts and not member.is_dir()) or any(len(os.fsencode(name)) > _NAME_BYTES for name in parts):
            fault = f"holds {member.filename!r:.60}, which is not a file name"
            raise BundleRefusedError(crash(path, fault, "Rename it", 2))
        depth = len(parts) if member.is_dir() else len(parts) - 1
        folders.update({"/".join(parts[: length + 1]): member.filename for length in range(depth)})
        if not member.is_dir():
            files["/".join(parts)] = member
    both = sorted(files.keys() & folders.keys())
    if both:
        fault = f"holds {both[0]} as a file, and {folders[both[0]]} in it"
        raise BundleRefusedError(crash(path, fault, "Rename one of them", 2))
    return files


def _check_sizes(archive: zipfile.ZipFile, path: str) -> None:
    """Raise for members that would unpack to too much, and for huge texts."""
    if sum(member.file_size for member in archive.infolist()) > _UNPACKED_BYTES:
        fault = f"unpacks to more than {_UNPACKED_BYTES >> 30} GiB"
        raise BundleRefusedError(breaks_later(path, fault, "Remove files that EvalAI does not read"))
    for member in archive.infolist():
        if member.filename.endswith((".html", ".yaml", ".yml")) and member.file_size > _TEXT_BYTES:
            fault = f"{member.filename} in it unpacks to {member.file_size:,} bytes"
            raise BundleRefusedError(breaks_later(path, fault, f"Keep each text file below {_TEXT_BYTES >> 20} MiB"))


def _check_members(archive: zipfile.ZipFile, path: str) -> None:
    """Unpack every file, as the server does, including files that the config does not name."""
    for member in archive.infolist():
        try:
            with archive.open(member) as file:
                while file.read(_CHUNK_BYTES):
                    pass
        except (zipfile.BadZipFile, EOFError) as error:
            raise BundleRefusedError(_not_a_zip(path, f"{member.filename!r:.60} in it is damaged ({error})")) from None
        except UNREADABLE as error:
            fault = f"{member.filename!r:.60} in it cannot be unpacked ({error})"
            raise BundleRefusedError(crash(path, fault, "Make it with segjudge build", 2)) from None


def _not_a_zip(path: str, fault: str) -> BundleProblem:
    quote = "The zip file contents cannot be extracted. Please check the format!"
    return BundleProblem(path, fault, "Make it with segjudge build", quote, 2)
