"""`requirements.txt` of a challenge: the Segjudge that scores, what is not pinned, and what changed in scores since."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from segjudge.evaluation_script.scoring import VERSION
from segjudge.platforms.evalai.bundle.problems import BundleProblems, breaks_later, warning
from segjudge.system.errors import UsageError

from .wheel import PROJECT, installed_wheel

FILE = "requirements.txt"
WHEELS = "wheels"
_CHANGELOG = os.path.join(os.path.dirname(__file__), "CHANGELOG.md")
_ACCEPTED = re.compile(r"^[^#\n]*\bsegjudge\b.*?#\s*scores as of (\S+)", re.MULTILINE)
#: What fixes the content behind an address: a commit, a checksum.
_PINNED = re.compile(r"git\+\S+@[0-9a-f]{40}(#\S*)?|\S+#sha256=[0-9a-f]{64}")
_OPTIONS_THAT_INSTALL = ("-r", "--requirement", "-e", "--editable", "-i", "--index-url", "--extra-index-url")
#: The form that names a wheel of the repository with its checksum, as pip reads it.
_CARRIED = f"file:./{WHEELS}/NAME.whl#sha256=…"


def requirement(source: str, folder: str) -> str:
    """Return the line that locks a git commit or a wheel, which is copied into the folder.

    Without a source it is a wheel with the Segjudge that runs, wherever that came from.
    """
    version = VERSION
    if "://" in source:
        wanted = source if source.startswith("git+") or ".whl" in source else f"git+{source}"
        if not _PINNED.fullmatch(wanted):
            pinned = "a git address ends with @ and the 40 digits of a commit, that of a wheel with #sha256=…"
            raise UsageError(f"--segjudge {source}: may lead to something else tomorrow; {pinned}")
        wanted = f"{PROJECT} @ {wanted}"
    else:
        name, data = _wheel_file(source) if source else installed_wheel()
        version = str(parse_wheel_filename(name)[1])
        os.makedirs(os.path.join(folder, WHEELS))
        Path(folder, WHEELS, name).write_bytes(data)
        wanted = _line_of(name, data)
    return f"{wanted}  # scores as of {version}\n"


def _wheel_file(path: str) -> tuple[str, bytes]:
    name = os.path.basename(path)
    if not path.endswith(".whl"):
        found = "is neither a wheel nor a git address, and the package index has no release of this project"
        raise UsageError(f"--segjudge {path}: {found}; leave it out to take the Segjudge that runs")
    try:
        if parse_wheel_filename(name)[0] != PROJECT or not zipfile.is_zipfile(path):
            raise UsageError(f"--segjudge {path}: is no wheel of Segjudge")
        return name, Path(path).read_bytes()
    except InvalidWheelFilename as error:
        raise UsageError(f"--segjudge {path}: {error}") from None
    except OSError as error:
        raise UsageError(f"--segjudge {path}: there is no such wheel ({error.strerror})") from None


def _line_of(name: str, data: bytes) -> str:
    return f"file:./{WHEELS}/{name}#sha256={hashlib.sha256(data).hexdigest()}"


@dataclass(frozen=True)
class _Line:
    """A line of the file without its comment."""

    number: int
    text: str

    @property
    def where(self) -> str:
        return f"{FILE}:{self.number}"


def _lines(root: str) -> list[_Line]:
    """Return the lines that say something; none where there is no such file."""
    try:
        text = Path(root, FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    joined = text.replace("\\\n", "  ").split("\n")
    lines = [_Line(number, re.sub(r"(^|\s)#.*", "", line).strip()) for number, line in enumerate(joined, 1)]
    return [line for line in lines if line.text]


def lock_problems(root: str) -> BundleProblems:
    """Yield what of a repository's requirements cannot be installed, or may be something else tomorrow."""
    for line in _lines(root):
        address = line.text.partition(" @ ")[2] or line.text
        path = re.sub(r"^file:(//)?", "", address).partition("#")[0].split()[0]
        if line.text.startswith("-"):
            if line.text.split("=")[0].split()[0] in _OPTIONS_THAT_INSTALL:
                remedy = "Name every package here with its version or checksum"
                yield warning(
                    line.where, f"has {line.text.split()[0]}, so that it does not say what is installed", remedy
                )
        elif address.startswith("file:") or (path.endswith(".whl") and "://" not in address):
            yield from _carried_wheel(root, line, path)
        else:
            yield from _named_package(line)


