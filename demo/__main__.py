"""`python -m demo`: write pictures, annotation files and results into the checkout, reproducibly."""

from __future__ import annotations

from pathlib import Path

from . import images, panoptic, sequences


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    for path in (*sequences.write(root), *images.write(root), *panoptic.write(root)):
        print(f"{path.relative_to(root)} ({path.stat().st_size / 1e3:,.0f} kB)")


if __name__ == "__main__":
    main()
