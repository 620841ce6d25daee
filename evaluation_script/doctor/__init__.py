"""The doctor: it names the likely slip behind a low score, such as mirrored masks; it changes no score.

It runs once after scoring, on a few units. A family gives an `Examination`, which samples the truth and prediction of a
unit; `table.SLIPS` lists the slips, `diagnosis.diagnose` tries them.
"""

from .fits import fit_boxes, fit_classes, fit_flags, fit_greys, fit_masks, fit_points, fit_segments
from .samples import (
    Examination,
    PictureBoxes,
    Points,
    Sample,
    choose_frames,
    choose_sampled,
    choose_units,
    find_step,
    paint,
    thin_by,
)

__all__ = [
    "Examination", "PictureBoxes", "Points", "Sample", "choose_frames", "choose_sampled", "choose_units", "diagnosis",
    "find_step", "fit_boxes", "fit_classes", "fit_flags", "fit_greys", "fit_masks", "fit_points", "fit_segments",
    "paint", "thin_by",
]  # fmt: skip
