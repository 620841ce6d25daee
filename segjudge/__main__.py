"""`python -m segjudge` is the command line, as is the script `segjudge`; both call `main`."""

import gc
import os
import signal


def main() -> int:
    """Prepare the process, run the command that was typed, and return the exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `leave_at_once`, end without a traceback
    # Modules are no garbage: Python would search them 50 times, which takes a twentieth of a start.
    gc.set_threshold(100_000)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts in half the time with one thread
    from .system.interrupts import leave_at_once

    leave_at_once()
    from .cli import main as run_command  # a signal may come while it is imported

    return run_command()


if __name__ == "__main__":
    raise SystemExit(main())
