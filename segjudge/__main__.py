"""`python -m segjudge` is the command line, as is the script `segjudge`, which imports `main` from here."""

import _signal  # type: ignore[import-not-found] # built in, so that importing it takes no time
import gc

# Modules are no garbage: Python would search them 50 times, which takes a twentieth of a start.
gc.set_threshold(100_000)

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # until `leave_at_once`, end without a traceback
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
from .system.bytecode import avoid_partial_bytecode  # noqa: E402 - see above

avoid_partial_bytecode()
from .system.interrupts import leave_at_once  # noqa: E402 - its bytecode may be written in part, too

leave_at_once()
from .cli import main  # noqa: E402 - a signal may come while it is imported

if __name__ == "__main__":
    raise SystemExit(main())
