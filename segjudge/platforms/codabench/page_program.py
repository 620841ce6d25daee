"""Write the page of a submission on Codabench, from a title and a stored result (JSON on stdin) to HTML on stdout.

It runs as its own program beside the scoring program, whose process holds the scorers under another name.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Write the page."""
    program = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(os.path.join(program, "packages"))  # after the image's packages
    from segjudge.scoring.report import make_stored_report

    request = json.load(sys.stdin)
    sys.stdout.buffer.write(make_stored_report(request["result"], request["title"]).encode("utf-8"))


if __name__ == "__main__":
    main()
