"""Installation of a script's requirements as on EvalAI's worker, once per content."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from segjudge.kernel.compiling import cache_folder
from segjudge.platforms.imports import find_imports
from segjudge.system import sandbox
from segjudge.system.bounds import TreeBounds, run_bounded
from segjudge.system.processes import clean_environment

from .folder import WorkerFolder, folder_has_our_modules
from .interpreter import PINNED_PYTHON, Interpreter
from .process import UnloadableError, disk_bounds

#: The versions that EvalAI's worker pins, which also apply to packages that a script installs during its import.
PINS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "bundle", "worker-3.9.txt")
REQUIREMENTS = "requirements.txt"
#: Packages that EvalAI's worker has, by the names under which scripts import them.
_PREINSTALLED = {
    "numpy": "numpy", "scipy": "scipy", "pandas": "pandas", "sklearn": "scikit-learn", "matplotlib": "matplotlib",
    "networkx": "networkx", "pycocotools": "pycocotools", "tqdm": "tqdm", "yaml": "PyYAML", "PIL": "pillow",
    "requests": "requests", "boto3": "boto3", "jsonschema": "jsonschema",
}  # fmt: skip
#: Seconds for an installation, and for an import that may install more.
_PATIENCE = 1800.0
_LOG_BYTES = 64 << 10
INDEX_UNREACHED = "the package index could not be reached"
_UNREACHED = re.compile(r"Retrying|NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError")
#: This machine's settings that pip gets: where packages are, and how to reach them.
_PIP_SETTINGS = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CERT",
    "PIP_PROXY", "PIP_DEFAULT_TIMEOUT", "PIP_TIMEOUT", "PIP_RETRIES",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
#: The worker has no compiler.
_NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}
_IMPORT = "import importlib, sys; sys.path.append(sys.argv[1]); importlib.import_module(sys.argv[2])"
_LACKING = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
_SITES = "import sysconfig; print(sysconfig.get_path('purelib'), sysconfig.get_path('platlib'), sep='\\n')"
#: Replaces pip once everything is installed: scripts that install at each import need nothing more.
_NO_PIP = r"""
import os, re, sys
from importlib.metadata import PackageNotFoundError, distribution

for before, word in zip(sys.argv[1:], sys.argv[2:]):
    name = re.match(r"[A-Za-z0-9][\w.-]*(?=$|[\[<>=!~; ])", word)
    if sys.argv[1] != "install" or before.startswith("-") or os.path.exists(word) or not name:
        continue
    try:
        distribution(name.group())
    except PackageNotFoundError:
        sys.exit(f"{word}: packages are installed here only while the script is imported; name it in requirements.txt")
print("installed already")
"""


@dataclass(frozen=True)
class _ScriptNeeds:
    #: The text of its requirements.
    requirements: bytes
    #: Packages of EvalAI's worker that it imports and the interpreter lacks.
    packages: tuple[str, ...]
    #: The digest of a script that calls pip while it is imported; empty for others.
    installs: str

    def __bool__(self) -> bool:
        return bool(self.requirements.strip() or self.packages or self.installs)


def install_requirements(
    python: Interpreter, folder: WorkerFolder, challenge: int, box: str | None, say: Callable[[str], object] = print
) -> Interpreter:
    """Return an interpreter with the script's requirements; raises `UnloadableError` on failure."""
    script = folder.script_folder(challenge)
    needs = None if folder_has_our_modules(script) else _needs(script, python)
    if not needs:
        return python
    pins = Path(PINS).read_bytes() if python.version == PINNED_PYTHON else b""
    content = repr((python.path, python.version, python.folders, needs)).encode() + pins
    home = cache_folder() / f"worker-{hashlib.sha256(content).hexdigest()[:16]}"
    own_python = replace(python, path=str(home / "bin/python"), folders=(str(home), *python.folders))
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{home}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may create the same environment meanwhile
        if not (home / "complete").exists():
            index = "over the network from this machine's package index"
            say(f"Installing the evaluation script's requirements once, {index} …")
            try:
                _Installation(python, own_python, box, [folder.root, str(home)]).install(needs, folder.root, challenge)
            except BaseException:
                shutil.rmtree(home, ignore_errors=True)
                raise
            (home / "complete").touch()
    return own_python


