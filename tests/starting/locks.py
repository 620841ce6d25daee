"""The locks of a challenge's requirements, and messages about them, as one text."""

from __future__ import annotations

import hashlib
import io
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from segjudge.starting import lock
from segjudge.starting.lock import check_lock, format_lock, list_score_changes, plugin_lines, read_locked_version
from segjudge.system.errors import UsageError
from segjudge.system.plugins import Plugin
from tests.builders import written, zipped

FILE = Path(__file__).with_name("locks.txt")
_COMMIT, _DIGEST = "0123456789abcdef0123456789abcdef01234567", "ab" * 32
_WHEEL = "segjudge-0.3.0-py3-none-any.whl"
#: What `new --segjudge` is given.
_SOURCES = (
    "", f"https://example.org/s.git@{_COMMIT}", f"git+ssh://git@example.org/s@{_COMMIT}", f"https://e.org/{_WHEEL}#sha256={_DIGEST}",
    "1.2", "git+https://example.org/s@v1", "https://example.org/s.git", f"https://example.org/{_WHEEL}", "none.whl", _WHEEL,
    f"FOLDER/{_WHEEL}", f"FOLDER/gone/{_WHEEL}", "FOLDER/broken-0.3.0-py3-none-any.whl", f"FOLDER/odd/{_WHEEL}",
)  # fmt: skip
#: Lines of requirements.
_LINES = (
    "", "# a comment", "segjudge==0.3.0", "segjudge[tables]>=0.1", "SegJudge", f"./wheels/{_WHEEL}", f"file:./wheels/{_WHEEL}#sha256={_DIGEST}",
    f"file:./wheels/{_WHEEL}#sha256=RIGHT", f"file:./wheels/{_WHEEL}#sha256=RIGHT\nsegjudge[serve]", f"./wheels/{_WHEEL} --hash=sha256:RIGHT", f"file:./wheels/segjudge-9-py3-none-any.whl#sha256={_DIGEST}",
    f"segjudge @ file:///home/me/{_WHEEL}#sha256={_DIGEST}", f"segjudge @ file:./wheels/{_WHEEL}", f"/home/{_WHEEL}",
    "segjudge @ git+https://example.org/s@main", f"segjudge @ git+https://example.org/s@{_COMMIT}  # scores as of 0.2.0",
    f"git+https://example.org/s@{_COMMIT}#egg=s", "git+https://example.org/s", f"x @ https://e.org/x-1-py3-none-any.whl#sha256={_DIGEST}",
    "x @ https://e.org/x-1-py3-none-any.whl", "numpy", "numpy==1.*", "numpy===1.2.3", "numpy>=1,==1.2", "numpy>=1 --hash=sha256:00",
    "numpy==2.0  # pinned\n--only-binary :all:", "numpy==2.0 \\\n  --hash=sha256:00\nscipy", "-r other.txt", "--requirement=other.txt", "-e .", "--pre",
    "--extra-index-url=https://example.org/simple", "numpy ==== 3", "Segjudge-0.3.0", "segjudge == 0.3.1; python_version > '3'",
)  # fmt: skip
#: What a host does about a change.
_RERUN = ". Re-run the submissions on the leaderboard, then write # scores as of 0.3.0."
_CHANGES = """# Changelog

## Unreleased

### Added
- A word.

### Scores
- J of an empty
  frame: 0 → 1.
- Another.

## [0.2.0] - 2020-01-01

### Scores
- F: 0.5 → 0.6.

### Fixed
- No score.

## v0.1.0

### Scores
- First numbers.
"""


def write_locks(folder: Path) -> str:
    lines: list[str] = []
    wheel = zipped({"segjudge/__init__.py": b"", "x": b"y"}, zipfile.ZIP_STORED)
    written(
        folder,
        {_WHEEL: wheel, f"odd/{_WHEEL}": b"no zip", "broken-0.3.0-py3-none-any.whl": wheel, f"wheels/{_WHEEL}": wheel},
    )
    package = written(folder / "package", {
        "__init__.py": "", "a/b.txt": "b", "a/c.pyc": "", "a/.hidden": "", "__pycache__/x.py": "", ".git/x": "", "d.partial": "",
    })  # fmt: skip
    (package / "linked").symlink_to(written(folder / "elsewhere", {"e.py": "e"}))
    with patch.object(lock, "VERSION", "0.3.0"), patch.object(lock, "__file__", str(package / "starting/lock.py")):
        _play_sources(lines, folder)
        _play_plugins(lines, folder)
        _play_lines(lines, folder)
        _play_changes(lines, folder)
    text = "\n".join(lines).replace(str(folder), "FOLDER").replace(hashlib.sha256(wheel).hexdigest(), "RIGHT")
    return re.sub(r"\b(?!ab)[0-9a-f]{64}\b", "DIGEST", text) + "\n"


