"""The machine: child processes and their limits, interrupts, files here and at addresses, errors of commands.

The contract is the modules, each imported by its name, since a command pays for what it loads: `processes` starts
children and ends them with all that they started, `bounds` holds them to what they may use together, `sandbox` hides
the machine from them, `interrupts` ends a command, `files` writes whole files, `addresses` reads what lies elsewhere,
`network` ends exchanges and says when to try again, `errors` are those of the toolkit itself, `extras` knows
optional packages, `arguments` checks what public functions are given, `options` reads those of command lines,
`plugins` finds the families of other distributions, `streams` opens standard streams that are closed,
`bytecode` keeps Python from writing half of it.
"""

import os

__all__ = [
    "IMPORT_ROOT",
    "addresses",
    "arguments",
    "bounds",
    "bytecode",
    "errors",
    "extras",
    "files",
    "interrupts",
    "network",
    "options",
    "plugins",
    "processes",
    "sandbox",
    "streams",
]

#: The folder from which this package is imported: of a checkout its root.
IMPORT_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
