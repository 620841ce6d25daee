"""The sequences of DAVIS 2017 as they were published: subsets, frames, objects, sizes."""

import csv
from importlib import resources

from .dataset_protocol import SequenceRecord

Sets = dict[str, list[str]]
Records = dict[str, SequenceRecord]

#: Years in which sequences were published.
YEARS = [2016, 2017]


def _read() -> tuple[Sets, Records]:
    table = resources.files(__package__) / "davis_sequences.csv"
    with table.open(encoding="utf-8") as file:
        records = {row["sequence"]: _record(row) for row in csv.DictReader(file)}
    sets: Sets = {}
    for name, record in records.items():
        sets.setdefault(record["set"], []).append(name)
    sets["trainval"] = sets["train"] + sets["val"]
    return sets, records


def _record(row: dict[str, str]) -> SequenceRecord:
    return {
        "name": row["sequence"],
        "attributes": row["attributes"].split(),
        "eval_t": row["eval_t"] == "True",
        "image_size": [int(row["width"]), int(row["height"])],
        "num_frames": int(row["frames"]),
        "num_objects": int(row["objects"]),
        "num_scribbles": int(row["scribbles"]),
        "set": row["set"],
        "year": int(row["year"]),
    }


#: Subset → sequences, and sequence → record.
SETS, RECORDS = _read()