def _outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except UsageError as error:
        return f"UsageError: {error}"


def _installed(version: str, texts: dict[str, str]) -> Callable[..., Iterable[object]]:
    entry = SimpleNamespace(version=version, read_text=texts.get)
    return lambda **_: [SimpleNamespace(read_text=lambda _name: None), entry]


def _play_sources(lines: list[str], folder: Path) -> None:
    lines.append("# What is locked\n")
    texts = {"METADATA": "Name: segjudge", "entry_points.txt": "", "licenses/LICENSE": "free"}
    with patch("importlib.metadata.distributions", _installed("0.3.0", texts)):
        for number, source in enumerate(_SOURCES):
            target = folder / f"new-{number}"
            target.mkdir()
            line = _outcome(
                lambda source=source, target=target: format_lock(
                    source.replace("FOLDER", str(folder)), str(target), "serve"
                ).rstrip()
            )
            lines += [f"{source or 'nothing'}: {line}", *(f"  {name}" for name in _list(target))]
    for version, installed in (("0.2.0", texts), ("0.3.0", {})):
        with patch("importlib.metadata.distributions", _installed(version, installed)):
            target = folder / f"of {version}"
            target.mkdir()
            lines.append(
                f"{version} is installed with {list(installed)}: {_outcome(lambda target=target: format_lock('', str(target), 'serve'))}"
            )


def _list(folder: Path) -> list[str]:
    """Return the wheels of a folder: their files and metadata."""
    names: list[str] = []
    for path in sorted(folder.rglob("*.whl")):
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as wheel:
            names += [f"{path.name}: {wheel.namelist()}"]
            names += [
                f"{name}: {wheel.read(name).decode().splitlines()}" for name in wheel.namelist() if "dist-info" in name
            ]
    return names


def _play_plugins(lines: list[str], folder: Path) -> None:
    lines.append("\n# Plug-ins\n")
    written(folder / "site/cells_package", {"__init__.py": "", "upload/__init__.py": "x"})
    plugins = [Plugin(name, "cells_package.inner", "Cells.of-ours", "1.0") for name in ("one", "two")]
    installed = SimpleNamespace(read_text={"METADATA": "Name: cells", "entry_points.txt": "[x]"}.get)
    with (
        patch.object(lock, "find_plugins", lambda _protocols: plugins), patch.object(lock, "distribution", lambda _name: installed),
        patch.object(sys, "path", [str(folder / "site"), *sys.path]),
    ):  # fmt: skip
        target = folder / "plug"
        target.mkdir()
        lines += [plugin_lines(["one"], str(target)).rstrip(), *(f"  {name}" for name in _list(target))]
    with patch.object(lock, "find_plugins", lambda _protocols: []):
        lines.append(f"none: {plugin_lines([], str(folder))!r}")


def _play_lines(lines: list[str], folder: Path) -> None:
    lines.append("\n# What is said of lines\n")
    right = hashlib.sha256((folder / "wheels" / _WHEEL).read_bytes()).hexdigest()
    for line in (*_LINES, None):
        (folder / lock.FILE).unlink(missing_ok=True)
        if line is not None:
            (folder / lock.FILE).write_text(line.replace("RIGHT", right))
        version, problems = read_locked_version(str(folder)), check_lock(str(folder))
        facts = [f"names {version}"] if version else []
        facts += [f"{problem}{' (accepted)' if problem.accepted else ''}" for problem in problems]
        lines.append(f"{line!r}: {'; '.join(facts).replace('requirements.txt:1:', ':1') or 'is fine'}")


def _play_changes(lines: list[str], folder: Path) -> None:
    lines.append("\n# What changed\n")
    (folder / "CHANGELOG.md").write_text(_CHANGES)
    with patch.object(lock, "_CHANGELOG", str(folder / "CHANGELOG.md")):
        for version in ("0.0.1", "0.1.0", "0.2.0", "0.3.0", "0.4.0", "none", ""):
            (folder / lock.FILE).write_text(
                f"x\nsegjudge @ git+x  # scores as of {version}\n" if version else "segjudge @ git+x\n"
            )
            beginning = f"requirements.txt: has scores as of {version}; "
            changes = [f"{problem}".replace(beginning, "… ") for problem in list_score_changes(str(folder))]
            lines.append(f"since {version or 'nothing'}: {' | '.join(changes)}".replace(_RERUN, " …"))
    lines.append(f"… stands for {beginning!r} and {_RERUN!r}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        FILE.write_text(write_locks(Path(scratch)), encoding="utf-8")
