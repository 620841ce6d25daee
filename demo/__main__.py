"""`python -m demo`: write pictures, annotation files and results into the checkout, the same bytes every time."""

from __future__ import annotations

from pathlib import Path

from . import images, sequences


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    for path in (*sequences.write(root), *images.write(root)):
        print(f"{path.relative_to(root)} ({path.stat().st_size / 1e3:,.0f} kB)")


if __name__ == "__main__":
    main()
