"""`python -m segjudge.remote_challenge_evaluation`: the remote worker, until it is asked to stop.

Exit codes: 0 stopped, 2 settings, 3 the challenge cannot be scored here, 4 the
server no longer accepts the token.
"""

from __future__ import annotations

import argparse
import os
import sys

from segjudge.platforms.evalai.remote_worker import add_worker_options, render_file
from segjudge.system.network import StoppedError
from segjudge.system.streams import open_closed_streams

from .services import TokenRefusedError
from .settings import SettingsError, StartError, WorkerSettings
from .worker_loop import WorkerLoop, run_workers

STOPPED = 0
_CODES = {SettingsError: 2, StartError: 3, TokenRefusedError: 4}


def main(arguments: list[str] | None = None) -> int:
    open_closed_streams()
    parser = argparse.ArgumentParser(prog="remote_challenge_evaluation", description=__doc__)
    add_worker_options(lambda title: parser.add_argument_group(title).add_argument)
    args = parser.parse_args(arguments)
    if args.print:
        sys.stdout.write(render_file(args.print))
        return STOPPED
    options = {"BUNDLE": args.bundle, "EVALUATE": args.evaluate, "SCORER_PYTHON": args.python}
    os.environ.update({name: value for name, value in options.items() if value})  # for --jobs too
    try:
        settings = WorkerSettings.read()
        if args.jobs > 1 and not args.check:
            arguments = ["--once"] if args.once else []
            return run_workers(args.jobs, arguments, tuple(_CODES.values()), settings.grace_seconds)
        loop = WorkerLoop(settings, once=args.once)
        if args.check:
            sys.stdout.write("\n".join(loop.check()) + "\n")
        else:
            loop.run()
    except (SettingsError, StartError, TokenRefusedError) as error:
        text = str(error)
        if isinstance(error, TokenRefusedError):
            remedy = "Renew AUTH_TOKEN; finished results are kept and will be sent."
            text = f"EvalAI no longer accepts the token: {text}\n{remedy}"
        sys.stderr.write(f"{text}\n")
        return _CODES[type(error)]
    except StoppedError:
        pass
    return STOPPED


if __name__ == "__main__":
    sys.exit(main())
