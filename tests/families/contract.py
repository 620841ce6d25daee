"""The data that tests of all families need from each: the names of its module `tests/families/NAME/family.py`.

A central test reads them by `merge_rows`, `examples` and `value_of`, and names no family. `tests/families/test_contract.py`
says which family lacks what. The first five names are required.

| name | what it is |
| --- | --- |
| `PUBLISHED` | protocol → function that writes its truth into a folder as the benchmark publishes it, and returns its path |
| `UPLOADS` | protocol → function that makes an upload as good as that truth, and the metrics that it scores |
| `UPLOAD_OF_OTHERS` | the protocol whose upload protocols without a row there take; "" takes a sample of the demo |
| `REFUSALS` | protocol of `UPLOADS` → how the sentence on a file of no known form goes on |
| `EXAMPLES` | a subject of `SUBJECTS` → the protocols that stand for the family there |
| `FURTHER_UPLOADS` | protocol → function that makes an upload, where slips are tried that no row of `UPLOADS` can have |
| `SLIPS` | a slip's title → a protocol, the function that changes its upload, and words of the warning |
| `JSON_TRUTHS` | protocol → the JSON of its published truth that tests damage |
| `BROKEN` | protocol → function that damages its published truth, and words of what a host reads |
| `UNFIT` | protocol → other benchmarks whose truths it refuses, and what the sentence says that they hold |
| `BOARD_LABELS` | protocol → the metrics that a new challenge puts on its leaderboard |
| `SAVED_MASKS` | protocol → masks in memory whose saved scores tests damage, and their categories |
| `DAMAGED_FACTS` | protocol of `SAVED_MASKS` → facts of its saved scores that it cannot have written |
| `OTHER_UNITS` | protocol → what its demo's truth has beside the first sequence or data set |
| `SAMPLE_SCORES` | every protocol → the first metric of two samples of its demo |
| `LOSSES` | protocol → the metric whose loss its units and categories sum to, in made data |
| `SHARED_LOSSES` | protocol → a truth and a submission of the shared data, and that metric |
| `write_results` | function that writes a truth and results with mistakes for a protocol into a folder, or returns nothing for those of the videos of `tests/scoring/shares.py` |
| `RESULTS_FROM_TRUTH` | whether uploads are read off the truth, so that results with mistakes need a truth of their own |
| `spoil` | function that changes the files of `tests/scoring/mistakes.py` further, by protocol, truth and results |
| `spoil_pages` | function that changes the results of pages further, by their path |
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS, folder_of

HERE = Path(__file__).parent
#: The names that every family's module has; a family leaves out other names that do not apply to it.
REQUIRED = ("PUBLISHED", "UPLOADS", "UPLOAD_OF_OTHERS", "REFUSALS", "EXAMPLES")
#: The purposes for which examples are tried. A family lists the protocols whose code differs; the first one tries every
#: form of its reports.
SUBJECTS = {
    "pages": "pages, terminals and new challenges show what was noted (`python -m tests.pages FAMILY`)",
    "pages shown whole": "of these all is quick to show",
    "pages of reports": "of these the report alone is tried in the quick tests",
    "pages of challenges": "of these the new challenge alone is tried in the quick tests",
    "sharing": "parts, processes and merging give the same bits, and every promise of the conformance kit holds",
    "frames": "frames of labels are counted alone, in any order, by any workers",
    "promises": "every promise holds, though files are read as of no other protocol",
    "mounts": "grand-challenge's program scores it in the quick tests",
    "JSON mounts": "grand-challenge's program takes its JSON plain, gzipped or in an archive",
    "any names": "its videos may have any names, in any Unicode form",
    "folders": "one mistake in all files of a folder is one line",
    "lists": "a list beside the truth names its videos",
    "surplus": "a file that nothing reads is named",
    "samples": "a sample of its published truth is as good as its masks are near",
    "rankings": "its scores are ranked",
    "records": "a thousand bad records are one sentence",
    "good results": "results without a slip are not suspected, beside those of `UPLOADS`",
    "painted": "its pages have pictures",
    "painted questions": "of these the units ask for something in words",
    "painted beside": "two methods are walked beside each other",
    "first screens": "the comparison of good and poor samples of its demo begins as reports do",
    "no label maps": "in memory its masks have a form of their own, and maps of labels are a wrong call",
    "machines": "every machine and Python gives the same bits, in the quick tests",
    "subsets": "a subset that its truth does not have is refused",
    "chosen units": "its units are chosen by the names of the tables",
    "wrong roots": "its name is that of a layout, and `pack` tells where the right root is shown",
    "packed first": "a phase takes its truth packed alone",
    "hosts": "`host` makes a challenge of its published truth",
}


def module_of(folder: str) -> ModuleType:
    """Return the module with a family's data for tests, by its folder's name."""
    path = HERE / folder / "family.py"
    assert path.exists(), f"write tests/families/{folder}/family.py: tests/families/contract.py says what is in it"
    return import_module(f"tests.families.{folder}.family")


def golden_path(folder: str, name: str) -> Path:
    """Return the path of a family's noted text or fixed numbers."""
    return HERE / folder / "golden" / name


def value_of(protocol: str, name: str, default: Any = None) -> Any:
    """Return the value that a protocol's family defines under a name."""
    return getattr(module_of(folder_of(PROTOCOLS[protocol].family)), name, default)


def merge_rows(name: str) -> dict[str, Any]:
    """Return the values of all families under a name, in the order of the families."""
    return {key: row for folder in FOLDERS for key, row in getattr(module_of(folder), name, {}).items()}


def examples_of(folder: str, subject: str) -> tuple[str, ...]:
    """Return the protocols that represent a family in tests of a subject."""
    assert subject in SUBJECTS, f"add {subject!r} to SUBJECTS of tests/families/contract.py, and say what is tried"
    protocols: tuple[str, ...] = module_of(folder).EXAMPLES.get(subject, ())
    return protocols


def examples(subject: str) -> list[str]:
    """Return the protocols that represent all families in tests of a subject."""
    return [protocol for folder in FOLDERS for protocol in examples_of(folder, subject)]