def _needs(script: str, python: Interpreter) -> _ScriptNeeds:
    requirements, digest, modules, installs = b"", hashlib.sha256(), set[str](), False
    for path in sorted(Path(script).rglob("*")):
        if path.name == REQUIREMENTS and path.parent == Path(script):
            requirements = path.read_bytes()
        if path.is_file() and "phase_data" not in path.relative_to(script).parts:
            data = path.read_bytes()
            digest.update(repr((str(path.relative_to(script)), len(data))).encode() + data)
            if path.suffix == ".py":
                with suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # it belongs to another Python
                    modules |= {imported.package for imported in find_imports(data)}
                installs = installs or bool(re.search(rb"\bpip\b", data))
    imported = [name for name in _PREINSTALLED if name in modules]
    lacking = _read_output([python.path, "-I", "-c", _LACKING, *imported]).split() if imported else []
    packages = tuple(_PREINSTALLED[name] for name in lacking)
    return _ScriptNeeds(requirements, packages, digest.hexdigest() if installs else "")


def _read_output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class _Installation:
    """The commands that install requirements: with network access, in the sandbox where there is one."""

    def __init__(self, base: Interpreter, python: Interpreter, box: str | None, writable: Sequence[str]) -> None:
        self._base, self._python, self._box, self._writable = base, python, box, writable
        constraints = PINS if base.version == PINNED_PYTHON else ""
        pip_settings = {name: os.environ[name] for name in _PIP_SETTINGS if name in os.environ}
        proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        pins = {"PIP_CONSTRAINT": constraints, "PIP_BUILD_CONSTRAINT": constraints} if constraints else {}
        values = {**pip_settings, **proxies, **pins, **_NO_COMPILER, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self._environment = clean_environment(**values, PATH=python.search_path)

    def install(self, needs: _ScriptNeeds, root: str, challenge: int) -> None:
        """Make the environment; raise `UnloadableError` with the reason if something cannot be installed."""
        home = os.path.dirname(os.path.dirname(self._python.path))
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(home)
        self._run([self._base.path, "-I", "-m", "venv", home], "its environment cannot be created")
        sites = _read_output([self._python.path, "-I", "-c", _SITES]).splitlines()
        inherited = _read_output([self._base.path, "-I", "-c", _SITES])
        Path(sites[0], "inherited.pth").write_text(inherited, encoding="utf-8")
        pip = [self._python.path, "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off"]
        if needs.packages:
            self._run([*pip, *needs.packages], "the worker's own packages cannot be installed")
        if needs.requirements.strip():
            path = os.path.join(home, REQUIREMENTS)
            Path(path).write_bytes(needs.requirements)
            self._run([*pip, "-r", path], f"{REQUIREMENTS} cannot be installed")
        if needs.installs:
            module = f"challenge_data.challenge_{challenge}"
            self._run([self._python.path, "-I", "-c", _IMPORT, root, module], "")
            Path(sites[0], "pip", "__main__.py").write_text(_NO_PIP, encoding="utf-8")
            for command in ("pip", "pip3"):
                Path(os.path.dirname(self._python.path), command).write_text(
                    f"#!{self._python.path}{_NO_PIP}", encoding="utf-8"
                )

    def _run(self, arguments: list[str], failure: str) -> None:
        """Run a command; without a sentence for failures it is an import, whose own error suffices."""
        if self._box is not None:
            arguments = sandbox.installer_command(self._box, arguments, [*self._python.folders, PINS], self._writable)
        tmpfs = sandbox.AGENT_TMPFS if self._box else ()
        bounds = TreeBounds(sandbox.MEMORY, sandbox.SCORER_PROCESSES, tmpfs, *disk_bounds(*self._writable))
        run = run_bounded(
            arguments, bounds, _PATIENCE, _LOG_BYTES,
            environment=self._environment, folder=self._writable[0], joins_streams=True,
        )  # fmt: skip
        text = run.output
        if run.excess:
            raise UnloadableError(f"{failure or 'it cannot be imported'}: {run.excess}", text)
        if run.code is None:
            raise UnloadableError(failure or "it takes too long to import", text)
        if run.code:
            lines = [line.strip() for line in text.splitlines() if line.strip()] or [run.code.sentence]
            reasons = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
            reason = reasons[0] if failure and reasons else lines[-1]
            if failure and _UNREACHED.search(text):
                reason = INDEX_UNREACHED
            raise UnloadableError(f"{failure}: {reason}" if failure else _import_error(text, reason), text)


def _import_error(log: str, last_line: str) -> str:
    """Return an import's error with the file and line of the script that raised it."""
    places = re.findall(r'File ".*?/challenge_data/challenge_\d+/(.+?)", line (\d+)', log)
    return f"{last_line} ({places[-1][0]}, line {places[-1][1]})" if places else last_line
