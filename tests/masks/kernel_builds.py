"""The compilation of the kernel, here and for EvalAI's worker, with a compiler that records its arguments, as one text."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from segjudge.kernel import compiling
from tests.calls import read_session, run_calls

FILE = Path(__file__).parents[1] / "golden/kernel_builds.txt"
#: Writes what it is called with into its log, and a library; or fails.
_PROGRAM = r"""#!/bin/sh
echo "$(basename "$0") $* PYTHONPATH=$PYTHONPATH ZIG=$ZIG_GLOBAL_CACHE_DIR" | sed 's/ -o .*\.partial/ -o OUT/' >> log
[ -f fails ] && { cat fails >&2; exit 3; }
for word; do last=$word; done
case "$*" in *pip*) mkdir -p "$last/ziglang" ;; *) for word; do [ "$before" = -o ] && echo library > "$word"; before=$word; done ;; esac
"""


def write_builds() -> str:
    """Return the output of the session, which runs in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder):
        for name in ("bin/cc", "bin/python"):
            _write(name, _PROGRAM)
            Path(name).chmod(0o755)
        _write("sources/one.c", "int one;")
        _write("sources/two.c", "int two;")
        _write("sources/a.h", "")
        space = {
            "compiling": compiling, "os": os, "Path": Path, "shutil": shutil, "compile_local": _compile_local, "log": _read_log,
            "worker": _for_worker, "with_home": _with_home, "make_wheel": _make_wheel,
        }  # fmt: skip
        path = f"{folder}/bin:{os.environ['PATH']}"
        with (
            patch.object(compiling, "SOURCES", Path(folder, "sources")),
            patch.dict(os.environ, {"PATH": path, "XDG_CACHE_HOME": f"{folder}/cache", "PYTHONPATH": ""}),
            patch.object(
                compiling.shutil, "which", lambda name: f"{folder}/bin/{name}" if Path("bin", name).exists() else None
            ),
        ):
            text = run_calls(read_session(FILE), space, folder)
    text = text.replace(compiling.this_system(), "SYSTEM").replace(compiling.WORKER_SYSTEM, "SYSTEM")
    return re.sub(r"kernel-[0-9a-f]{16}", "kernel-DIGEST", re.sub(r"\.\d+\.partial", ".PID.partial", text))


def _write(name: str, text: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)


def _compile_local(place: str = "out") -> str:
    return _refuse(lambda: compiling.compile_local(Path(place)))


def _refuse(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except compiling.CompileError as error:
        return f"CompileError: {error}"


def _read_log() -> str:
    """Return the commands that ran since the last read."""
    path = Path("log")
    text = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    return text or "nothing"


def _for_worker(call: Callable[[], object]) -> str:
    """Call with a Python that provides only the compiler."""
    with patch.object(
        compiling, "sys", SimpleNamespace(executable=os.path.abspath("bin/python"), platform=sys.platform)
    ):
        return _refuse(call)


def _with_home(call: Callable[[], object]) -> str:
    with patch.dict(os.environ, {"XDG_CACHE_HOME": "", "HOME": "/home/somebody"}):
        return _refuse(call)


def _make_wheel(*, editable: bool = False, error: str = "", library: str = "") -> str:
    """Build with a setuptools that only records its actions; return these, the output, and the wheel's tag."""
    output, printed = list[str](), io.StringIO()

    class Builds:
        build_lib, editable_mode, bdist_dir = "lib", editable, f"wheel-{library}"
        root_is_pure = True

        def run(self) -> None:
            output.append("copies the package")

        def get_tag(self) -> tuple[str, str, str]:
            return "cp311", "cp311", "this_machine"

    def compile_local(folder: Path) -> None:
        output.append(f"compiles into {folder}")
        if error:
            raise compiling.CompileError(error)

    _write(f"{Builds.bdist_dir}/{library or 'none'}", "")
    modules = {
        "setuptools": SimpleNamespace(),
        "setuptools.command": SimpleNamespace(),
        "setuptools.command.bdist_wheel": SimpleNamespace(bdist_wheel=Builds),
        "setuptools.command.build_py": SimpleNamespace(build_py=Builds),
    }
    path = Path(compiling.__file__).with_name("wheels.py")
    specification = importlib.util.spec_from_file_location("wheels", path)
    assert specification is not None
    assert specification.loader is not None
    wheels = importlib.util.module_from_spec(specification)
    with (
        patch.dict(sys.modules, modules),  # type: ignore[arg-type]
        patch.object(sys, "path", [*sys.path]),
        patch.object(compiling, "compile_local", compile_local),
        contextlib.redirect_stderr(printed),
    ):
        specification.loader.exec_module(wheels)
        wheels.BuildWithKernel().run()
        wheel = wheels.WheelWithKernel()
        tag = wheel.get_tag()
    return f"{', '.join(output)}\n{printed.getvalue()}{tag}, pure: {wheel.root_is_pure}"


if __name__ == "__main__":
    FILE.write_text(write_builds())
