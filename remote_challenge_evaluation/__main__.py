"""`python -m segjudge.remote_challenge_evaluation`: the remote worker, until it is asked to stop.

Exit codes: 0 stopped, 2 settings, 3 the challenge cannot be scored here, 4 the
server no longer accepts the token.
"""

from __future__ import annotations

import argparse
import os
import sys

from segjudge.commands.worker import worker_options
from segjudge.evalai.http_exchange import StoppedError

from .services import TokenRefusedError
from .settings import SettingsError, check_no_forgotten_journal, read_settings
from .startup_check import StartError
from .worker_group import run_workers
from .worker_loop import WorkerLoop

STOPPED, WRONG_SETTINGS, NOT_STARTED, TOKEN_REFUSED = 0, 2, 3, 4


def main(arguments: list[str] | None = None) -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(prog="remote_challenge_evaluation", description=__doc__)
    worker_options(parser)
    args = parser.parse_args(arguments)
    options = {"BUNDLE": args.bundle, "EVALUATE": args.evaluate, "SCORER_PYTHON": args.python}
    os.environ.update({name: value for name, value in options.items() if value})  # for --jobs too
    try:
        settings = read_settings()
        check_no_forgotten_journal(settings)
        if args.jobs > 1 and not args.check:
            arguments = ["--once"] if args.once else []
            return run_workers(
                args.jobs, arguments, (WRONG_SETTINGS, NOT_STARTED, TOKEN_REFUSED), settings.grace_seconds
            )
        loop = WorkerLoop(settings, once=args.once)
        if args.check:
            sys.stdout.write("\n".join(loop.check()) + "\n")
        else:
            loop.run()
    except SettingsError as error:
        return _end(str(error), WRONG_SETTINGS)
    except StartError as error:
        return _end(str(error), NOT_STARTED)
    except TokenRefusedError as error:
        remedy = "Renew AUTH_TOKEN; results so far are kept and will be sent."
        return _end(f"EvalAI no longer accepts the token: {error}\n{remedy}", TOKEN_REFUSED)
    except StoppedError:
        return STOPPED
    return STOPPED


def _end(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
