"""Scribbles and masks as pictures."""

from segjudge.interactive.utils.visualization import draw_scribble, overlay_mask, plot_scribble

__all__ = ["draw_scribble", "overlay_mask", "plot_scribble"]
