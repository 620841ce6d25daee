"""The parts of pages and tables of scores, for every family and command.

`page` has the sections that every family can show, and joins sections into one HTML file; `browser` shows it. `boards`
has leaderboards as a page, CSV and badges. `player` is the section that steps through frames, `colours` has the colours
of pictures. `tables` writes numbers for terminals, CSV and pandas; `sentences` describes a loss on pages and terminals;
`stored` reads the results of `evaluate()` and `score --json`. Templates and scripts are in the folder `pages`. Nothing
here depends on a family: plug-ins build their sections from these parts. `labels` places names beside the lines of
charts.
"""

__all__ = ["boards", "browser", "colours", "labels", "page", "player", "sentences", "stored", "tables"]
