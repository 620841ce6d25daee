"""A built bundle, opened: its config with the lines, and its files."""

from __future__ import annotations

import os
import zipfile
import zlib
from types import TracebackType
from typing import Any, Self

import yaml

from .field_values import TRUE
from .fields import CONFIG_NAMES
from .problems import BundleProblem, crash, later
from .yaml_lines import read, unreadable

#: The server's web front takes no larger upload.
UPLOAD_BYTES = 200 << 20
#: More than any challenge has; a zip that unpacks to more is not meant.
_MEMBERS, _TEXT_BYTES, _UNPACKED_BYTES = 20_000, 4 << 20, 4 << 30
#: Of one name of a path, as Linux takes it; and of what is unpacked at once.
_NAME_BYTES, _CHUNK = 255, 1 << 20


class BundleRefusedError(Exception):
    """The server would not even look at the keys."""

    def __init__(self, finding: BundleProblem) -> None:
        super().__init__(str(finding))
        self.finding = finding


class Bundle:
    """What a host uploads; raises `RefusedError` where there is no config to judge."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._zip = _opened(path)
        try:
            self._members = _extracted(self._zip, path)
            self.names = frozenset(self._members)
            #: As the zip lists them.
            self.listed = self._zip.namelist()
            self._bounded()
            _whole(self._zip, path)
            self.config_name = self._config_name()
            self.text = self.read(self.config_name)
            self.config: dict[str, Any]
            self.config, self.lines = self._parsed()
        except BundleRefusedError:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """A file of the bundle, by its path as the YAML may write it."""
        try:
            return self._zip.read(self._members[os.path.normpath(name)])
        except _DAMAGED as error:
            raise BundleRefusedError(_no_zip(self.path, f"{name} in it cannot be read ({error})")) from None

    def size(self, name: str) -> int:
        """Bytes of a file of the bundle."""
        return self._members[os.path.normpath(name)].file_size

    def has(self, path: Any) -> bool:
        """Whether a value of the YAML names a file that is there."""
        return isinstance(path, str) and os.path.normpath(path) in self.names

    @property
    def scored_elsewhere(self) -> bool:
        """Whether no worker of EvalAI's needs the annotation files."""
        return self.says("remote_evaluation") or (
            self.says("is_docker_based") and not self.says("is_static_dataset_code_upload")
        )

    def says(self, flag: str) -> bool:
        """Whether a flag is set, however it is written."""
        told = self.config.get(flag)
        return isinstance(told, (str, int, float)) and told in TRUE

    def _config_name(self) -> str:
        configs = [name for name in self._zip.namelist() if name in CONFIG_NAMES]
        if not configs:
            quote = "There is no YAML file in the zip file you uploaded!"
            raise BundleRefusedError(
                BundleProblem(self.path, "holds no challenge config", "Put it at the top", quote, rule=3)
            )
        if len(configs) > 1:
            quote = f"There are {len(configs)} challenge config YAML files instead of 1 in the zip file!"
            raise BundleRefusedError(
                BundleProblem(self.path, f"holds {' and '.join(configs)}", "Keep one", quote, rule=4)
            )
        return configs[0]

    def _bounded(self) -> None:
        """Nothing of what is read as text is larger than anybody writes, and all of it is unpacked in seconds."""
        if sum(one.file_size for one in self._zip.infolist()) > _UNPACKED_BYTES:
            found = f"unpacks to more than {_UNPACKED_BYTES >> 30} GiB"
            raise BundleRefusedError(later(self.path, found, "Leave out what EvalAI does not read"))
        for one in self._zip.infolist():
            if one.filename.endswith((".html", ".yaml", ".yml")) and one.file_size > _TEXT_BYTES:
                found = f"{one.filename} in it unpacks to {one.file_size:,} bytes"
                raise BundleRefusedError(later(self.path, found, f"Keep texts below {_TEXT_BYTES >> 20} MiB"))

    def _parsed(self) -> tuple[dict[str, Any], Any]:
        try:
            config, lines = read(self.config_name, self.text)
        except yaml.YAMLError as error:
            raise BundleRefusedError(unreadable(self.config_name, error)) from None
        if not isinstance(config, dict):
            raise BundleRefusedError(crash(self.config_name, "is empty or not a mapping", "Write it as key: value", 7))
        return config, lines


