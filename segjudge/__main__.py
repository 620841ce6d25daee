"""`python -m segjudge` is the command line."""

import os
import sys
import traceback

from .interrupts import leave_at_once

leave_at_once()
try:
    from .cli import main
except (SyntaxError, TypeError, NameError, ValueError) as error:
    # The file that hosts edit is read on the way in; what is wrong there is no defect of ours.
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    if os.path.basename(str(place[0])) != "phases.py" and "phases.py" not in traceback.format_exc():
        raise
    sys.exit(f"{os.path.relpath(str(place[0]))}, line {place[1]}: {error}. Fix phases.py and try again.")

raise SystemExit(main())
