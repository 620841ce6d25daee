"""The machine: child processes and their limits, interrupts, files here and at addresses, errors of commands."""

import os

#: The folder from which this package is imported: of a checkout its root.
IMPORT_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
