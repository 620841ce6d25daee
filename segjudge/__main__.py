"""`python -m segjudge` is the command line."""

from .system.bytecode import spare_full_disks
from .system.interrupts import leave_at_once

leave_at_once()
spare_full_disks()
from .cli import main  # noqa: E402 - a signal may come while it is imported

raise SystemExit(main())
