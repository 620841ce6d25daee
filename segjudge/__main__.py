"""`python -m segjudge` is the command line."""

from .system.bytecode import avoid_partial_bytecode

avoid_partial_bytecode()
from .system.interrupts import leave_at_once  # noqa: E402 - its bytecode may be written in part, too

leave_at_once()
from .cli import main  # noqa: E402 - a signal may come while it is imported

raise SystemExit(main())
