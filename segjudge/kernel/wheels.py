"""The build commands of setuptools that put the compiled kernel into a wheel."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

#: The variable with the platform of a released wheel, a row of `compiling.RELEASED`; `packaging/build.py` sets it.
_PLATFORM = "SEGJUDGE_WHEEL_PLATFORM"


class BuildWithKernel(build_py):
    """A build command that compiles the kernel into the copied package if there is a compiler."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # the folder may hold an earlier build's
            for library in Path(self.build_lib).rglob("segjudge_kernel.*"):
                library.unlink()
        if os.environ.get("SEGJUDGE_KERNEL") == "off":
            sys.stderr.write("without the kernel: SEGJUDGE_KERNEL is off\n")
        elif not self.editable_mode:
            sys.path.append(str(Path(__file__).resolve().parents[2]))  # setuptools reads only this file
            from segjudge.kernel.compiling import CompileError, compile_local, compile_released

            scorers, platform = Path(self.build_lib, "segjudge", "evaluation_script"), os.environ.get(_PLATFORM)
            if platform:  # a release without a kernel would be a fault
                compile_released(scorers, platform)
                return
            try:
                compile_local(scorers)
            except CompileError as error:
                sys.stderr.write(f"without the kernel: {error}\n")


class WheelWithKernel(bdist_wheel):
    """A wheel for Python 3 on this kind of machine, or on any machine without the kernel."""

    def get_tag(self) -> tuple[str, str, str]:
        if not any(Path(str(self.bdist_dir)).rglob("segjudge_kernel.*.so")):
            return "py3", "none", "any"
        self.root_is_pure = False
        platform = os.environ.get(_PLATFORM) or super().get_tag()[2]
        return "py3", "none", platform
