"""Sessions in this process."""

from __future__ import annotations

import json
import random
from typing import Any
from unittest import mock

import numpy as np

from segjudge.interactive import (
    DavisInteractiveSession,
    evaluation,
    reports,
)

from . import Tale, answer, play


def sessions_of_this_process(tale: Tale) -> None:
    def begin(name: str, **terms: Any) -> DavisInteractiveSession:
        tale.say(f"── {name} {terms}")
        options = {"davis_root": str(tale.root), "report_save_dir": tale.folder / name, "clock": tale.clock, **terms}
        return DavisInteractiveSession(**options)

    play(tale, begin("plain", max_nb_interactions=2))
    saved = (tale.folder / "plain").glob("*.csv")
    tale.lines += ["  " + line for path in saved for line in path.read_text().splitlines()[:4]]
    play(
        tale,
        begin("timed", max_nb_interactions=None, max_time=40, metric_to_optimize="J", subset="mine", user_key="me"),
    )
    play(tale, begin("late", max_nb_interactions=3, max_time=100, metric_to_optimize="F"), seconds=1, late=2)
    with mock.patch.object(random, "shuffle", lambda samples: samples.reverse()):
        play(tale, begin("left", max_nb_interactions=2, shuffle=True), most=3)
    tale.clock.now += 5000
    play(tale, begin("left", max_nb_interactions=2, shuffle=True, resume=True))
    tale.try_out("no limit", begin("none", max_nb_interactions=None).__enter__)
    tale.try_out("no metric", begin("none", metric_to_optimize="IoU").__enter__)
    tale.try_out("no subset", begin("none", subset="nobody").__enter__)
    tale.try_out("empty subset", begin("none", subset="none").__enter__)
    tale.try_out("twice", begin("none", subset="twice").__enter__)
    tale.try_out("unpublished", begin("none", subset="test-dev").__enter__)
    tale.try_out("resume", begin("none", resume=True).__enter__)
    (tale.folder / "broken").mkdir()
    (tale.folder / "broken/result_1.state.json").write_text("{")
    tale.try_out("broken state", begin("broken", resume=True).__enter__)
    item = begin("order", max_nb_interactions=1, subset="mine")
    tale.try_out("before with", item.next)
    with item:
        tale.say("at first:", item.sample_idx, item.interaction_nb)
        tale.try_out("before next", item.get_scribbles)
        tale.try_out("masks before scribbles", lambda: item.submit_masks(0))
        tale.try_out("summary before the end", item.get_global_summary)
        item.next()
        item.get_scribbles()
        tale.try_out("twice", item.get_scribbles)
        for about, guess in (("nothing", None), ("a number", 1), ("too few", np.zeros((2, 40, 60))),
                             ("not finite", np.full((3, 40, 60), np.inf))):  # fmt: skip
            tale.try_out(about, lambda guess=guess: item.submit_masks(guess))  # type: ignore[misc]
        tale.clock.now += 4
        item.submit_masks(answer("box", 3, 1), [0])
        tale.say(
            "after:",
            item.running_model,
            item.interaction_nb,
            item.sample_idx,
            item.interaction_start_time,
            item.sample_start_time,
        )
        storage: Any = item.connector.storage
        tale.lines += ["  " + line for line in storage.annotated_frames.to_csv().splitlines()]
        tale.say("next:", item.next(), item.get_scribbles()[0])
        item.submit_masks(answer("box", 3, 2))
        tale.say("next:", item.next(), item.next(), item.running)
        item.get_global_summary(tale.folder / "summary.json")
        tale.say((tale.folder / "summary.json").read_text()[:40])


def the_service_and_its_storage(tale: Tale) -> None:
    service = evaluation.EvaluationService("val", davis_root=str(tale.root), max_i=2, max_t=9.0, clock=tale.clock)
    tale.say(
        service.avg_nb_objects,
        service.num_entries,
        service.get_samples(),
        service.time_threshold,
        service.robot_parameters,
    )
    for name, number in (("nobody", 1), ("box", 0), ("box", 3)):
        tale.try_out(f"scribbles {name} {number}", lambda name=name, number=number: service.get_scribble(name, number))  # type: ignore[misc]
    for name, number, interaction in (
        ("box", 1, 3),
        ("box", 1, 0),
        ("nobody", 1, 1),
        ("box", 0, 1),
        ("box", 3, 1),
        ("box", 1, 2),
    ):
        guess = answer("box", 3, 1)
        tale.try_out(
            f"{name} {number} {interaction}",
            lambda: service.post_predicted_masks(name, number, guess, 1.0, interaction),  # noqa: B023
        )
    storage = reports.LocalStorage()

    def store(interaction: int = 1, jaccard: Any = (0.5, 1.0), frames: Any = (0, 1), name: str = "box") -> object:
        return storage.store_interactions_results(
            "u", "s", name, 1, interaction, 3, [1, 1], frames, jaccard, [0.0, 1.0]
        )

    tale.try_out("too high", lambda: store(jaccard=[0.5, 1.01]))
    tale.try_out("too low", lambda: store(jaccard=[-0.01, 1]))
    tale.try_out("shorter", lambda: store(frames=[0]))
    tale.try_out("early", lambda: store(2))
    tale.try_out("first", store)
    tale.try_out("again", store)
    tale.try_out("second", lambda: store(2))
    for frame in (1, 0, 1):
        tale.say("robot in", storage.get_annotated_frames("s", "box", 1), storage.get_annotated_frames("t", "box", 1),
                 storage.store_annotated_frame("s", "box", 1, frame, bool(frame)))  # fmt: skip
    for frame in range(len(range(40))):
        storage.store_annotated_frame("s", "bike-packing", 1, frame, False)
    tale.say("published:", len(storage.get_annotated_frames("s", "bike-packing", 1)))
    for about, terms in (
        ("plain", reports.SummaryTerms()), ("three", reports.SummaryTerms("J", 3, 10.0, 2.0)),
        ("all samples", reports.SummaryTerms("F", 2, None, 1.0, 4.0, {("box", 1): 1, ("duo", 1): 2})),
    ):  # fmt: skip
        tale.say(about, terms.summarize(storage.get_report()), terms.summarize(reports.LocalStorage().get_report()))
    other_storage = reports.LocalStorage()
    other_storage.restore("s", json.loads(json.dumps(storage.progress("s"))), storage.get_report("s"))
    tale.say(
        "restored:",
        other_storage.progress("s") == json.loads(json.dumps(storage.progress("s"))) or other_storage.progress("s"),
        other_storage.get_report().equals(storage.get_report("s")),
    )
    tale.say(len(storage.get_report("t")), list(storage.get_report("t").columns), storage.progress("t"))
