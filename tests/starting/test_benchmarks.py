"""`segjudge benchmarks NAME`: the description of a benchmark agrees with its family."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.families import tools_of
from segjudge.starting.benchmarks import choose_bounds, describe_benchmark, find_page
from tests.builders import ROOT
from tests.families.contract import examples
from tests.families.test_benchmark_pages import list_entries
from tests.revisions import read_all

#: One protocol of each family is described in the quick tests.
_FIRST = {next(iter(family.protocols)) for family in FAMILIES.values()}
#: One protocol of each form of truth is also carried out.
_OF_A_FORM = {(protocol.family, protocol.form): name for name, protocol in PROTOCOLS.items()}.values()


@pytest.mark.parametrize(
    "name", [name if name in _FIRST else pytest.param(name, marks=pytest.mark.long) for name in PROTOCOLS]
)
def test_a_benchmark_is_described_with_all_that_is_needed_to_use_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmarks", name]) == 0
    text = capsys.readouterr().out
    lines = re.sub(r"\n {4,}", " ", text)  # descriptions wrap
    assert PROTOCOLS[name].about in lines
    for metric in PROTOCOLS[name].metrics:
        assert re.search(rf"^  {re.escape(metric)} .* (lower|higher) is better\)$", lines, re.MULTILINE), metric
    assert not re.search(r"is better.* is better", text), "the direction stands twice"
    assert main(["benchmarks", name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [metric["name"] for metric in document["metrics"]] == list(PROTOCOLS[name].metrics)
    assert document["truth"]
    assert document["submission"]
    assert all(f"\n  {path}\n" in text for path in [*document["truth"], *document["submission"]])
    *_, command = [shlex.split(line) for line in text.splitlines() if " new FOLDER " in line]
    assert command[1:] == ["new", "FOLDER", "--protocol", name, "--demo"]
    if name in _OF_A_FORM:  # the demo of the others is scored below `tests/families/`
        assert main([*(str(tmp_path / "new") if word == "FOLDER" else word for word in command[1:])]) == 0


def test_what_metrics_were_ever_given_is_within_their_ranges() -> None:
    values = {
        (name, metric, value)
        for name, revisions in read_all().items()
        for entry in revisions.values()
        for sample in entry["samples"].values()
        for metric, value in sample["values"].items()
    }
    assert len(values) > 500
    for name, metric, value in values:
        least, greatest = tools_of(PROTOCOLS[name].family).bounds_of(metric)
        if value is not None:
            assert least is None or least <= value, (name, metric, value)
            assert greatest is None or value <= greatest, (name, metric, value)


def test_a_protocol_may_state_its_own_ranges() -> None:
    protocol: Any = SimpleNamespace(family="cells", bounds={"Error": (0.0, math.inf)})
    assert choose_bounds("Error", protocol) == (0.0, None)
    assert choose_bounds("Right", protocol) == (0.0, 1.0)


@pytest.mark.long
def test_the_directions_and_ranges_that_are_not_usual_are_said() -> None:
    output = {
        metric.name: metric.describe_values()
        for name in examples("pages")
        for metric in describe_benchmark(PROTOCOLS[name]).metrics
    }
    assert output["J-Mean"] == "0 to 1, higher is better"
    assert output["J-Decay"] == "-1 to 1, lower is better"
    assert output["IDSW"] == "from 0, lower is better"
    assert output["sMOTSA"] == "up to 1, higher is better"
    assert output["MAE"] == "0 to 1, lower is better"
    assert output["IL_MCC"] == "-1 to 1, higher is better"


def test_the_page_of_a_benchmark_is_the_one_that_the_list_links() -> None:
    for row in list_entries():
        page = f"docs/benchmarks/{row.page}" if row.page else "docs/benchmarks.md"
        assert {find_page(PROTOCOLS[name]) for name in row.protocols} == {page}
        assert (ROOT / page.partition("#")[0]).is_file()
