"""The packages that Codabench's image lacks: fetched by pip by name and hash, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

from segjudge.kernel.compiling import CompileError, cache_folder, run

LOCK = Path(__file__).with_name("wheels.txt")
PAGE_LOCK = Path(__file__).with_name("page-wheels.txt")
_TARGET = ["--python-version", "3.12", "--implementation", "cp", "--abi", "abi3", "--abi", "cp312"]
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")


class WheelError(Exception):
    """Raised when a wheel cannot be had; the text says why."""


def wheel_files(lock: Path = LOCK) -> dict[str, bytes]:
    """Return the files of the locked wheels by their paths; they are fetched the first time."""
    folder = cache_folder() / f"codabench-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not folder.is_dir():
        _fetch(folder, lock)
    files: dict[str, bytes] = {}
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            files.update({name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")})
    return files


def _fetch(folder: Path, lock: Path) -> None:
    partial = Path(f"{folder}.{os.getpid()}.partial")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", "-r", str(lock), "-d", str(partial), *_TARGET]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    try:
        run(command)
        partial.replace(folder)
    except CompileError as error:
        raise WheelError(str(error)) from None
    except OSError as error:
        if not folder.is_dir():  # somebody else was faster otherwise
            raise WheelError(f"{folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
