"""The parts of pages and tables of scores, for every family and command.

`page` has the sections that a page is made of, those that any family can show among them, and makes one HTML file of
them, which `browser` brings to its reader; `player` is the section in which one steps through frames; `colours` are
those of pictures; `tables` writes numbers for terminals, CSV and pandas; `stored` reads what `evaluate()` or
`score --json` left.  Templates and scripts are in the folder `pages`.  Nothing here knows a family: one that is written
elsewhere builds its sections of these.  `labels` places names beside the lines of charts.
"""

__all__ = ["browser", "colours", "labels", "page", "player", "stored", "tables"]
