"""`python -m segjudge` is the command line."""

from .system.bytecode import avoid_partial_bytecode
from .system.interrupts import leave_at_once

leave_at_once()
avoid_partial_bytecode()
from .cli import main  # noqa: E402 - a signal may come while it is imported

raise SystemExit(main())
