"""The compilation of the kernel: for this machine by its C compiler, for EvalAI's worker by ziglang.

The standard library alone is imported: `./run.sh` compiles before any environment exists.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass

SOURCES: str | os.PathLike[str] = os.path.dirname(os.path.abspath(__file__))
#: The room of the scorers that loads the library, beside its `library.py`.
PLACE = "masks"
#: Flags that give the same library on every machine of a kind; nothing is tuned to the compiling machine.
_FLAGS = ("-std=c99", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
COMPILERS = ["cc", "gcc", "clang"]
#: The system of EvalAI's worker, and a target for any Linux of the last ten years.
_MACHINES = ("x86_64", "aarch64")
WORKER_SYSTEM, _GLIBC = "linux-x86_64", 17
_WORKER_TARGET = f"x86_64-linux-gnu.2.{_GLIBC}"
ZIG = "ziglang==0.13.0"
#: The systems of released wheels: the wheel's platform -> the library's name for the system, and zig's target.
RELEASED = (
    {f"manylinux2014_{machine}": (f"linux-{machine}", f"{machine}-linux-gnu.2.{_GLIBC}") for machine in _MACHINES}
    | {f"musllinux_1_2_{machine}": (f"linux-{machine}", f"{machine}-linux-musl") for machine in _MACHINES}
    | {
        "macosx_11_0_arm64": ("darwin-arm64", "aarch64-macos.11.0"),
        "macosx_10_13_x86_64": ("darwin-x86_64", "x86_64-macos.10.13"),
        "win_amd64": ("win32", "x86_64-windows-gnu"),
    }
)
_CHECKSUM = ".sha256"
#: The seconds after which a compiler counts as hung.
_PATIENCE = 600


class CompileError(Exception):
    """Raised if the kernel cannot be compiled; the text says why."""


class NoCompilerError(CompileError):
    """Raised if this machine has no C compiler."""


@dataclass(frozen=True)
class Library:
    """A compiled kernel and its checksum, as files of a folder."""

    folder: pathlib.Path
    system: str

    @property
    def path(self) -> pathlib.Path:
        return self.folder / f"segjudge_kernel.{self.system}.so"

    @property
    def checksum(self) -> pathlib.Path:
        """Return the file with the library's SHA-256, that of its sources, and the library's CRC."""
        return pathlib.Path(f"{self.path}{_CHECKSUM}")

    def is_current(self, command: list[str]) -> bool:
        """Return whether the library is intact and compiled by this command from current sources."""
        try:
            return self.checksum.read_text(encoding="ascii").split() == _checksums(self.path, command)
        except (OSError, ValueError):
            return False

    def compile(self, command: list[str], **variables: str) -> None:
        """Compile the library and install it atomically."""
        partial = pathlib.Path(f"{self.path}.{os.getpid()}.partial")
        sources = [os.path.join(SOURCES, name) for name in _list_sources(".c")]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            flags = [flag for flag in _FLAGS if flag != "-fPIC" or self.system != "win32"]
            _run([*command, *flags, *sources, "-o", str(partial)], **variables)
            self.checksum.write_text("\n".join([*_checksums(partial, command), ""]), encoding="ascii")
            partial.replace(self.path)
        except OSError as error:
            raise CompileError(f"{self.folder}: {error.strerror}") from None
        finally:
            with suppress(OSError):
                partial.unlink()


def _run(command: list[str], **variables: str) -> None:
    """Run a compiler or pip; raises `CompileError` with the end of its output."""
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False, env={**os.environ, **variables}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"{command[0]}: {error}") from None
    if process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines()
        raise CompileError(f"{command[0]} failed: {lines[-1] if lines else process.returncode}")


def run_pip(folder: pathlib.Path, arguments: list[str]) -> None:
    """Run pip, which creates a folder of the cache; the last argument names it."""
    partial = pathlib.Path(f"{folder}.{os.getpid()}.partial")
    try:
        _run([sys.executable, "-m", "pip", *arguments, str(partial)])
        partial.replace(folder)
    except OSError as error:
        if not folder.is_dir():  # otherwise, another process was faster
            raise CompileError(f"{folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _checksums(library: str | os.PathLike[str], command: list[str]) -> list[str]:
    """Return the lines of the file beside a library that this command compiled."""
    with open(library, "rb") as file:
        data = file.read()
    return [hashlib.sha256(data).hexdigest(), _sources_digest(command), f"{zlib.crc32(data):08x}"]


def _sources_digest(command: list[str]) -> str:
    """Return a digest of the sources and of the compile command."""
    digest = hashlib.sha256(repr([command[1:], _FLAGS, ZIG]).encode())
    for name in _list_sources(".c", ".h"):
        with open(os.path.join(SOURCES, name), "rb") as file:
            digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


def _list_sources(*endings: str) -> list[str]:
    return sorted(name for name in os.listdir(SOURCES) if name.endswith(endings))


def this_system() -> str:
    """Return the name of this kind of machine in the library's file name."""
    return f"{os.uname().sysname.lower()}-{os.uname().machine}" if hasattr(os, "uname") else sys.platform


