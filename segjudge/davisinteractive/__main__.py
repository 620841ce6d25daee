"""Run a program that imports `davisinteractive`, unchanged: `python -m segjudge.davisinteractive program.py …`."""

import os
import runpy
import sys

from . import install_alias


def main() -> None:
    """Run the program of the arguments as Python does, with `davisinteractive` standing for our package."""
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if not arguments[is_module:] or (arguments[0].startswith("-") and not is_module):
        raise SystemExit("usage: python -m segjudge.davisinteractive PROGRAM.py …, or -m MODULE …")
    install_alias()
    sys.argv[:] = arguments[is_module:]
    if is_module:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


main()
