"""The machine: child processes and their limits, interrupts, files here and at addresses, errors of commands.

The contract is these modules, imported by name, because a command should load only what it needs. `processes` starts
and ends children, `bounds` limits their resources, `sandbox` isolates them, `interrupts` ends a command. `files` writes
whole files, `addresses` reads remote ones, `network` limits exchanges and schedules retries, `download` fetches a file
by them. `errors` are the toolkit's errors, `extras` the optional packages, `arguments` checks arguments of public
functions, `options` parses those of command lines, `python310` has names that Python 3.10 lacks, `plugins` finds
families of other distributions, and `streams` opens closed standard streams.
"""

import os

__all__ = [
    "IMPORT_ROOT",
    "addresses",
    "arguments",
    "bounds",
    "download",
    "errors",
    "extras",
    "files",
    "interrupts",
    "network",
    "options",
    "plugins",
    "processes",
    "python310",
    "sandbox",
    "streams",
]

#: The folder that contains this package; in a checkout, its root.
IMPORT_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