def compile_local(scorers: str | os.PathLike[str]) -> bool:
    """Compile for this machine into the folder of the scorers, unless that is done; return whether it was done now.

    If that fails, raises `CompileError` and removes a library of earlier sources, so that numpy is used.
    """
    if not hasattr(os, "uname"):
        raise NoCompilerError("it is compiled on Linux and macOS")
    library = Library(pathlib.Path(scorers, PLACE), this_system())
    if library.is_current(COMPILERS[:1]):  # whichever of them compiled it
        return False
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        _remove_outdated(library)
        raise NoCompilerError("no C compiler was found")
    try:
        library.compile([compiler])
    except CompileError:
        _remove_outdated(library)
        raise
    return True


def compile_released(scorers: str | os.PathLike[str], platform: str) -> None:
    """Compile for a row of `RELEASED` into the folder of the scorers by ziglang, which must be installed."""
    system, target = RELEASED[platform]
    Library(pathlib.Path(scorers, PLACE), system).compile(_zig_command(target))


def _remove_outdated(library: Library) -> None:
    """Remove a library of other sources, which the scorers would refuse."""
    with suppress(OSError):
        library.path.unlink()
        library.checksum.unlink()


def _worker_library() -> Library:
    """Return the path of the worker's library in the user's cache."""
    return Library(cache_folder() / f"kernel-{_sources_digest(_zig_command())[:16]}", WORKER_SYSTEM)


def find_for_worker() -> Library | None:
    """Return a current library for the worker, without a download; None if there is none.

    It is the one that ziglang compiled, else that of this installation, else a new one if ziglang is installed.
    """
    library = _worker_library()
    if library.is_current(_zig_command()):
        return library
    installed = Library(pathlib.Path(SOURCES).parent / "evaluation_script" / PLACE, WORKER_SYSTEM)
    if installed.is_current(COMPILERS[:1]) and _suits_worker(installed.path.read_bytes()):
        return installed
    if importlib.util.find_spec("ziglang") or (_zig_packages() / "ziglang").is_dir():
        with suppress(CompileError):
            return compile_for_worker()
    return None


def _suits_worker(library: bytes) -> bool:
    """Return whether a library needs no newer glibc than the worker's."""
    needed = (name.partition(b"\0")[0] for name in library.split(b"GLIBC_2.")[1:])
    return all(int(version.partition(b".")[0]) <= _GLIBC for version in needed)


def _zig_packages() -> pathlib.Path:
    return cache_folder() / ZIG.replace("==", "-")


def compile_for_worker() -> Library:
    """Compile the kernel for EvalAI's worker by ziglang, which is fetched (100 MB) if it is not installed."""
    library = _worker_library()
    if library.is_current(_zig_command()):
        return library
    packages = _zig_packages()
    if not (importlib.util.find_spec("ziglang") or (packages / "ziglang").is_dir()):
        run_pip(packages, ["install", "--quiet", "--no-deps", ZIG, "--target"])
    library.compile(_zig_command(), PYTHONPATH=str(packages), ZIG_GLOBAL_CACHE_DIR=str(cache_folder() / "zig"))
    return library


def _zig_command(target: str = _WORKER_TARGET) -> list[str]:
    # -s omits symbols, which contain paths of this machine.
    return [sys.executable, "-m", "ziglang", "cc", "-target", target, "-s", "-fno-sanitize=undefined"]


def cache_folder() -> pathlib.Path:
    """Return the cache folder of downloads and compiled files."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "segjudge"
