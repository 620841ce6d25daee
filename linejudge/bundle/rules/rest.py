"""Tags, domain and prizes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from linejudge.bundle.fields import CHALLENGE
from linejudge.bundle.finding import Finding, Findings, crash
from linejudge.bundle.opened import Bundle

from .blocks import entries

_TAGS = 4
_AMOUNT = re.compile(r"\d+(\.\d{1,2})?[A-Z]{3}")


def rest(bundle: Bundle) -> Findings:
    """What the server tests last."""
    tags = bundle.config.get("tags")
    if "tags" in bundle.config and not isinstance(tags, list):
        yield crash("tags", f"is {tags!r}, no list", "Begin each tag with -, or remove the line", 64)
    elif tags and len(tags) > _TAGS:
        quote = "ERROR: Tags are limited to 4. Please remove extra tags then try again!"
        yield Finding("tags", f"has {len(tags)} tags", "Keep four", quote, rule=64)
    domains = CHALLENGE["domain"].choices
    if "domain" in bundle.config and bundle.config["domain"] not in domains:
        quote = "ERROR: Domain name is incorrect. Please enter correct domain name then try again!"
        found = f"is {bundle.config['domain']}"
        yield Finding("domain", found, f"Use one of {', '.join(domains)}, or remove the line", quote, rule=65)
    yield from _prizes(bundle)


def _prizes(bundle: Bundle) -> Findings:
    prizes = bundle.config.get("prizes")
    if "prizes" in bundle.config and (not isinstance(prizes, list) or any(not isinstance(one, dict) for one in prizes)):
        yield crash("prizes", "is no list of mappings", "Begin each with - rank:, or remove the line", 66)
        return
    ranks: Counter[Any] = Counter()
    for where, prize in entries(bundle, "prizes"):
        missing = [key for key in ("rank", "amount") if key not in prize]
        if missing:
            quote = "ERROR: Prize rank or amount not found in YAML data."
            yield Finding(where, f"lacks {', '.join(missing)}", "Add it", quote, rule=66)
            continue
        yield from _prize(where, prize)
        ranks[str(prize["rank"])] += 1
        if ranks[str(prize["rank"])] > 1:
            quote = f"ERROR: Duplicate rank {prize['rank']} found in YAML data."
            yield Finding(f"{where}.rank", f"{prize['rank']} is there twice", "Renumber", quote, rule=66)


def _prize(where: str, prize: dict[str, Any]) -> Findings:
    rank, amount = prize["rank"], prize["amount"]
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        quote = f"ERROR: Invalid rank value {rank}. Rank should be an integer."
        yield Finding(f"{where}.rank", f"is {rank!r}", "Write 1 for the winner", quote, rule=66)
    if not isinstance(amount, str):
        yield crash(f"{where}.amount", f"is {amount!r}, no text", "Write it as 100.00USD", 66)
    elif not _AMOUNT.fullmatch(amount):
        quote = (
            f"ERROR: Invalid amount value {amount}. Amount should be in decimal format with three-letter currency "
            "code (e.g. 100.00USD, 500EUR, 1000INR)."
        )
        yield Finding(f"{where}.amount", f"is {amount}", "Write it as 100.00USD", quote, rule=66)
    if "description" not in prize:
        quote = "Error in creating challenge: None. Please check the yaml configuration!"
        yield Finding(f"{where}.description", "is missing", "Add it: creation fails without", quote)
    for key, most in (("amount", 10), ("description", 25)):
        if isinstance(prize.get(key), str) and len(prize[key]) > most:
            yield Finding(f"{where}.{key}", f"has {len(prize[key])} characters", f"Keep to {most}: EvalAI drops it")
