"""Rules of tags, domain and prizes, which the server tests last."""

from __future__ import annotations

import re
from typing import Any

from segjudge.bundle.field_values import validate
from segjudge.bundle.fields import CHALLENGE, PRIZE
from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems, crash, warning

from .blocks import entries, is_list_of_mappings

_MOST_TAGS = 4
_AMOUNT = re.compile(r"\d+(\.\d{1,2})?[A-Z]{3}$")


def tags_domain_and_prizes(bundle: Bundle) -> BundleProblems:
    """Yield the problems of tags, domain and prizes."""
    yield from _tags(bundle)
    domains = CHALLENGE["domain"].choices
    if "domain" in bundle.config and bundle.config["domain"] not in domains:
        quote = "ERROR: Domain name is incorrect. Please enter correct domain name then try again!"
        found = f"is {bundle.config['domain']!s:.60}"
        yield BundleProblem("domain", found, f"Use one of {', '.join(domains)}, or remove the line", quote, 65)
    yield from _prizes(bundle)


def _tags(bundle: Bundle) -> BundleProblems:
    if "tags" not in bundle.config:
        return
    tags, remedy = bundle.config["tags"], "Begin each tag with -, or remove the line"
    if not hasattr(tags, "__len__"):
        yield crash("tags", f"is {tags!r:.60}, not a list", remedy, 64)
    elif len(tags) > _MOST_TAGS:
        quote = "ERROR: Tags are limited to 4. Please remove extra tags then try again!"
        what = "letters, each of which is a tag for EvalAI" if isinstance(tags, str) else "tags"
        yield BundleProblem("tags", f"has {len(tags)} {what}", remedy if what != "tags" else "Keep four", quote, 64)
    elif tags and not isinstance(tags, list):
        parts = ", ".join(map(str, tags))
        yield warning("tags", f"is not a list: EvalAI takes it for the tags {parts}", remedy)


def _prizes(bundle: Bundle) -> BundleProblems:
    if "prizes" not in bundle.config:
        return
    prizes = bundle.config["prizes"]
    if not prizes and hasattr(prizes, "__iter__"):
        return
    if not is_list_of_mappings(prizes):
        yield crash("prizes", "is not a list of mappings", "Begin each item with - rank:, or remove the line", 66)
        return
    ranks: list[Any] = []
    for where, prize in entries(bundle, "prizes"):
        missing = [key for key in ("rank", "amount") if key not in prize]
        if missing:
            yield crash(where, f"lacks {', '.join(missing)}", "Add it", 66)
        elif isinstance(prize["rank"], (list, dict, set)):
            yield crash(f"{where}.rank", f"is {prize['rank']!r:.60}", "Write 1 for the winner", 66)
        else:
            yield from _prize(where, prize, ranks)
            ranks.append(prize["rank"])


def _prize(where: str, prize: dict[str, Any], ranks: list[Any]) -> BundleProblems:
    rank, amount = prize["rank"], prize["amount"]
    if rank in ranks:
        quote = f"ERROR: Duplicate rank {rank} found in YAML data."
        yield BundleProblem(f"{where}.rank", f"{rank} is there twice", "Renumber", quote, 66)
    invalid = not isinstance(rank, int) or rank < 1
    if invalid:
        quote = f"ERROR: Invalid rank value {rank}. Rank should be an integer."
        yield BundleProblem(f"{where}.rank", f"is {rank!r:.60}", "Write 1 for the winner", quote, 66)
    if not isinstance(amount, str):
        yield crash(f"{where}.amount", f"is {amount!r:.60}, not a text", "Write it as 100.00USD", 66)
    elif not _AMOUNT.match(amount):
        quote = (
            f"ERROR: Invalid amount value {amount}. Amount should be in decimal format with three-letter currency "
            "code (e.g. 100.00USD, 500EUR, 1000INR)."
        )
        yield BundleProblem(f"{where}.amount", f"is {amount}", "Write it as 100.00USD", quote, 66)
    elif not invalid:
        yield from _dropped_prize(where, prize)


def _dropped_prize(where: str, prize: dict[str, Any]) -> BundleProblems:
    """Yield why the server leaves out a prize without a message."""
    for key, field in PRIZE.items():
        error = validate(key, prize[key], field) if key in prize else None
        if error:
            found = f"cannot be kept ({error.message.rstrip('.')}), so that EvalAI drops the prize and says nothing"
            yield warning(f"{where}.{key}", found, f"Write {field.about}")
