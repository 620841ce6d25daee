"""`requirements.txt` of a challenge: the pinned Segjudge, unpinned lines, and changes of scores since.

The running Segjudge is included as a wheel, however it was installed. It is packed here, because pip makes wheels from
sources alone.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from segjudge.evaluation_script.scoring import VERSION
from segjudge.families.plugin_files import find_plugins, read_package
from segjudge.platforms.rules.problems import BundleProblems, breaks_later, warning
from segjudge.system.errors import UsageError
from segjudge.system.extras import find_distribution
from segjudge.system.files import zip_files
from segjudge.system.plugins import Plugin

_PROJECT = "segjudge"
FILE = "requirements.txt"
_WHEELS = "wheels"
#: A kernel inside is used on the system in its name; the wheel itself installs everywhere.
_ABOUT_WHEEL = "Wheel-Version: 1.0\nGenerator: segjudge\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_METADATA = ("METADATA", "entry_points.txt", "licenses/LICENSE")
_CHANGELOG = os.path.join(os.path.dirname(__file__), "CHANGELOG.md")
_ACCEPTED = re.compile(r"^[^#\n]*\bsegjudge\b.*?#\s*scores as of (\S+)", re.MULTILINE)
#: A part of an address that fixes its content: a commit, a checksum.
_PINNED = re.compile(r"git\+\S+@[0-9a-f]{40}(#\S*)?|\S+#sha256=[0-9a-f]{64}")
_OPTIONS_THAT_INSTALL = ("-r", "--requirement", "-e", "--editable", "-i", "--index-url", "--extra-index-url")
#: The form that names a wheel of the repository with its checksum.
_CARRIED = f"{_PROJECT}[serve] @ file:./{_WHEELS}/NAME.whl#sha256=…"
_OLD_PIP = "# If pip calls the line above invalid, update it: python -m pip install --upgrade pip"


def format_lock(source: str, folder: str, extra: str) -> str:
    """Return the lines that lock a git commit or a wheel, which is copied into the folder, with an extra.

    Without a source, it is a wheel of the running Segjudge.
    """
    with_extra = f"{_PROJECT}[{extra}]"
    if "://" in source:
        requirement = source if source.startswith("git+") or ".whl" in source else f"git+{source}"
        if not _PINNED.fullmatch(requirement):
            pinned = "a git address ends with @ and the 40 digits of a commit; a wheel's address ends with #sha256=…"
            raise UsageError(f"--segjudge {source}: may point to something else tomorrow; {pinned}")
        return f"{with_extra} @ {requirement}  # scores as of {VERSION}\n"
    name, data = _read_wheel(source) if source else _pack_installation()
    os.makedirs(os.path.join(folder, _WHEELS))
    Path(folder, _WHEELS, name).write_bytes(data)
    return f"{with_extra} @ {_line_of(name, data)}  # scores as of {parse_wheel_filename(name)[1]}\n{_OLD_PIP}\n"


def write_lock(source: str, folder: str, protocols: list[str]) -> None:
    """Write the requirements of a challenge that is scored by these protocols."""
    lock = format_lock(source, folder, "serve") + plugin_lines(protocols, folder)
    Path(folder, FILE).write_text(lock, encoding="utf-8")


def plugin_lines(protocols: list[str], folder: str) -> str:
    """Return the lines of the plug-ins that these protocols need, with their wheels written into the folder."""
    lines = []
    for plugin in find_plugins(protocols):
        name, data = _pack_plugin(plugin)
        os.makedirs(os.path.join(folder, _WHEELS), exist_ok=True)
        Path(folder, _WHEELS, name).write_bytes(data)
        lines.append(f"{_line_of(name, data)}\n")
    return "".join(dict.fromkeys(lines))


def _pack_plugin(plugin: Plugin) -> tuple[str, bytes]:
    """Return the name and content of a wheel with the package of a plug-in, wherever that is installed."""
    top = plugin.module.partition(".")[0]
    spec = find_spec(top)
    paths = (spec and spec.submodule_search_locations) or ()
    members = {
        f"{top}/{name}": data for path in paths for name, data in read_package(path, f"{plugin.origin}, {top}").items()
    }
    return _pack_wheel(plugin.distribution, plugin.version, members, distribution(plugin.distribution))


def _read_wheel(path: str) -> tuple[str, bytes]:
    name = os.path.basename(path)
    if not path.endswith(".whl"):
        fault = "is neither a wheel nor a git address, and the package index has no release of this project"
        raise UsageError(f"--segjudge {path}: {fault}; omit it to use the running Segjudge")
    try:
        project, data = parse_wheel_filename(name)[0], Path(path).read_bytes()
    except InvalidWheelFilename as error:
        raise UsageError(f"--segjudge {path}: {error}") from None
    except OSError as error:
        raise UsageError(f"--segjudge {path}: there is no such wheel ({error.strerror})") from None
    if project != _PROJECT or not zipfile.is_zipfile(io.BytesIO(data)):
        raise UsageError(f"--segjudge {path}: is not a wheel of Segjudge")
    return name, data


def _line_of(name: str, data: bytes) -> str:
    return f"file:./{_WHEELS}/{name}#sha256={hashlib.sha256(data).hexdigest()}"


def _pack_installation() -> tuple[str, bytes]:
    """Return the name and content of a wheel with the running package; the same package gives the same bytes.

    Raises `UsageError` if the package was not installed, so its requirements are unknown.
    """
    remedy = "install it (pip install .), or name a wheel with --segjudge"
    installed = find_distribution()
    if installed is None:
        raise UsageError(f"this Segjudge was not installed, so its requirements are unknown; {remedy}")
    if Version(installed.version) != Version(VERSION):
        fault = f"Segjudge {installed.version} is installed, but {VERSION} runs"
        raise UsageError(f"{fault}; {remedy}")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return _pack_wheel(_PROJECT, VERSION, dict(_read_package(package)), installed)


def _pack_wheel(project: str, version: str, members: dict[str, bytes], installed: Distribution) -> tuple[str, bytes]:
    """Return the name and content of a wheel with these files, and the metadata of the installed distribution."""
    stem = f"{canonicalize_name(project).replace('-', '_')}-{Version(version)}"
    texts = {name: installed.read_text(name) for name in _METADATA}
    members = {**members, **{f"{stem}.dist-info/{name}": text.encode() for name, text in texts.items() if text}}
    members[f"{stem}.dist-info/WHEEL"] = _ABOUT_WHEEL.encode()
    record = f"{stem}.dist-info/RECORD"
    digests = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()) for name, data in members.items()}
    lines = [f"{name},sha256={digests[name].rstrip(b'=').decode()},{len(members[name])}\n" for name in sorted(members)]
    members[record] = "".join([*lines, f"{record},,\n"]).encode()
    return f"{stem}-py3-none-any.whl", zip_files(members)


def _read_package(package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a package; in our checkout, its links lead to the bundle's folders."""
    for path, folders, names in os.walk(package, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith((".pyc", ".partial")):
                inner = os.path.relpath(os.path.join(path, name), package).replace(os.sep, "/")
                yield f"{_PROJECT}/{inner}", Path(path, name).read_bytes()


# ── the content of the file ─────────────────────────────────────────────────


@dataclass(frozen=True)
class _Line:
    """A line of the file without its comment."""

    number: int
    text: str

    @property
    def subject(self) -> str:
        return f"{FILE}:{self.number}"


def _read_lines(root: str) -> list[_Line]:
    """Return the lines with content; empty without a file."""
    try:
        text = Path(root, FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    joined = text.replace("\\\n", "  ").split("\n")
    lines = [_Line(number, re.sub(r"(^|\s)#.*", "", line).strip()) for number, line in enumerate(joined, 1)]
    return [line for line in lines if line.text]


def check_lock(root: str) -> BundleProblems:
    """Yield a repository's requirements that cannot be installed or are not pinned."""
    for line in _read_lines(root):
        address = line.text.partition(" @ ")[2] or line.text
        path = re.sub(r"^file:(//)?", "", address).partition("#")[0].split()[0]
        if line.text.startswith("-"):
            if line.text.split("=")[0].split()[0] in _OPTIONS_THAT_INSTALL:
                remedy = "Name every package here with its version or checksum"
                yield warning(
                    line.subject, f"has {line.text.split()[0]}, so it does not pin the installed packages", remedy
                )
        elif address.startswith("file:") or (path.endswith(".whl") and "://" not in address):
            yield from _check_wheel(root, line, path)
        else:
            yield from _check_package(line)


def _check_wheel(root: str, line: _Line, path: str) -> BundleProblems:
    if os.path.isabs(path):
        fault = f"names {path}, which exists only on this machine"
        yield breaks_later(line.subject, fault, f"Put the wheel into {_WHEELS}/ and write {_CARRIED}")
        return
    try:
        data = Path(root, path).read_bytes()
    except OSError:
        fault = f"names {path}, which does not exist, so nothing can be installed"
        yield breaks_later(line.subject, fault, "Restore the wheel, or write the line of another one")
        return
    expected = _line_of(os.path.basename(path), data).partition("#")[2]
    checksum = re.search(r"sha256[=:]([0-9a-f]+)", line.text)
    if checksum is None:
        name = line.text.partition(" @ ")[0]
        written = f"{name} @ file:{path}" if name != line.text else f"file:{path}"
        yield warning(line.subject, f"names {path} without its checksum", f"Write {written}#{expected}")
    elif f"sha256={checksum[1]}" != expected:
        fault = f"has a different checksum than {path}, so pip rejects it"
        yield breaks_later(line.subject, fault, f"Restore the right wheel; if this one is intended, write #{expected}")


def _check_package(line: _Line) -> BundleProblems:
    text = re.sub(r"\s--hash=\S+", "", line.text)
    try:
        package = Requirement(text)
    except InvalidRequirement:
        package = None
    address = str(package.url) if package and package.url else text
    if package is None or package.url:
        if not _PINNED.fullmatch(address):
            yield warning(
                line.subject, f"{text} may point to something else tomorrow", "Name a commit, or add #sha256=…"
            )
    elif canonicalize_name(package.name) == _PROJECT:
        fault = (
            f"asks the package index for {text}, which has no release of this project: anyone who registers that name "
            "can run code with your EVALAI_TOKEN"
        )
        remedy = f"Carry a wheel: {_CARRIED} (segjudge new writes one)"
        yield breaks_later(line.subject, fault, remedy)
    elif not any(clause.operator in ("==", "===") and "*" not in clause.version for clause in package.specifier):
        yield warning(line.subject, f"does not pin {package.name} ({text})", f"Write {package.name}== and the version")


def read_locked_version(root: str) -> str:
    """Return the version of Segjudge that a repository's requirements name; "" where they name none."""
    for line in _read_lines(root):
        match = re.search(rf"\b{_PROJECT}(?:-|\s*==\s*)(\d[^-/\s;]*)", line.text)
        if match:
            return match[1]
    accepted = _search_accepted(root)
    return accepted[1] if accepted else ""


def _search_accepted(root: str) -> re.Match[str] | None:
    try:
        return _ACCEPTED.search(Path(root, FILE).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def list_score_changes(root: str) -> BundleProblems:
    """Yield a warning for each change of scores since the version that a repository's lock names."""
    try:
        accepted = _search_accepted(root)
        before = Version(accepted[1]) if accepted else None
    except ValueError:
        return
    if before is None or before == Version(VERSION):
        return
    if before > Version(VERSION):
        fault = f"has scores as of {before}, but Segjudge {VERSION} is installed"
        yield warning(FILE, fault, f"Install the named version: pip install -r {FILE}")
        return
    for version, change in _read_changes():
        if before < version:
            remedy = f"Re-run the submissions on the leaderboard, then write # scores as of {VERSION}"
            yield warning(FILE, f"has scores as of {before}; {version} changed them: {change}", remedy)


def _read_changes() -> Iterator[tuple[Version, str]]:
    """Yield the changelog's entries about scores with their versions; unreleased ones belong to this version."""
    text = Path(_CHANGELOG).read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        number = re.match(r"\[?v?(\d[\w.]*)", section)
        for block in re.findall(r"^### Scores\n(.*?)(?=^#|\Z)", section, re.MULTILINE | re.DOTALL):
            for entry in re.findall(r"^- (.*(?:\n  .*)*)", block, re.MULTILINE):
                yield Version(number[1] if number else VERSION), " ".join(entry.split()).rstrip(".")
