"""Numbers: `arithmetic` has the sums, means and exponentials for scores, with the same bits on every machine."""

__all__ = ["arithmetic"]