def _carried_wheel(root: str, line: _Line, path: str) -> BundleProblems:
    named = line.text.partition(" @ ")[0] != line.text
    if os.path.isabs(path) or named:
        found = f"names {path}, " + (
            "which is on this machine alone" if os.path.isabs(path) else "as pip cannot read it"
        )
        yield breaks_later(line.where, found, f"Put the wheel into {WHEELS}/ and write {_CARRIED}")
        return
    try:
        data = Path(root, path).read_bytes()
    except OSError:
        found = f"names {path}, which is not there, so that nothing can be installed"
        yield breaks_later(line.where, found, "Put the wheel back, or write the line of another")
        return
    expected = _line_of(os.path.basename(path), data).partition("#")[2]
    checksum = re.search(r"sha256[=:]([0-9a-f]+)", line.text)
    if checksum is None:
        yield warning(line.where, f"names {path} without its checksum", f"Write file:{path}#{expected}")
    elif f"sha256={checksum[1]}" != expected:
        found = f"has another checksum than {path}, so that pip refuses it"
        yield breaks_later(line.where, found, f"Put the right wheel back; if this one is meant, write #{expected}")


def _named_package(line: _Line) -> BundleProblems:
    text = re.sub(r"\s--hash=\S+", "", line.text)
    try:
        package = Requirement(text)
    except InvalidRequirement:
        package = None
    address = str(package.url) if package and package.url else text
    if package is None or package.url:
        if not _PINNED.fullmatch(address):
            yield warning(line.where, f"{text} may be something else tomorrow", "Name a commit, or add #sha256=…")
    elif canonicalize_name(package.name) == PROJECT:
        found = (
            f"asks the package index for {text}, which has no release of this project: whoever registers that name "
            "runs code beside your EVALAI_TOKEN"
        )
        remedy = f"Carry a wheel: {_CARRIED} (segjudge new writes one)"
        yield breaks_later(line.where, found, remedy)
    elif not any(part.operator in ("==", "===") and "*" not in part.version for part in package.specifier):
        yield warning(line.where, f"does not pin {package.name} ({text})", f"Write {package.name}== and the version")


def locked_version(root: str) -> str:
    """Return the version of Segjudge that a repository's requirements name; "" where they name none."""
    for line in _lines(root):
        named = re.search(rf"\b{PROJECT}(?:-|\s*==\s*)(\d[^-/\s;]*)", line.text)
        if named:
            return named[1]
    accepted = _accepted(root)
    return accepted[1] if accepted else ""


def _accepted(root: str) -> re.Match[str] | None:
    try:
        return _ACCEPTED.search(Path(root, FILE).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def score_moves(root: str) -> BundleProblems:
    """Yield a warning for each change of scores since the version that a repository's lock names."""
    try:
        accepted = _accepted(root)
        before = Version(accepted[1]) if accepted else None
    except ValueError:
        return
    if before is None or before == Version(VERSION):
        return
    if before > Version(VERSION):
        found = f"has scores as of {before}, and Segjudge {VERSION} is installed"
        yield warning(FILE, found, f"Install what it names: pip install -r {FILE}")
        return
    for version, change in _changes():
        if before < version:
            remedy = f"Score again what is on the leaderboard, then write # scores as of {VERSION}"
            yield warning(FILE, f"has scores as of {before}; {version} changed them: {change}", remedy)


def _changes() -> Iterator[tuple[Version, str]]:
    """Yield the changelog's entries about scores with their versions; what is not released is part of this one."""
    text = Path(_CHANGELOG).read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        number = re.match(r"\[?v?(\d[\w.]*)", section)
        for block in re.findall(r"^### Scores\n(.*?)(?=^#|\Z)", section, re.MULTILINE | re.DOTALL):
            for entry in re.findall(r"^- (.*(?:\n  .*)*)", block, re.MULTILINE):
                yield Version(number[1] if number else VERSION), " ".join(entry.split()).rstrip(".")
