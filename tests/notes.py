"""Every text that tests compare with what is shown, printed, answered and written now.

    python -m tests.notes [WORD…]

writes anew those whose modules' names hold a word, or all of them: for changes that are meant to be seen; `git diff` shows
what moved.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def list_writers() -> list[str]:
    """Return the modules of tests that write such a text when they are run."""
    files = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    paths = [path.relative_to(ROOT).with_suffix("") for path in files if "FILE.write_text(" in path.read_text("utf-8")]
    return [".".join(path.parts).removesuffix(".__main__") for path in paths]


def main(words: list[str]) -> int:
    writers = [name for name in list_writers() if not words or any(word in name for word in words)]
    for name in writers:
        print(name, flush=True)
        subprocess.run([sys.executable, "-m", name], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
    return 0 if writers else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
