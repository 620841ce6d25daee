"""`segjudge score` for several submissions: a table with a row for each, and one JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from segjudge.system.files import open_output

from .shared import DONE, THEIRS, ProgressBar, choose_stream, look, mention, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segjudge.evaluation_script.families.base.family import Values
    from segjudge.scoring.scores import ScoreRequest


def score_several(
    request: ScoreRequest, paths: Sequence[str], json_path: str | None, *, width: int, all_metrics: bool
) -> int:
    """Score submissions one after the other, print their table, and return 1 if one of them could not be scored."""
    from segjudge.evaluation_script.scoring.answer import limit_warnings
    from segjudge.report.tables import format_submissions
    from segjudge.scoring.score_files import make_scores_document
    from segjudge.scoring.several import open_truth_once, score_each

    rows: list[tuple[str, dict[str, Values] | str]] = []
    documents: list[dict[str, Any]] = []
    warnings: list[str] = []
    with ProgressBar() as bar:
        prepared = open_truth_once(request, bar)
        for name, scores, fault in score_each(prepared, request, paths, bar):
            rows.append((name, scores.metrics if scores else fault))
            warnings += [f"{name}: {line}" for line in limit_warnings(scores.warnings if scores else [])]
            if json_path:
                documents.append({"name": name, **(make_scores_document(scores) if scores else {"error": fault})})
    for note in limit_warnings(prepared.notes):
        say(f"truth: {note}")
    text = json.dumps({"submissions": documents}, indent=1, allow_nan=False) if json_path else ""
    if json_path and json_path != "-":
        with open_output(json_path) as file:
            file.write(text + "\n")
    stream = choose_stream(json_path)
    shown_on = look(stream, width)
    for split, scorer in prepared.scorers.items():
        protocol = scorer.rules.protocol
        mention(f"Protocol {protocol.name}: {protocol.about}")
        of_split = [(name, values if isinstance(values, str) else values[split]) for name, values in rows]
        table = format_submissions(split, list(protocol.metrics), of_split, shown_on, all_metrics=all_metrics)
        print(f"{table}\n", file=stream)
    if json_path == "-":
        print(text)
    for line in warnings:
        say(f"warning: {line}")
    faulty = sum(isinstance(values, str) for _, values in rows)
    if faulty:
        say(f"{faulty} of {len(rows)} submissions could not be scored", "bad")
    return THEIRS if faulty else DONE