_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError),
    *(EOFError, ValueError, KeyError),
)


def is_html(path: str) -> bool:
    """Whether a path of the YAML ends as EvalAI wants it of a text."""
    return os.path.normpath(path).endswith(".html")


def _extracted(archive: zipfile.ZipFile, path: str) -> dict[str, zipfile.ZipInfo]:
    """The files as the server finds them once it has unpacked the zip, whose names need not be as plain."""
    files: dict[str, zipfile.ZipInfo] = {}
    folders: dict[str, str] = {}
    for one in archive.infolist():
        parts = [part for part in one.filename.split("/") if part not in ("", os.curdir, os.pardir)]
        if (not parts and not one.is_dir()) or any(len(os.fsencode(part)) > _NAME_BYTES for part in parts):
            raise BundleRefusedError(crash(path, f"holds {one.filename!r:.60}, which names no file", "Rename it", 2))
        deep = len(parts) if one.is_dir() else len(parts) - 1
        folders.update({"/".join(parts[: k + 1]): one.filename for k in range(deep)})
        if not one.is_dir():
            files["/".join(parts)] = one
    both = sorted(files.keys() & folders.keys())
    if both:
        found = f"holds {both[0]} as a file, and {folders[both[0]]} below it"
        raise BundleRefusedError(crash(path, found, "Rename one of them", 2))
    return files


def _whole(archive: zipfile.ZipFile, path: str) -> None:
    """The server unpacks every file, also those that nothing names."""
    for one in archive.infolist():
        try:
            with archive.open(one) as member:
                while member.read(_CHUNK):
                    pass
        except (zipfile.BadZipFile, EOFError) as error:
            raise BundleRefusedError(_no_zip(path, f"{one.filename!r:.60} in it is damaged ({error})")) from None
        except _DAMAGED as error:
            found = f"{one.filename!r:.60} in it cannot be unpacked ({error})"
            raise BundleRefusedError(crash(path, found, "Make it with segjudge build", 2)) from None


def escapes(path: str) -> bool:
    """Whether a path leads out of the bundle."""
    return os.path.isabs(path) or os.path.normpath(path).split(os.sep)[0] == os.pardir


def _opened(path: str) -> zipfile.ZipFile:
    if os.path.getsize(path) > UPLOAD_BYTES:
        found = f"has {os.path.getsize(path) / 1e6:,.0f} MB, and EvalAI takes {UPLOAD_BYTES >> 20} MiB"
        remedy = "Upload large annotation files with `evalai challenge C phase P submit --file F --annotation`"
        raise BundleRefusedError(BundleProblem(path, found, remedy))
    try:
        opened = zipfile.ZipFile(path)
    except NotImplementedError as error:
        raise BundleRefusedError(
            crash(path, f"is a zip of another kind ({error})", "Make it with segjudge build", 2)
        ) from None
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise BundleRefusedError(_no_zip(path, f"is not a zip ({error})")) from None
    if len(opened.namelist()) > _MEMBERS:
        opened.close()
        raise BundleRefusedError(
            later(path, f"holds more than {_MEMBERS:,} files", "Leave out what EvalAI does not read")
        )
    unsafe = [name for name in opened.namelist() if escapes(name)]
    if unsafe:
        opened.close()
        raise BundleRefusedError(_no_zip(path, f"holds {unsafe[0]}, which points outside"))
    return opened


def _no_zip(path: str, found: str) -> BundleProblem:
    quote = "The zip file contents cannot be extracted. Please check the format!"
    return BundleProblem(path, found, "Make it with segjudge build", quote, rule=2)
